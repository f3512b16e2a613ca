//! Files written down as what they say, not as text, so that the rules are tried without a grammar:
//!
//! ```text
//! src/shop.rs
//!   use crate::till Till          `use MODULE NAME`, `… as ALIAS`, NAME `-`: the module, `*`: all;
//!                                 MODULE `=`: this file itself
//!   class Shop Market             behind a class its bases
//!     open                        in a class a method, else a function
//!       > self.close              a call; `?.close` is on a value, `super.close` on the base
//! Cargo.toml
//!   town                          of a manifest: the library of its package
//! ```

use crate::graph::calls::names::number;
use crate::graph::calls::{Calls, EdgeChanges};
use crate::graph::facts::{Base, Call, Facts, Import, Kind, Language, Lines, Receiver, Symbol};
use crate::graph::manifest;

pub(super) type Files = Vec<(String, Facts)>;

/// The edges of a workspace, a line each, with the rule that made it.
pub(super) fn edges(files: &str) -> String {
    edges_in("", files)
}

/// The same, of a workspace whose folder has a name.
pub(super) fn edges_in(root: &str, files: &str) -> String {
    let mut calls = Calls::of(root);
    let files = read(files);
    calls.update(files.iter().map(|(path, facts)| (path.as_str(), Some(facts))), 2);
    shown(&calls)
}

pub(super) fn shown(calls: &Calls) -> String {
    let mut lines: Vec<_> = calls
        .edges()
        .map(|edge| format!("{} -> {} {:?}\n", id(calls, edge.from), id(calls, edge.to), edge.rule))
        .collect();
    lines.sort();
    lines.concat()
}

pub(super) fn changes(calls: &Calls, edge_changes: &EdgeChanges) -> Vec<String> {
    let line = |sign, edge: &crate::graph::calls::Edge| {
        format!("{sign} {} -> {}", id(calls, edge.from), id(calls, edge.to))
    };
    let mut lines: Vec<_> = edge_changes.removed.iter().map(|edge| line('-', edge)).collect();
    lines.extend(edge_changes.added.iter().map(|edge| line('+', edge)));
    lines.sort();
    lines
}

fn id(calls: &Calls, end: crate::graph::calls::NodeId) -> String {
    let mut text = String::new();
    calls.write_id(end, &mut text);
    text
}

pub(super) fn read(text: &str) -> Files {
    let mut files: Files = Vec::new();
    let mut open: Vec<(usize, u32)> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let depth = line.len() - line.trim_start().len();
        let words: Vec<_> = line.split_whitespace().collect();
        if depth == 0 {
            let language = Language::of(std::path::Path::new(words[0]));
            files.push((words[0].to_owned(), Facts { language, ..Facts::default() }));
            open.clear();
            continue;
        }
        let Some((path, facts)) = files.last_mut() else { panic!("no file above: {line}") };
        if manifest::is_manifest(std::path::Path::new(path)) {
            facts.package = words.last().map(|name| (*name).into());
            continue;
        }
        open.retain(|(above, _)| *above < depth);
        let parent = open.last().map(|(_, at)| *at);
        match words[..] {
            ["use", module, name, ref alias @ ..] => facts.imports.push(Import {
                module: if module == "=" { "".into() } else { module.into() },
                name: (!["-", "*"].contains(&name)).then(|| name.into()),
                alias: match alias {
                    ["as", alias] => (*alias).into(),
                    _ if name == "-" => module.into(),
                    _ => name.into(),
                },
                exported: true,
            }),
            [">", call] => facts.calls.push(Call {
                name: call.rsplit([':', '.']).next().unwrap_or(call).into(),
                on: receiver(call),
                within: parent,
            }),
            ["class", name, ref bases @ ..] => {
                let class = number(facts.symbols.len());
                open.push((depth, class));
                facts.bases.extend(bases.iter().map(|path| Base { class, path: (*path).into() }));
                facts.symbols.push(symbol(name, Kind::Class, parent));
            }
            [name] => {
                let in_class =
                    parent.is_some_and(|at| facts.symbols[at as usize].kind == Kind::Class);
                let kind = if in_class { Kind::Method } else { Kind::Function };
                open.push((depth, number(facts.symbols.len())));
                facts.symbols.push(symbol(name, kind, parent));
            }
            _ => panic!("not understood: {line}"),
        }
    }
    files
}

fn receiver(call: &str) -> Receiver {
    let Some(at) = call.rfind([':', '.']) else { return Receiver::Nothing };
    match &call[..=at] {
        "self." | "Self::" | "this." => Receiver::Own,
        "super." => Receiver::Base,
        "?." => Receiver::Value,
        path => match path.strip_suffix("::") {
            Some(path) => Receiver::Within(path.into()),
            None => Receiver::Named(path.trim_end_matches('.').into()),
        },
    }
}

fn symbol(name: &str, kind: Kind, parent: Option<u32>) -> Symbol {
    Symbol { name: name.into(), kind, parent, lines: Lines { start: 1, end: 1 }, tokens: None }
}
