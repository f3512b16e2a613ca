//! The documents hold together: links lead somewhere, each document has its place in the index, and the
//! README is what a newcomer needs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Most lines of the README.
const README_LINES: usize = 150;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The documents of a folder.
fn documents(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ext| ext == "md")).collect()
}

/// The lines of a document outside of its blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_block = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        !in_block && !is_fence
    })
}

/// Where the links of a document lead: each with its line.
fn links(text: &str) -> Vec<(&str, &str)> {
    let mut links = Vec::new();
    for line in prose(text) {
        for part in line.split("](").skip(1) {
            let target = part.split(')').next().unwrap_or_default();
            if !target.contains("://") {
                links.push((target, line));
            }
        }
    }
    links
}

/// The names by which links find the headings of a document.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for heading in prose(text).filter(|line| line.starts_with('#')) {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let further = (1..).map(|n| format!("{name}-{n}"));
        let free = std::iter::once(name.clone()).chain(further).find(|it| !anchors.contains(it));
        anchors.extend(free);
    }
    anchors
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for document in ["", "docs", "docs/guides", "docs/internals"].into_iter().flat_map(documents) {
        let text = read(&document);
        for (target, line) in links(&text) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = match file {
                "" => document.clone(),
                file => document.parent().unwrap().join(file),
            };
            let leads =
                path.exists() && (anchor.is_empty() || anchors(&read(&path)).contains(anchor));
            if !leads {
                broken.push(format!("{}: {target}: {line}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Recipes name files of the repository.
#[test]
fn contributing_names_files_that_are_there() {
    let text = read(&root().join("CONTRIBUTING.md"));
    let folders = ["src/", "tests/", "docs/", "config/", "tools/", "benches/", "examples/"];
    let words = text.split('`').skip(1).step_by(2);
    let paths = words.filter(|word| folders.iter().any(|folder| word.starts_with(folder)));
    // A name in capitals stands for any.
    let is_name = |path: &str| path.split(['/', '.']).any(|part| part.contains(char::is_uppercase));
    let missing: Vec<&str> = paths
        .filter(|path| !is_name(path) && !path.contains(' '))
        .filter(|path| !root().join(path).exists())
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn each_document_has_one_place_in_the_index() {
    let index = root().join("docs/README.md");
    let text = read(&index);
    let targets: Vec<PathBuf> =
        links(&text).into_iter().map(|(target, _)| index.parent().unwrap().join(target)).collect();
    for document in ["docs", "docs/guides", "docs/internals"].into_iter().flat_map(documents) {
        let places = targets.iter().filter(|target| **target == document).count();
        assert!(places == 1 || document == index, "{}: {places} places", document.display());
    }
}

#[test]
fn the_readme_is_short_and_has_the_two_commands() {
    let readme = read(&root().join("README.md"));
    let lines: Vec<&str> = readme.lines().collect();
    assert!(lines.len() <= README_LINES, "{} lines", lines.len());
    for command in ["cargo run -- up -c config/demo.toml", "cargo test --workspace"] {
        assert!(lines.contains(&command), "{command}");
    }
    assert!(readme.contains("](docs/pictures/"), "there is no picture");
}

/// The paths of this repository that a document names in backquotes: those that begin as one does, without
/// placeholders.
fn places(text: &str) -> impl Iterator<Item = &str> {
    let named = prose(text).flat_map(|line| line.split('`').skip(1).step_by(2));
    named.filter(|name| {
        let begins = ["crates/", "tests/it/", "benches/", ".ci/", "tools/"];
        let is_path = name.chars().all(|c| c.is_ascii_lowercase() || "/._-0123456789".contains(c));
        is_path && begins.iter().any(|begin| name.starts_with(begin))
    })
}

#[test]
fn files_that_documents_name_are_there() {
    let folders = ["docs", "docs/guides", "docs/internals"].into_iter().flat_map(documents);
    let crates = std::fs::read_dir(root().join("crates")).unwrap();
    let readmes = crates.map(|entry| entry.unwrap().path().join("README.md"));
    let others = ["README.md", "CONTRIBUTING.md"].map(|name| root().join(name));
    let (mut gone, mut found) = (Vec::new(), 0);
    for document in folders.chain(readmes).chain(others) {
        for place in places(&read(&document)) {
            found += 1;
            if !root().join(place).exists() {
                gone.push(format!("{}: {place}", document.display()));
            }
        }
    }
    assert!(found > 50, "{found}");
    assert!(gone.is_empty(), "{}", gone.join("\n"));
}

/// Types that the architecture names and that are not declared here.
const FOREIGN: [&str; 1] = ["CancellationToken"];

/// The types and constants that the files below a folder declare.
fn declared(folder: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for entry in ignore::Walk::new(root().join(folder)).flatten() {
        if entry.path().extension().is_none_or(|ext| ext != "rs") {
            continue;
        }
        let text = read(entry.path());
        let words: Vec<&str> = text.split_whitespace().collect();
        let after = words.windows(2).filter(|pair| {
            matches!(pair[0], "struct" | "enum" | "trait" | "type" | "const" | "static")
        });
        let name = |word: &str| {
            word.split(|c: char| !c.is_alphanumeric() && c != '_').next().map(str::to_owned)
        };
        names.extend(after.filter_map(|pair| name(pair[1])));
    }
    names
}

/// The code map names what a crate declares, or one that stands before it; the rest of the document what any does.
#[test]
fn types_that_the_architecture_names_are_there() {
    let all: BTreeSet<String> = ["crates", "src"].into_iter().flat_map(declared).collect();
    let text = read(&root().join("docs/architecture.md"));
    let (mut below, mut in_map) = (BTreeSet::new(), false);
    let (mut gone, mut found) = (Vec::new(), 0);
    for line in prose(&text) {
        in_map &= !line.starts_with('#');
        let name = line.strip_prefix("**[").and_then(|rest| rest.split_once("](../crates/"));
        if let Some((name, _)) = name {
            below.append(&mut declared(&format!("crates/{name}/src")));
            in_map = true;
        }
        let known = if in_map { &below } else { &all };
        for named in line.split('`').skip(1).step_by(2) {
            let first = named.split("::").next().unwrap_or_default();
            let is_type = first.starts_with(|c: char| c.is_ascii_uppercase())
                && first.contains(|c: char| c.is_ascii_lowercase())
                && first.chars().all(char::is_alphanumeric);
            if is_type && !FOREIGN.contains(&first) {
                found += 1;
                gone.extend((!known.contains(first)).then(|| line.to_owned()));
            }
        }
    }
    assert!(found > 50, "{found}");
    assert!(gone.is_empty(), "{}", gone.join("\n"));
}
