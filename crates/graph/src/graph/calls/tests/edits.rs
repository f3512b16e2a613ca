//! Changes of files, and the edges that they add and remove.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::notation::{changes, read, shown};
use super::worlds::{self, World};
use crate::graph::calls::Calls;
use crate::graph::calls::index::MANY;
use crate::graph::facts::Facts;

#[derive(Default)]
struct Live(Calls);

impl Live {
    /// Puts files in; one with a symbol `gone` goes. Returns what that changed.
    fn update(&mut self, files: &str) -> Vec<String> {
        let files = read(files);
        let changes_of = files.iter().map(|(path, facts)| {
            let gone = facts.symbols.iter().any(|symbol| &*symbol.name == "gone");
            (path.as_str(), (!gone).then_some(facts))
        });
        let edge_changes = self.0.update(changes_of, 2);
        changes(&self.0, &edge_changes)
    }
}

#[test]
fn methods_of_another_language_are_nothing_to_a_caller() {
    let mut world = Live::default();
    let bells = "bell.ts\n  class Bell\n    ring\n  class Horn\n    ring\n";
    assert!(world.update(&format!("{bells}day.py\n  run\n    > ?.ring\n")).is_empty());
    let added = world.update("till.py\n  class Till\n    ring\n");
    assert_eq!(added, ["+ day.py::run -> till.py::Till::ring"]);
}

#[test]
fn an_edit_redoes_what_it_touches() {
    let mut world = Live::default();
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
        let mut world = Live::default();
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
        let mut world = Live::default();
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
fn what_is_passed_on_is_followed() {
    for (passed_on, edge) in [
        ("  use .c *\n", "a.py::run -> c.py::open"),
        ("  use .c open\n", "a.py::run -> c.py::open"),
        ("  use .c close as open\n", "a.py::run -> c.py::close"),
    ] {
        let mut world = Live::default();
        let files = "a.py\n  use .b open\n  run\n    > open\nb.py\nc.py\n  open\n  close\n";
        assert!(world.update(files).is_empty());
        assert_eq!(world.update(&format!("b.py\n{passed_on}")), [format!("+ {edge}")]);
        assert_eq!(world.update("b.py\n"), [format!("- {edge}")]);
    }
}

#[test]
fn what_a_base_has_is_followed_to_the_classes_below() {
    let mut world = Live::default();
    let base = |of: &str| format!("base.py\n  use .root *\n  class Base{of}\n");
    let shop = "shop.py\n  use .base Base\n  class Shop Base\n    open\n      > self.ring\n";
    let root = "root.py\n  class Root\n    ring\n  class Till\n    ring\n";
    assert!(world.update(&[&base(""), shop, root].concat()).is_empty());
    let edge = "shop.py::Shop::open -> root.py::Root::ring";
    assert_eq!(world.update(&base(" Root")), [format!("+ {edge}")]);
    let own = format!("{}    ring\n", base(" Root"));
    let nearer = "shop.py::Shop::open -> base.py::Base::ring";
    assert_eq!(world.update(&own), [format!("+ {nearer}"), format!("- {edge}")]);
    assert_eq!(
        world.update(&base(" Till")),
        ["+ shop.py::Shop::open -> root.py::Till::ring".to_owned(), format!("- {nearer}")]
    );
}

#[test]
fn what_leads_to_a_base_is_followed() {
    let mut world = Live::default();
    let base = |import: &str| format!("base.py\n  use {import}\n  class Base town.root.Root\n");
    let shop = "shop.py\n  use .base Base\n  class Shop Base\n    open\n      > super.ring\n";
    let root = "town/root.py\n  class Root\n    ring\nbell.py\n  class Bell\n    ring\n";
    assert!(world.update(&[&base("town.root - as root"), shop, root].concat()).is_empty());
    let edge = "shop.py::Shop::open -> town/root.py::Root::ring";
    assert_eq!(world.update(&base("town.root -")), [format!("+ {edge}")]);
    assert_eq!(world.update(&base("town.till -")), [format!("- {edge}")]);
}

#[test]
fn all_who_look_for_a_module_find_it_once_it_comes() {
    let mut world = Live::default();
    let file = |path| format!("{path}\n  use .shop open\n  run\n    > open\n");
    assert!(world.update(&(file("a.py") + &file("b.py"))).is_empty());
    let added = world.update("shop.py\n  open\n");
    assert_eq!(added, ["+ a.py::run -> shop.py::open", "+ b.py::run -> shop.py::open"]);
}

#[test]
fn a_module_that_gets_something_is_no_file_anymore() {
    let mut world = Live::default();
    let till = "src/till.rs\n  ring\nsrc/day.rs\n  run\n    > crate::till::ring\n";
    let added = world.update(&format!("src/lib.rs\n  till\n{till}"));
    assert_eq!(added, ["+ src/day.rs::run -> src/till.rs::ring"]);
    assert_eq!(
        world.update("src/lib.rs\n  till\n    ring\n"),
        ["+ src/day.rs::run -> src/lib.rs::till::ring", "- src/day.rs::run -> src/till.rs::ring"]
    );
}

#[test]
fn what_calls_is_no_module() {
    let mut world = Live::default();
    let till = "src/till.rs\n  run\n    > crate::open\n";
    assert!(world.update(&format!("src/lib.rs\n  open\nsrc/open.rs\n{till}")).is_empty());
    let edge = "src/till.rs::run -> src/lib.rs::open";
    assert_eq!(world.update("src/lib.rs\n  open\n    > close\n"), [format!("+ {edge}")]);
    assert_eq!(world.update("src/lib.rs\n  open\n"), [format!("- {edge}")]);
}

#[test]
fn a_file_is_in_a_module_of_another_file_once_that_has_it() {
    let mut world = Live::default();
    let clone = "src/gen/clone.rs\n  run\n    > super::ring\n";
    assert!(world.update(&format!("src/lib.rs\n  ring\n{clone}")).is_empty());
    let added = world.update("src/lib.rs\n  gen\n    ring\n");
    assert_eq!(added, ["+ src/gen/clone.rs::run -> src/lib.rs::gen::ring"]);
}

#[test]
fn a_method_and_its_overloads_are_one_until_another_comes() {
    let mut world = Live::default();
    let till = "till.py\n  class Till\n    ring\n    ring\n";
    let added = world.update(&format!("{till}day.py\n  run\n    > ?.ring\n"));
    assert_eq!(added, ["+ day.py::run -> till.py::Till::ring#2"]);
    let removed = world.update("bell.py\n  class Bell\n    ring\n");
    assert_eq!(removed, ["- day.py::run -> till.py::Till::ring#2"]);
}

#[test]
fn a_library_is_known_by_its_name() {
    let mut world = Live::default();
    let till = "src/lib.rs\n  use shop open\n  run\n    > open\n";
    let shop = "crates/sale/src/lib.rs\n  open\n";
    assert!(world.update(&format!("{till}{shop}crates/sale/Cargo.toml\n  sale\n")).is_empty());
    let edge = "src/lib.rs::run -> crates/sale/src/lib.rs::open";
    assert_eq!(world.update("crates/sale/Cargo.toml\n  shop\n"), [format!("+ {edge}")]);
    assert_eq!(world.update("crates/sale/src/lib.rs\n  gone\n"), [format!("- {edge}")]);
    assert_eq!(world.update(shop), [format!("+ {edge}")]);
    // It might be either.
    assert_eq!(world.update("old/Cargo.toml\n  shop\n"), [format!("- {edge}")]);
    assert_eq!(world.update("old/Cargo.toml\n  shops\n"), [format!("+ {edge}")]);
}

#[test]
fn what_a_test_brings_in_need_not_be_there_for_others() {
    let file = |path| format!("{path}\n  use shop/till ring\n  run\n    > ring\n");
    let files = file("till.ts") + &file("till.test.ts") + "src/till.ts\n  ring\n";
    let added = Live::default().update(&files);
    assert_eq!(added, ["+ till.test.ts::run -> src/till.ts::ring"]);
}

#[test]
fn a_default_is_known_by_other_names() {
    let mut world = Live::default();
    assert!(world.update("a.ts\n  use ./b - as shop\n  run\n    > shop\nb.ts\n").is_empty());
    let added = world.update("b.ts\n  default\n    open\n");
    assert_eq!(added, ["+ a.ts::run -> b.ts::default"]);
}

#[test]
fn a_method_yields_no_edge_once_too_many_classes_have_one() {
    let mut world = Live::default();
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

/// Files in which so many symbols of each language have the same name.
fn many(of: usize) -> Vec<(String, Facts)> {
    let symbols: Vec<_> = (0..of).map(|number| format!("  class C{number}\n    aaa\n")).collect();
    let symbols = symbols.concat();
    read(&["many.ts", "many.py", "src/many.rs"].map(|path| format!("{path}\n{symbols}")).concat())
}

proptest! {
    #[test]
    fn edits_make_what_reading_everything_afresh_makes(
        of_many in prop::sample::select(vec![0, MANY - 3, MANY - 1, MANY, MANY + 1]),
        batches in worlds::batches(),
    ) {
        let mut calls = Calls::of("eee");
        let mut files: BTreeMap<_, _> = many(of_many).into_iter().collect();
        calls.update(files.iter().map(|(path, facts)| (path.as_str(), Some(facts))), 2);
        let mut world = World::default();
        let mut edges = BTreeSet::new();
        for batch in batches {
            let batch = world.edit(batch);
            let changed = batch.iter().map(|(path, facts)| (path.as_str(), facts.as_ref()));
            let edge_changes = calls.update(changed, 2);
            for change in changes(&calls, &edge_changes) {
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
            let mut fresh = Calls::of("eee");
            fresh.update(files.iter().map(|(path, facts)| (path.as_str(), Some(facts))), 2);
            prop_assert_eq!(shown(&calls), shown(&fresh), "{:?}", world);
            let all: BTreeSet<_> = shown(&fresh)
                .lines()
                .filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned()))
                .collect();
            prop_assert_eq!(&edges, &all);
        }
    }
}
