//! What the tracker asks of whoever knows the symbols of files, and what it tells them. Knows no
//! graph.

use std::fmt;
use std::sync::Arc;

use crate::model::{Lines, SessionKey, TimestampMs};

/// Symbols of a file that one node shows, and callers that one overlap does. Past it what is newest
/// is kept.
pub(super) const MOST: usize = 256;

/// Knows the symbols of files by their ids (`path::Class::method`). All is answered from memory and
/// at once: the tracker's task asks.
pub trait Symbols: fmt::Debug + Send + Sync {
    /// The innermost symbols that `lines` of a file touch; none if it has none that are known. For
    /// several ranges these are the symbols of each.
    fn covered(&self, path: &str, lines: &Lines) -> Vec<Arc<str>>;

    /// The symbols that call `symbol`.
    fn callers(&self, symbol: &str) -> Vec<Arc<str>>;

    /// Hears of a write. Never waits.
    fn wrote(&self, write: &Write<'_>);
}

/// A write that an agent told of, or that the kernel saw a program of it do.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Relative to the workspace; absolute if outside.
    pub path: &'a str,
    /// Lines of the file as it was, or is: it may not be written yet.
    pub lines: &'a Lines,
    pub by: &'a SessionKey,
    pub timestamp_ms: TimestampMs,
}

/// What `lines` of a file cover, in order and each once.
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

/// What an edit of `lines` edits: nothing in particular where it is known to be of none of the file's
/// symbols, and the file (none of them) where it is not known what it is of.
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

/// `known` and what came to it, in order; None if there is nothing.
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
