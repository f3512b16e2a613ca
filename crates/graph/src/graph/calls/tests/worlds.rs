//! Generates small workspaces of one language and their changes, for property tests. Names are few,
//! so that they collide.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::notation::read;
use crate::graph::facts::Facts;

/// The lines of each file, as [`notation`](super::notation) writes them; None: it is no text.
#[derive(Default, Debug)]
pub(super) struct World(BTreeMap<&'static str, Option<Vec<String>>>);

#[derive(Clone, Debug)]
pub(super) enum Edit {
    Gone,
    /// The file is at another path from now on.
    Moved(&'static str),
    NoText,
    Whole(Vec<String>),
    Inserted(Index, Vec<String>),
    Removed(Index),
    /// The subject of a line has another name.
    Renamed(Index, &'static str),
    /// A line with a class loses the class, or a line without one gets it.
    Turned(Index),
    /// A class has other bases.
    Based(Index, String),
}

pub(super) type Batch = Vec<(&'static str, Edit)>;

impl World {
    /// Returns what changed.
    pub(super) fn edit(&mut self, batch: Batch) -> BTreeMap<String, Option<Facts>> {
        let mut paths = Vec::new();
        for (path, edit) in batch {
            paths.push(path);
            if let Edit::Moved(to) = edit {
                paths.push(to);
            }
            self.edit_one(path, edit);
        }
        let facts = |path: &&str| {
            let facts = self.0.get(path).map(|lines| match lines {
                Some(lines) => read(&format!("{path}\n{}", lines.concat())).remove(0).1,
                None => Facts::default(),
            });
            ((*path).to_owned(), facts)
        };
        paths.iter().map(facts).collect()
    }

    fn edit_one(&mut self, path: &'static str, edit: Edit) {
        let before = self.0.remove(path);
        let mut lines = before.clone().flatten().unwrap_or_default();
        let length = lines.len().max(1);
        let at = |index: Index| index.index(length);
        match edit {
            Edit::Gone => return,
            Edit::Moved(to) => {
                self.0.extend(before.map(|lines| (to, lines)));
                return;
            }
            Edit::NoText => {
                self.0.insert(path, None);
                return;
            }
            Edit::Whole(whole) => lines = whole,
            Edit::Inserted(index, part) => {
                let at = at(index).min(lines.len());
                lines.splice(at..at, part);
            }
            Edit::Removed(index) if !lines.is_empty() => drop(lines.remove(at(index))),
            Edit::Renamed(index, name) if !lines.is_empty() => {
                let line = &mut lines[at(index)];
                let before = line.trim_end().trim_end_matches(char::is_alphanumeric).len();
                if before < line.trim_end().len() {
                    line.replace_range(before.., &format!("{name}\n"));
                }
            }
            Edit::Turned(index) if !lines.is_empty() => {
                let line = &mut lines[at(index)];
                let words: Vec<_> = line.split_whitespace().collect();
                match words[..] {
                    ["class", name, ..] => *line = line.replace(line.trim(), name),
                    [name] => *line = line.replace(name, &format!("class {name}")),
                    _ => {}
                }
            }
            Edit::Based(index, bases) => {
                let is_class = |line: &&mut String| line.trim_start().starts_with("class ");
                let mut classes: Vec<_> = lines.iter_mut().filter(is_class).collect();
                if !classes.is_empty() {
                    let line = &mut *classes.remove(index.index(classes.len()));
                    let words: Vec<_> = line.split_whitespace().collect();
                    *line = line.replace(line.trim(), &format!("class {}{bases}", words[1]));
                }
            }
            Edit::Removed(_) | Edit::Renamed(..) | Edit::Turned(_) => {}
        }
        self.0.insert(path, Some(lines));
    }
}

/// At first there are all files that there may be.
pub(super) fn batches() -> impl Strategy<Value = Vec<Batch>> {
    select(SETTINGS).prop_flat_map(|Setting { paths, modules }| {
        let files = vec(file(modules).prop_map(Edit::Whole), paths.len());
        let first = files.prop_map(|files| paths.iter().copied().zip(files).collect());
        let edit = (select(paths), edit(paths, modules));
        (first, vec(vec(edit, 1..4), 1..12)).prop_map(|(first, rest): (Batch, Vec<Batch>)| {
            std::iter::once(first).chain(rest).collect()
        })
    })
}

/// A language: where its files are, and how they name each other.
#[derive(Clone, Copy, Debug)]
struct Setting {
    paths: &'static [&'static str],
    modules: &'static [&'static str],
}

const SETTINGS: &[Setting] = &[
    // So few that most of what is brought in is there.
    Setting { paths: &["aaa.py", "bbb.py", "ddd.py"], modules: &[".aaa", ".bbb", ".ddd", "aaa"] },
    Setting {
        paths: &[
            "aaa.ts",
            "bbb.js",
            "bbb.d.ts",
            "src/aaa.ts",
            "ddd/index.ts",
            "ddd/aaa.ts",
            "ddd/aaa.test.ts",
            "ddd/bbb.test.ts",
            "eee/aaa.spec.ts",
            "packages/ddd/src/index.ts",
        ],
        modules: &[
            "./aaa", "./bbb.js", "../bbb", "..", "./ddd", ".", "=", "@/aaa", "ddd", "@eee/ddd",
            "eee/aaa", "eee",
        ],
    },
    Setting {
        paths: &[
            "aaa.py",
            "bbb.py",
            "__init__.py",
            "bbb/__init__.py",
            "ddd/__init__.py",
            "ddd/aaa.py",
            "ddd/bbb/__init__.py",
            "ddd/bbb/aaa.py",
            "src/ddd/aaa.py",
            "test_aaa.py",
            "tests/aaa.py",
            "tests/ddd/bbb.py",
        ],
        modules: &[
            ".",
            "..",
            ".aaa",
            ".bbb",
            "..ddd",
            "..bbb.aaa",
            "aaa",
            "bbb",
            "ddd",
            "ddd.aaa",
            "ddd.bbb",
            "ddd.bbb.aaa",
            "eee",
            "eee.aaa",
            "eee.ddd",
        ],
    },
    Setting {
        paths: &[
            "src/lib.rs",
            "src/aaa.rs",
            "src/aaa/bbb.rs",
            "src/bbb.rs",
            "src/ddd.rs",
            "src/ddd/mod.rs",
            "src/ddd/aaa.rs",
            "src/aaa/Ccc/ddd.rs",
            "src/eee/aaa/bbb.rs",
            "tests/aaa.rs",
            "tests/bbb.rs",
            "ddd/tests/aaa.rs",
            "Cargo.toml",
            "ddd/Cargo.toml",
            "ddd/src/lib.rs",
            "eee/ddd/Cargo.toml",
            "eee/ddd/lib.rs",
        ],
        modules: &[
            "crate",
            "super",
            "super::super",
            "self",
            "self::aaa",
            "self::aaa::bbb",
            "self::Ccc",
            "super::aaa",
            "crate::aaa",
            "crate::aaa::bbb",
            "crate::bbb",
            "crate::ddd",
            "crate::ddd::aaa",
            "aaa::bbb",
            "bbb",
            "ddd",
            "ddd::aaa",
            "eee",
        ],
    },
];

fn edit(
    paths: &'static [&'static str],
    modules: &'static [&'static str],
) -> impl Strategy<Value = Edit> {
    let part = || prop_oneof![2 => import(modules).prop_map(|line| vec![line]), 1 => symbol()];
    prop_oneof![
        1 => Just(Edit::Gone),
        1 => select(paths).prop_map(Edit::Moved),
        1 => Just(Edit::NoText),
        5 => file(modules).prop_map(Edit::Whole),
        3 => (any::<Index>(), part()).prop_map(|(at, part)| Edit::Inserted(at, part)),
        3 => any::<Index>().prop_map(Edit::Removed),
        3 => (any::<Index>(), name()).prop_map(|(at, name)| Edit::Renamed(at, name)),
        1 => any::<Index>().prop_map(Edit::Turned),
        4 => (any::<Index>(), bases()).prop_map(|(at, bases)| Edit::Based(at, bases)),
    ]
}

fn file(modules: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    let parts = (vec(import(modules), 0..4), vec(symbol(), 0..3));
    parts.prop_map(|(imports, symbols)| imports.into_iter().chain(symbols.concat()).collect())
}

fn import(modules: &'static [&'static str]) -> impl Strategy<Value = String> {
    let form = (select(modules), name(), name(), 0..8_u8);
    form.prop_map(|(module, there, here, form)| match form {
        0..3 => format!("  use {module} *\n"),
        3 => format!("  use {module} -\n"),
        4 => format!("  use {module} - as {here}\n"),
        5 => format!("  use {module} {there} as {here}\n"),
        _ => format!("  use {module} {there}\n"),
    })
}

/// Something at the top, with what stands in it and in that: a class with its methods, modules in each
/// other, a function.
fn symbol() -> impl Strategy<Value = Vec<String>> {
    let innermost = vec(name().prop_map(|name| format!("      {name}\n")), 0..2);
    let inner = (head(), vec(call(), 0..3), innermost).prop_map(|(head, calls, innermost)| {
        let calls = calls.into_iter().map(|call| format!("      > {call}\n"));
        std::iter::once(format!("    {head}\n")).chain(calls).chain(innermost).collect::<Vec<_>>()
    });
    (head(), vec(inner, 1..3)).prop_map(|(head, inner)| {
        std::iter::once(format!("  {head}\n")).chain(inner.concat()).collect()
    })
}

fn head() -> impl Strategy<Value = String> {
    let class = (class(), bases()).prop_map(|(name, bases)| format!("class {name}{bases}"));
    prop_oneof![class, name().prop_map(str::to_owned)]
}

fn bases() -> impl Strategy<Value = String> {
    let base = (select(&["", "", "aaa.", "bbb.", "ddd.aaa."][..]), class());
    let bases = vec(base.prop_map(|(module, name)| format!(" {module}{name}")), 0..3);
    bases.prop_map(|bases| bases.concat())
}

fn call() -> impl Strategy<Value = String> {
    let root = select(&["", "crate::", "self::", "super::"][..]);
    let on = select(&["aaa", "bbb", "ccc", "new_ccc", "Ccc", "ddd", "eee", "Eee"][..]);
    (0..8_u8, root, name(), on, name()).prop_map(|(form, root, first, on, name)| match form {
        0 => name.to_owned(),
        1 => format!("self.{name}"),
        2 => format!("?.{name}"),
        3 => format!("{on}.{name}"),
        4 => format!("{first}.{on}.{name}"),
        5 | 6 => format!("super.{name}"),
        _ => format!("{root}{on}::{name}"),
    })
}

fn class() -> impl Strategy<Value = &'static str> {
    prop_oneof![2 => select(&["Ccc", "Eee"][..]), 1 => name()]
}

/// Some that are like types, one that any value may have, and those that scripts export unseen.
fn name() -> impl Strategy<Value = &'static str> {
    select(&["aaa", "bbb", "Ccc", "ddd", "Eee", "get", "default", "exports"][..])
}
