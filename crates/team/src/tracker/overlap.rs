//! Finds overlaps: one agent edited a symbol that another one edited or has in its context. Knows
//! which sessions have a file in context, and which overlaps were published; owns no map.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::heat::{Changes, Hold};
use crate::model::OverlapKind;

/// Identifies a session.
type Number = u64;

/// The overlaps of two sessions in a file, by symbol.
type FoundInFile<'a> = (&'a Arc<str>, (Number, Number), &'a BTreeMap<Arc<str>, FoundOverlap>);

/// An overlap of two sessions at one symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FoundOverlap {
    pub(super) kind: OverlapKind,
    /// Whether the first of the two edited it.
    pub(super) by_first: bool,
}

#[derive(Default, Debug)]
pub(super) struct Overlaps {
    files: HashMap<Arc<str>, EditedFile>,
}

/// A file in the context of at least one session.
#[derive(Default, Debug)]
struct EditedFile {
    holders: Vec<Number>,
    /// The overlaps of each pair of holders, by symbol.
    published: HashMap<(Number, Number), BTreeMap<Arc<str>, FoundOverlap>>,
}

impl Overlaps {
    /// Applies a session's changes; returns the changed files that other sessions hold, too.
    pub(super) fn apply(&mut self, number: Number, changes: &Changes) -> Vec<Arc<str>> {
        let mut shared = Vec::new();
        for node in &changes.updates {
            if !node.in_context {
                self.leave(number, &node.path);
                continue;
            }
            let file = self.files.entry(Arc::clone(&node.path)).or_default();
            if !file.holders.contains(&number) {
                file.holders.push(number);
            }
            if file.holders.len() > 1 {
                shared.push(Arc::clone(&node.path));
            }
        }
        for path in &changes.removed {
            self.leave(number, path);
        }
        shared
    }

    /// The sessions that have the file in context.
    pub(super) fn holders(&self, path: &str) -> &[Number] {
        self.files.get(path).map_or(&[], |file| &file.holders)
    }

    /// Records the overlaps of two sessions in a file, and returns the new ones.
    pub(super) fn record(
        &mut self,
        path: &str,
        between: (Number, Number),
        found: BTreeMap<Arc<str>, FoundOverlap>,
    ) -> Vec<(Arc<str>, FoundOverlap)> {
        let Some(file) = self.files.get_mut(path) else { return Vec::new() };
        let published = file.published.get(&between);
        let is_new = |(symbol, found): &(&Arc<str>, &FoundOverlap)| {
            published.is_none_or(|published| published.get(*symbol) != Some(*found))
        };
        let new = found.iter().filter(is_new).map(|(symbol, found)| (Arc::clone(symbol), *found));
        let new = new.collect();
        if found.is_empty() {
            file.published.remove(&between);
        } else {
            file.published.insert(between, found);
        }
        new
    }

    /// The overlaps of each pair of sessions, by path.
    pub(super) fn current(&self) -> impl Iterator<Item = FoundInFile<'_>> {
        self.files.iter().flat_map(|(path, file)| {
            file.published.iter().map(move |(between, found)| (path, *between, found))
        })
    }

    fn leave(&mut self, number: Number, path: &Arc<str>) {
        let Some(file) = self.files.get_mut(path) else { return };
        file.holders.retain(|holder| *holder != number);
        file.published.retain(|between, _| between.0 != number && between.1 != number);
        if file.holders.is_empty() {
            self.files.remove(path);
        }
    }
}

/// The overlaps of two sessions at a file. Unknown symbols count as the whole file.
pub(super) fn between(
    path: &Arc<str>,
    first: Hold<'_>,
    second: Hold<'_>,
) -> BTreeMap<Arc<str>, FoundOverlap> {
    let mut all = BTreeMap::new();
    for (editor, other, by_first) in [(first, second, true), (second, first, false)] {
        let Some(edited) = editor.edited else { continue };
        if edited.is_empty() {
            let kind = match other.edited {
                None => OverlapKind::Context,
                Some([]) => OverlapKind::Edit,
                // The symbols that the other edited name it.
                Some(_) => continue,
            };
            all.entry(Arc::clone(path)).or_insert(FoundOverlap { kind, by_first });
        }
        for symbol in edited {
            let is_among = |symbols: &[Arc<str>]| symbols.is_empty() || symbols.contains(symbol);
            let kind = if other.edited.is_some_and(is_among) {
                OverlapKind::Edit
            } else if other.symbols.is_none_or(is_among) {
                OverlapKind::Context
            } else {
                continue;
            };
            all.entry(Arc::clone(symbol)).or_insert(FoundOverlap { kind, by_first });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols(names: &str) -> Vec<Arc<str>> {
        names.split_whitespace().map(Arc::from).collect()
    }

    /// `-` for unknown symbols or no edit, `*` for an edit of unknown symbols.
    fn check(first: (&str, &str), second: (&str, &str), expected: &str) {
        let known = |names: &str| (names != "-").then(|| symbols(names.trim_matches('*')));
        let (of_first, of_second) = (known(first.0), known(second.0));
        let (by_first, by_second) = (known(first.1), known(second.1));
        let one =
            Hold { symbols: of_first.as_deref(), edited: by_first.as_deref(), timestamp_ms: 0 };
        let two =
            Hold { symbols: of_second.as_deref(), edited: by_second.as_deref(), timestamp_ms: 0 };
        let all = between(&"f".into(), one, two);
        let text = |(symbol, found): (&Arc<str>, &FoundOverlap)| {
            let side = if found.by_first { 1 } else { 2 };
            format!("{} {symbol} {side}", found.kind.as_str())
        };
        let all: Vec<_> = all.iter().map(text).collect();
        assert_eq!(all.join(", "), expected, "{first:?} {second:?}");
    }

    #[test]
    fn edits_meet_edits_and_what_others_have_in_context() {
        check(("a b", "-"), ("a", "-"), "");
        check(("a", "a"), ("b", "b"), "");
        check(("a", "a"), ("a b", "b"), "context a 1");
        check(("a", "a"), ("a", "a"), "edit a 1");
        check(("a b", "a"), ("a b", "b"), "context a 1, context b 2");
        check(("-", "-"), ("a b", "a"), "context a 2");
    }

    #[test]
    fn what_is_not_known_is_the_whole_file() {
        check(("-", "*"), ("-", "-"), "context f 1");
        check(("-", "*"), ("-", "*"), "edit f 1");
        check(("-", "*"), ("a", "-"), "context f 1");
        check(("-", "*"), ("a b", "a"), "edit a 2");
        check(("a", "a"), ("-", "-"), "context a 1");
    }
}
