use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::notation::{changes, read, shown};
use crate::graph::calls::Calls;
use crate::graph::calls::index::MANY;
use crate::graph::facts::Facts;

#[derive(Default)]
struct World(Calls);

impl World {
    /// Puts files in; one with a symbol `gone` goes. Returns what that changed.
    fn update(&mut self, files: &str) -> Vec<String> {
        let files = read(files);
        let changes_of = files.iter().map(|(path, facts)| {
            let gone = facts.symbols.iter().any(|symbol| &*symbol.name == "gone");
            (path.as_str(), (!gone).then_some(facts))
        });
        let redone = self.0.update(changes_of, 2);
        changes(&self.0, &redone)
    }
}

#[test]
fn an_edit_redoes_what_it_touches() {
    let mut world = World::default();
    let mut update = |files: &str| world.update(files);
    let added = update("a.py\n  use .b name\n  run\n    > name\nb.py\n  name\n");
    assert_eq!(added, ["+ a.py::run -> b.py::name"]);
    // What moves within its file stays what it is.
    assert!(update("b.py\n  other\n  name\n").is_empty());
    assert_eq!(update("b.py\n  other\n"), ["- a.py::run -> b.py::name"]);
    assert_eq!(update("b.py\n  name\n  name\n"), ["+ a.py::run -> b.py::name#2"]);
    assert_eq!(update("b.py\n  gone\n"), ["- a.py::run -> b.py::name#2"]);
    let back = update("b.py\n  name\nb/__init__.py\n  use ..a run\n  > run\n");
    assert_eq!(back, ["+ a.py::run -> b.py::name", "+ b/__init__.py -> a.py::run"]);
    assert_eq!(
        update("a.py\n  gone\n"),
        ["- a.py::run -> b.py::name", "- b/__init__.py -> a.py::run"]
    );
    assert!(shown(&world.0).is_empty());
}

#[test]
fn what_a_class_has_is_followed_to_who_brought_it_in() {
    for brought_in in ["open", "*"] {
        let mut world = World::default();
        let shop = format!("src/shop.rs\n  use self::Till {brought_in}\n  class Till\n    close\n");
        let day = "src/day.rs\n  use crate::shop open\n  run\n    > open\n";
        assert!(world.update(&format!("src/lib.rs\n{shop}{day}")).is_empty());
        let added = world.update(&format!("{shop}    open\n"));
        assert_eq!(added, ["+ src/day.rs::run -> src/shop.rs::Till::open"], "{brought_in}");
    }
}

#[test]
fn what_a_module_has_is_followed_to_who_brought_it_in_by_another_name() {
    for brought_in in ["open", "*"] {
        let mut world = World::default();
        let unix = "src/unix.rs\n  inner\n    close\n";
        let renamed = "src/shop.rs\n  use crate::unix inner as imp\n";
        let passed_on = format!("src/till.rs\n  use crate::shop::imp {brought_in}\n");
        let day = "src/day.rs\n  use crate::till open\n  run\n    > open\n";
        assert!(world.update(&format!("src/lib.rs\n{unix}{renamed}{passed_on}{day}")).is_empty());
        let added = world.update(&format!("{unix}    open\n"));
        assert_eq!(added, ["+ src/day.rs::run -> src/unix.rs::inner::open"], "{brought_in}");
    }
}

#[test]
fn a_default_is_known_by_other_names() {
    let mut world = World::default();
    assert!(world.update("a.ts\n  use ./b - as shop\n  run\n    > shop\nb.ts\n").is_empty());
    let added = world.update("b.ts\n  default\n    open\n");
    assert_eq!(added, ["+ a.ts::run -> b.ts::default"]);
}

#[test]
fn a_method_tells_nothing_anymore_once_too_many_have_one() {
    let mut world = World::default();
    let [mut all, one] = [many(MANY - 2), read("till.py\n  class Till\n    aaa\n")];
    all.extend(one);
    world.0.update(all.iter().map(|(path, facts)| (path.as_str(), Some(facts))), 2);
    let edge = "run.py::run -> till.py::Till::aaa";
    assert_eq!(world.update("run.py\n  run\n    > till.aaa\n"), [format!("+ {edge}")]);
    assert!(world.update("b.py\n  class Other\n    aaa\n").is_empty());
    assert_eq!(world.update("c.py\n  class Other\n    aaa\n"), [format!("- {edge}")]);
    assert!(world.update("d.py\n  class Other\n    aaa\n").is_empty());
    assert!(world.update("d.py\n  gone\n").is_empty());
    assert_eq!(world.update("b.py\n  gone\n"), [format!("+ {edge}")]);
}

/// A language: where its files are, and how they name each other.
#[derive(Clone, Debug)]
struct Setting {
    paths: Vec<&'static str>,
    modules: Vec<&'static str>,
}

fn setting() -> impl Strategy<Value = Setting> {
    prop::sample::select(vec![
        Setting {
            paths: vec!["aaa.ts", "bbb.ts", "ddd/index.ts", "ddd/aaa.ts"],
            modules: vec!["./aaa", "./bbb", "..", "./ddd", ".", "ext"],
        },
        Setting {
            paths: vec!["aaa.py", "bbb.py", "ddd/__init__.py", "ddd/aaa.py"],
            modules: vec![".", "..", ".aaa", ".bbb", "..ddd", "aaa", "ddd", "ddd.aaa", "ext"],
        },
        Setting {
            paths: vec![
                "src/lib.rs",
                "src/aaa.rs",
                "src/bbb.rs",
                "src/ddd/mod.rs",
                "src/ddd/aaa.rs",
                "ddd/src/lib.rs",
            ],
            modules: vec![
                "crate",
                "super",
                "self::aaa",
                "crate::bbb",
                "crate::ddd",
                "ddd::aaa",
                "self::Ccc",
                "ext",
            ],
        },
    ])
}

/// What a file of a small world imports, and its symbols. Names are few, so that they meet.
fn file(modules: Vec<&'static str>) -> impl Strategy<Value = [Vec<String>; 2]> {
    let name = || prop::sample::select(vec!["aaa", "bbb", "Ccc", "ddd", "default", "Eee"]);
    let variable = prop::sample::select(vec!["aaa", "bbb", "Ccc", "ddd", "ccc", "eee"]);
    let module = prop::sample::select(modules);
    let import =
        (module, name(), name(), 0..4_u8).prop_map(|(module, there, here, form)| match form {
            0 => format!("  use {module} *\n"),
            1 => format!("  use {module} - as {here}\n"),
            2 => format!("  use {module} {there} as {here}\n"),
            _ => format!("  use {module} {there}\n"),
        });
    let call = (0..5_u8, variable, name()).prop_map(|(on, first, name)| match on {
        0 => name.to_owned(),
        1 => format!("self.{name}"),
        2 => format!("?.{name}"),
        3 => format!("{first}.{name}"),
        _ => format!("crate::{first}::{name}"),
    });
    let class = || any::<bool>().prop_map(|is_class| if is_class { "class " } else { "" });
    let symbol = (class(), name(), class(), name(), name(), call).prop_map(
        |(class, outer, inner_class, inner, innermost, call)| {
            let outer = format!("  {class}{outer}\n    {inner_class}{inner}\n      > {call}\n");
            let innermost =
                if inner_class.is_empty() { String::new() } else { format!("      {innermost}\n") };
            outer + &innermost
        },
    );
    let parts = (prop::collection::vec(import, 0..3), prop::collection::vec(symbol, 0..3));
    parts.prop_map(|(imports, symbols)| [imports, symbols])
}

/// Files in which so many symbols of each language have the same name.
fn many(of: usize) -> Vec<(String, Facts)> {
    let symbols: Vec<_> = (0..of).map(|number| format!("  class C{number}\n    aaa\n")).collect();
    let symbols = symbols.concat();
    read(&["many.ts", "many.py", "src/many.rs"].map(|path| format!("{path}\n{symbols}")).concat())
}

#[derive(Clone, Debug)]
enum Edit {
    Gone,
    Whole([Vec<String>; 2]),
    /// Of the imports or the symbols, what is at a place is another, comes, or goes.
    Part(usize, usize, Option<String>),
}

fn edit(modules: Vec<&'static str>) -> impl Strategy<Value = Edit> {
    (0..10_u8, file(modules), 0..2_usize, 0..3_usize).prop_map(|(form, parts, part, at)| match form
    {
        0 => Edit::Gone,
        1..4 => Edit::Whole(parts),
        _ => Edit::Part(part, at, parts[part].first().cloned()),
    })
}

fn edited(parts: &mut Option<[Vec<String>; 2]>, edit: Edit) {
    match edit {
        Edit::Gone => *parts = None,
        Edit::Whole(whole) => *parts = Some(whole),
        Edit::Part(part, at, text) => {
            let lines = &mut parts.get_or_insert_default()[part];
            let at = at.min(lines.len());
            lines.splice(at..(at + 1).min(lines.len()), text);
        }
    }
}

fn batches() -> impl Strategy<Value = Vec<Vec<(&'static str, Edit)>>> {
    setting().prop_flat_map(|Setting { paths, modules }| {
        let edit = (prop::sample::select(paths), edit(modules));
        prop::collection::vec(prop::collection::vec(edit, 1..4), 1..16)
    })
}

proptest! {
    #[test]
    fn edits_make_what_reading_everything_afresh_makes(
        of_many in prop::sample::select(vec![0, MANY - 3, MANY - 1, MANY, MANY + 1]),
        batches in batches(),
    ) {
        let mut calls = Calls::default();
        let mut files: BTreeMap<_, _> = many(of_many).into_iter().collect();
        calls.update(files.iter().map(|(path, facts)| (path.as_str(), Some(facts))), 2);
        let mut texts: BTreeMap<&str, Option<[Vec<String>; 2]>> = BTreeMap::new();
        let mut edges = BTreeSet::new();
        for batch in batches {
            let batch: BTreeMap<_, _> = batch
                .into_iter()
                .map(|(path, edit)| {
                    let parts = texts.entry(path).or_default();
                    edited(parts, edit);
                    let text = parts.as_ref().map(|parts| format!("{path}\n{}", parts.concat().concat()));
                    (path.to_owned(), text.map(|text| read(&text).remove(0).1))
                })
                .collect();
            let changed = batch.iter().map(|(path, facts)| (path.as_str(), facts.as_ref()));
            let redone = calls.update(changed, 2);
            for change in changes(&calls, &redone) {
                let (sign, edge) = change.split_at(2);
                let is_news = if sign == "+ " {
                    edges.insert(edge.to_owned())
                } else {
                    edges.remove(edge)
                };
                prop_assert!(is_news, "{change}");
            }
            for (path, facts) in batch {
                match facts {
                    Some(facts) => files.insert(path, facts),
                    None => files.remove(&path),
                };
            }
            let mut fresh = Calls::default();
            fresh.update(files.iter().map(|(path, facts)| (path.as_str(), Some(facts))), 2);
            prop_assert_eq!(shown(&calls), shown(&fresh));
            let all: BTreeSet<_> = shown(&fresh)
                .lines()
                .filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()))
                .collect();
            prop_assert_eq!(&edges, &all);
        }
    }
}
