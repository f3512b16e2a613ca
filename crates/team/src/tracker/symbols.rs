//! The tracker's port to the code graph: queries symbols, reports writes.

use std::fmt;
use std::sync::Arc;

use crate::model::{Lines, SessionKey, TimestampMs};

/// Symbols of one node, and callers of one overlap. Over it the newest are kept.
pub(super) const MOST: usize = 256;

/// Looks up symbols by their ids (`path::Class::method`). The tracker's task calls it, so every
/// answer must come from memory and at once.
pub trait Symbols: fmt::Debug + Send + Sync {
    /// The innermost symbols that `lines` of a file touch, for each range; empty if none is known.
    fn covered(&self, path: &str, lines: &Lines) -> Vec<Arc<str>>;

    /// The symbols that call `symbol`.
    fn callers(&self, symbol: &str) -> Vec<Arc<str>>;

    /// Records a write. Never waits.
    fn wrote(&self, write: &Write<'_>);
}

/// A write claimed by an agent, or seen by the kernel in one of its programs.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Relative to the workspace; absolute if outside.
    pub path: &'a str,
    /// Lines of the file, before or after the write: it may not be done yet.
    pub lines: &'a Lines,
    pub by: &'a SessionKey,
    pub timestamp_ms: TimestampMs,
}

/// The symbols that `lines` of a file cover, sorted, each once.
pub(super) fn covered(
    symbols: Option<&Arc<dyn Symbols>>,
    path: &str,
    lines: &Lines,
) -> Vec<Arc<str>> {
    let Some(symbols) = symbols.filter(|_| lines.are_known()) else { return Vec::new() };
    let mut covered = symbols.covered(path, lines);
    covered.sort_unstable();
    covered.dedup();
    covered.truncate(MOST);
    covered
}

/// The symbols that an edit of `lines` changes. None if the edit is outside the file's symbols;
/// empty if the lines or the file's symbols are not known.
pub(super) fn edited_by(
    symbols: Option<&Arc<dyn Symbols>>,
    path: &str,
    lines: &Lines,
) -> Option<Vec<Arc<str>>> {
    let edited = covered(symbols, path, lines);
    let beside =
        edited.is_empty() && lines.are_known() && !covered(symbols, path, &Lines::all()).is_empty();
    (!beside).then_some(edited)
}

/// `known` and `new` merged and sorted; None if both are empty.
pub(super) fn joined(known: Option<&Arc<[Arc<str>]>>, new: &[Arc<str>]) -> Option<Arc<[Arc<str>]>> {
    let Some(known) = known else { return (!new.is_empty()).then(|| new.into()) };
    if new.iter().all(|symbol| known.binary_search(symbol).is_ok()) {
        return Some(Arc::clone(known));
    }
    let older = known.iter().filter(|symbol| new.binary_search(symbol).is_err());
    let mut all: Vec<_> = new.iter().chain(older).take(MOST).cloned().collect();
    all.sort_unstable();
    Some(all.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn past_the_bound_what_is_newest_is_kept() {
        let name = |number: usize| Arc::<str>::from(format!("{number:04}"));
        let of = |from: usize, to: usize| (from..to).map(name).collect::<Vec<_>>();
        assert_eq!(joined(None, &[]), None);
        let known = joined(None, &of(0, MOST)).unwrap();
        assert!(Arc::ptr_eq(&known, &joined(Some(&known), &of(3, 5)).unwrap()), "nothing came");
        let more = joined(Some(&known), &of(900, 902)).unwrap();
        assert_eq!((more.len(), more.is_sorted()), (MOST, true));
        assert!(more.contains(&name(900)) && more.contains(&name(901)));
    }
}
