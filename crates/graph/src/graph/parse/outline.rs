//! The symbols of a file in order, each with its parent.

use std::collections::HashMap;
use std::ops::Range;

use super::name;
use crate::graph::facts::{Kind, Lines, Symbol};
use crate::graph::languages::Role;

/// The depth of symbols; deeper ones are children of the last one at this depth.
const DEEPEST: usize = 32;

/// A definition, as the query finds it.
pub(super) struct Definition {
    pub(super) role: Role,
    pub(super) name: Range<usize>,
    pub(super) bytes: Range<usize>,
    pub(super) lines: Lines,
    /// The pattern that found it. If several find the same name, the first one gives the role.
    pub(super) pattern: usize,
}

pub(super) struct Outline {
    pub(super) symbols: Vec<Symbol>,
    /// Whether each symbol is a module.
    pub(super) modules: Vec<bool>,
    /// The innermost symbol around each place.
    pub(super) within: Vec<Option<u32>>,
}

/// A definition that is a symbol, or extends one.
struct Entry {
    name: Box<str>,
    role: Role,
    lines: Lines,
    end: usize,
    parent: Option<usize>,
}

/// Makes the outline. `places` are sorted positions whose innermost symbol is needed.
pub(super) fn outline(definitions: Vec<Definition>, places: &[usize], text: &[u8]) -> Outline {
    let mut entries: Vec<Entry> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut holders = Vec::with_capacity(places.len());
    let mut places = places.iter().copied().peekable();
    for definition in once_each(definitions) {
        while let Some(place) = places.next_if(|place| *place < definition.bytes.start) {
            close(&mut open, &entries, place);
            holders.push(open.last().copied());
        }
        close(&mut open, &entries, definition.bytes.start);
        let local = open.iter().any(|entry| entries[*entry].role == Role::Function);
        if definition.role == Role::Constant && local {
            continue;
        }
        let mut name = name(text, &definition.name);
        if definition.role == Role::Extension {
            name = type_name(&name);
        }
        if name.is_empty() {
            continue;
        }
        entries.push(Entry {
            name,
            role: definition.role,
            lines: definition.lines,
            end: definition.bytes.end,
            parent: open.last().copied(),
        });
        if open.len() < DEEPEST {
            open.push(entries.len() - 1);
        }
    }
    for place in places {
        close(&mut open, &entries, place);
        holders.push(open.last().copied());
    }
    let mut outline = symbols(entries);
    let symbol_of = std::mem::take(&mut outline.within);
    outline.within = holders.into_iter().map(|holder| symbol_of[holder?]).collect();
    outline
}

/// Merges the definitions of each name into one that spans them all; outer ones first.
fn once_each(mut definitions: Vec<Definition>) -> Vec<Definition> {
    definitions.sort_by_key(|definition| (definition.name.start, definition.pattern));
    definitions.dedup_by(|again, first| {
        let same = again.name == first.name;
        if same {
            first.bytes.start = first.bytes.start.min(again.bytes.start);
            first.bytes.end = first.bytes.end.max(again.bytes.end);
            first.lines.start = first.lines.start.min(again.lines.start);
            first.lines.end = first.lines.end.max(again.lines.end);
        }
        same
    });
    definitions.sort_by_key(|definition| (definition.bytes.start, definition.name.start));
    definitions
}

fn close(open: &mut Vec<usize>, entries: &[Entry], at: usize) {
    while open.pop_if(|entry| entries[*entry].end <= at).is_some() {}
}

/// Makes symbols of entries; `within` is the symbol of each entry.
fn symbols(mut entries: Vec<Entry>) -> Outline {
    let home = homes(&entries);
    let mut symbols: Vec<Symbol> = Vec::with_capacity(entries.len());
    let mut modules = Vec::with_capacity(entries.len());
    let mut within: Vec<Option<u32>> = vec![None; entries.len()];
    let mut chain = Vec::new();
    for at in 0..entries.len() {
        // The parent comes first, though it may be written later.
        let mut next = Some(home[at]);
        while let Some(at) = next.filter(|at| within[*at].is_none()) {
            chain.push(at);
            next = entries[at].parent.map(|parent| home[parent]);
        }
        while let Some(at) = chain.pop() {
            let entry = &mut entries[at];
            let parent = entry.parent.and_then(|parent| within[home[parent]]);
            let holder = parent.and_then(|parent| symbols.get(parent as usize));
            let in_class = holder.is_some_and(|symbol| symbol.kind == Kind::Class);
            within[at] = u32::try_from(symbols.len()).ok();
            modules.push(entry.role == Role::Module);
            symbols.push(Symbol {
                name: std::mem::take(&mut entry.name),
                kind: match entry.role {
                    Role::Class | Role::Extension => Kind::Class,
                    Role::Function if in_class => Kind::Method,
                    _ => Kind::Function,
                },
                parent,
                lines: entry.lines,
                tokens: None,
            });
        }
        within[at] = within[home[at]];
    }
    Outline { symbols, modules, within }
}

/// For each entry the one that becomes its symbol: itself; for an extension the type, else the first
/// extension of it.
fn homes(entries: &[Entry]) -> Vec<usize> {
    let mut beside = HashMap::new();
    let mut anywhere = HashMap::new();
    // Types in extensions are left out of `anywhere`: two could extend each other's.
    let mut extends: Vec<bool> = Vec::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate() {
        let inside = entry.parent.is_some_and(|parent| extends[parent]);
        extends.push(inside || entry.role == Role::Extension);
        if entry.role == Role::Class {
            beside.entry((entry.parent, &entry.name)).or_insert(at);
            if !inside {
                anywhere.entry(&entry.name).or_insert(at);
            }
        }
    }
    let mut homes = Vec::with_capacity(entries.len());
    for (at, entry) in entries.iter().enumerate() {
        homes.push(if entry.role == Role::Extension {
            let class = anywhere.get(&entry.name).copied();
            *beside.entry((entry.parent, &entry.name)).or_insert(class.unwrap_or(at))
        } else {
            at
        });
    }
    homes
}

/// `Shop` of `&'a mut town::Shop<T>`.
fn type_name(written: &str) -> Box<str> {
    let mut rest = written.trim_start();
    loop {
        let before = rest;
        rest = rest.trim_start_matches(['&', '*', ' ']);
        if rest.starts_with('\'') {
            rest = rest.split_once(' ').map_or("", |(_, rest)| rest);
        }
        for word in ["mut ", "const ", "dyn "] {
            rest = rest.strip_prefix(word).unwrap_or(rest);
        }
        if rest == before {
            break;
        }
    }
    let plain = rest.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == ':');
    if plain {
        rest = rest.split(['<', '(']).next().unwrap_or(rest);
        rest = rest.rsplit("::").next().unwrap_or(rest);
    }
    rest.split_whitespace().collect::<Vec<_>>().join(" ").into()
}
