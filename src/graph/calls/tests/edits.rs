use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::notation::{changes, read, shown};
use crate::graph::calls::Calls;

#[test]
fn an_edit_redoes_what_it_touches() {
    let mut calls = Calls::default();
    let mut update = |files: &str| {
        let files = read(files);
        let redone = calls.update(
            files.iter().map(|(path, facts)| {
                let gone = facts.symbols.iter().any(|symbol| &*symbol.name == "gone");
                (path.as_str(), (!gone).then_some(facts))
            }),
            2,
        );
        changes(&calls, &redone)
    };
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
    assert!(shown(&calls).is_empty());
}

/// A small world in which names are few, so that they meet: the text of a file.
fn file() -> impl Strategy<Value = String> {
    let name = || prop::sample::select(vec!["aaa", "bbb", "Ccc", "ddd", "default", "Eee"]);
    let module = prop::sample::select(vec![
        "./aaa",
        "./bbb",
        "..",
        "./ddd",
        ".",
        ".aaa",
        ".bbb",
        "..ddd",
        "aaa",
        "ddd.aaa",
        "crate",
        "super",
        "self::aaa",
        "crate::bbb",
        "ddd::aaa",
        "crate::ddd",
        "self::Ccc",
        "ext",
    ]);
    let import =
        (module, name(), name(), 0..4_u8).prop_map(|(module, there, here, form)| match form {
            0 => format!("  use {module} *\n"),
            1 => format!("  use {module} - as {here}\n"),
            2 => format!("  use {module} {there} as {here}\n"),
            _ => format!("  use {module} {there}\n"),
        });
    let call = (0..5_u8, name(), name()).prop_map(|(on, first, name)| match on {
        0 => name.to_owned(),
        1 => format!("self.{name}"),
        2 => format!("?.{name}"),
        3 => format!("{first}.{name}"),
        _ => format!("crate::{first}::{name}"),
    });
    let symbol =
        (any::<bool>(), name(), name(), call).prop_map(|(is_class, outer, inner, call)| {
            let class = if is_class { "class " } else { "" };
            format!("  {class}{outer}\n    {inner}\n      > {call}\n")
        });
    let parts = (prop::collection::vec(import, 0..3), prop::collection::vec(symbol, 0..3));
    parts.prop_map(|(imports, symbols)| imports.concat() + &symbols.concat())
}

fn edit() -> impl Strategy<Value = (String, Option<String>)> {
    let path = prop::sample::select(vec![
        "aaa.ts",
        "bbb.ts",
        "ddd/index.ts",
        "ddd/aaa.ts",
        "aaa.py",
        "bbb.py",
        "ddd/__init__.py",
        "ddd/aaa.py",
        "src/lib.rs",
        "src/aaa.rs",
        "src/bbb.rs",
        "src/ddd/mod.rs",
        "src/ddd/aaa.rs",
        "ddd/src/lib.rs",
    ]);
    (path, prop::option::weighted(0.8, file()))
        .prop_map(|(path, text)| (path.to_owned(), text.map(|text| format!("{path}\n{text}"))))
}

proptest! {
    #[test]
    fn edits_make_what_reading_everything_afresh_makes(
        batches in prop::collection::vec(prop::collection::vec(edit(), 1..4), 1..12)
    ) {
        let mut calls = Calls::default();
        let mut files = BTreeMap::new();
        let mut edges = BTreeSet::new();
        for batch in batches {
            let batch: BTreeMap<_, _> = batch
                .into_iter()
                .map(|(path, text)| (path, text.map(|text| read(&text).remove(0).1)))
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
