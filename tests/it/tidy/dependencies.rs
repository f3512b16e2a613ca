//! Holds `docs/dependencies.md` to the manifests and to what Cargo resolves: each direct dependency has a reason, each
//! second version one, each licence is allowed, and packages don't become more.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

const DOCS: &str = include_str!("../../../docs/dependencies.md");

/// The target whose packages are counted: those of other systems may not be on this machine.
const LINUX: &str = "x86_64-unknown-linux-gnu";

/// The sections of the page, with the kinds of the dependencies whose reasons they have.
const SECTIONS: [(&str, &[&str]); 2] =
    [("## The program", &["null", "\"build\""]), ("## Tests", &["\"dev\""])];

#[test]
fn each_dependency_has_a_reason_and_each_reason_a_dependency() {
    for (section, kinds) in SECTIONS {
        let program = direct(SECTIONS[0].1);
        let mut named = direct(kinds);
        if kinds == SECTIONS[1].1 {
            named.retain(|name| !program.contains(name));
        }
        let reasons = table(section);
        assert!(reasons.values().all(|reason| reason.len() > 3), "{reasons:?}");
        let explained: BTreeSet<_> = reasons.into_keys().collect();
        let both = named.symmetric_difference(&explained).collect::<Vec<_>>();
        assert!(both.is_empty(), "{section} and the manifests differ in {both:?}");
    }
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "what Linux needs may not be here")]
fn packages_have_second_versions_for_known_reasons_and_are_not_more_than_they_were() {
    let packages = packages_of_program();
    let (_, most) = DOCS.split_once("The Linux program is built of ").unwrap();
    let most: usize = most.split(' ').next().unwrap().parse().unwrap();
    let count = packages.len();
    assert!(
        count <= most,
        "the program has {count} packages; `cargo tree -i` says who brings them"
    );
    let mut versions = BTreeMap::<_, usize>::new();
    for (name, _) in &packages {
        *versions.entry(name.clone()).or_default() += 1;
    }
    versions.retain(|_, count| *count > 1);
    let known = table("## Two versions of one package");
    assert!(versions.keys().eq(known.keys()), "{versions:?}\n{known:?}");
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "what Linux needs may not be here")]
fn all_licences_are_allowed() {
    let (_, allowed) = DOCS.split_once("## Licences").unwrap();
    let allowed: BTreeSet<_> = allowed.split('`').skip(3).step_by(2).collect();
    assert!(allowed.contains("MIT"), "{allowed:?}");
    let packages = metadata(&[])["packages"].take();
    for package in packages.as_array().unwrap() {
        let licence = package["license"].as_str().unwrap_or_default();
        assert!(allows(&allowed, licence), "{}: {licence:?}", package["name"]);
    }
}

#[test]
fn a_licence_is_allowed_by_its_parts() {
    let allowed = BTreeSet::from(["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"]);
    for yes in [
        "MIT",
        "GPL-3.0/MIT",
        "GPL-3.0 OR MIT",
        "ISC AND (MIT OR GPL-3.0)",
        "Apache-2.0 WITH LLVM-exception",
        "(GPL-3.0 OR ISC) AND (MIT)",
    ] {
        assert!(allows(&allowed, yes), "{yes}");
    }
    for no in ["", "GPL-3.0", "MIT AND GPL-3.0", "ISC AND (Zlib OR GPL-3.0)", "Apache-2.0"] {
        assert!(!allows(&allowed, no), "{no}");
    }
}

/// The packages that others can build on by themselves.
const PUBLIC: [&str; 5] =
    ["eisen-base", "eisen-graph", "eisen-memory", "eisen-plugin", "eisen-sandbox"];

#[test]
fn only_the_parts_that_stand_by_themselves_can_be_published() {
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().unwrap().iter();
    let public: BTreeSet<_> = packages
        .filter(|package| package["publish"].is_null())
        .map(|package| package["name"].as_str().unwrap())
        .collect();
    assert!(public.iter().eq(&PUBLIC), "{public:?}");
}

/// The rows of the tables in a section: the name, and the reason.
fn table(section: &str) -> BTreeMap<String, String> {
    let (_, section) = DOCS.split_once(section).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| {
        let (name, reason) = line.strip_prefix("| `")?.strip_suffix(" |")?.split_once("` | ")?;
        Some((name.to_owned(), reason.to_owned()))
    });
    rows.collect()
}

/// The direct dependencies of some kinds, of all packages here, besides one another.
fn direct(kinds: &[&str]) -> BTreeSet<String> {
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().unwrap().iter();
    let dependencies = packages.flat_map(|package| package["dependencies"].as_array().unwrap());
    let others = dependencies.filter(|it| it["path"].is_null());
    let wanted = others.filter(|it| kinds.contains(&&*it["kind"].to_string()));
    wanted.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

/// The packages of others that the Linux program is built of, with their versions.
fn packages_of_program() -> BTreeSet<(String, String)> {
    let of_program = ["tree", "-e", "normal,build", "--target", LINUX, "-p", "eisen-core"];
    let tree = cargo(&[&of_program[..], &["--prefix", "none", "-f", "{p}"]].concat());
    let others = tree.lines().filter(|line| !line.contains(" (/"));
    let lines = others.filter_map(|line| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    });
    lines.collect()
}

fn metadata(arguments: &[&str]) -> Value {
    let common = &["metadata", "--format-version", "1", "--filter-platform", LINUX];
    serde_json::from_str(&cargo(&[common, arguments].concat())).unwrap()
}

fn cargo(arguments: &[&str]) -> String {
    let cargo = Command::new(env!("CARGO"))
        .args(arguments)
        .args(["--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    String::from_utf8(cargo.stdout).unwrap()
}

/// Whether an SPDX expression can be met with these licences. A slash is an old form of `OR`.
fn allows(allowed: &BTreeSet<&str>, expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words: Vec<_> = expression.split_whitespace().rev().collect();
    any(allowed, &mut words) && words.is_empty()
}

/// Reads alternatives off the end of the reversed words.
fn any(allowed: &BTreeSet<&str>, words: &mut Vec<&str>) -> bool {
    let mut is_met = all(allowed, words);
    while words.pop_if(|word| *word == "OR").is_some() {
        is_met |= all(allowed, words);
    }
    is_met
}

fn all(allowed: &BTreeSet<&str>, words: &mut Vec<&str>) -> bool {
    let mut is_met = one(allowed, words);
    while words.pop_if(|word| *word == "AND").is_some() {
        is_met &= one(allowed, words);
    }
    is_met
}

fn one(allowed: &BTreeSet<&str>, words: &mut Vec<&str>) -> bool {
    match words.pop() {
        Some("(") => {
            let is_met = any(allowed, words);
            words.pop();
            is_met
        }
        Some(licence) if words.pop_if(|word| *word == "WITH").is_some() => {
            let exception = words.pop().unwrap_or_default();
            allowed.contains(&*format!("{licence} WITH {exception}"))
        }
        Some(licence) => allowed.contains(licence),
        None => false,
    }
}
