//! Merges three versions of a content by lines, exact in bytes.
//!
//! Uses the diffs of `imara-diff`, which stay fast on any input. `diffy` merges too, but its time
//! grows with the square of the difference; `gix-merge` brings forty crates.

use std::ops::Range;

use gix_imara_diff::{Algorithm, Diff, Hunk, InternedInput};
use memchr::memchr;

/// Bytes of the largest content that is merged by lines.
pub(super) const MOST_MERGED: usize = 64 << 20;

/// Bytes in which git looks for a NUL.
const PROBED: usize = 8_000;

/// The result of a merge of three versions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Merge {
    /// The merged content.
    Clean(Vec<u8>),
    /// Both sides changed the same lines, or neighbouring ones, in different ways.
    Conflict,
}

/// Whether git takes the content for binary.
pub fn is_binary(content: &[u8]) -> bool {
    memchr(0, &content[..content.len().min(PROBED)]).is_some()
}

/// For each line of `new`, whether it is missing in `old`.
pub fn added_lines(old: &[u8], new: &[u8]) -> Vec<bool> {
    let side = Side::new(old, new);
    let mut added = vec![false; side.lines.len()];
    for hunk in &side.hunks {
        added[hunk.after.start as usize..hunk.after.end as usize].fill(true);
    }
    added
}

/// Applies the change from `base` to `theirs` to `ours`. Lines are compared with their ends, so
/// that line ends, a missing last one and a byte-order mark stay as they are. Binary contents are
/// merged if one side is unchanged.
pub fn merge3(base: &[u8], ours: &[u8], theirs: &[u8]) -> Merge {
    if base == ours || ours == theirs {
        return Merge::Clean(theirs.to_vec());
    }
    if base == theirs {
        return Merge::Clean(ours.to_vec());
    }
    let has_lines = |side: &[u8]| side.len() <= MOST_MERGED && !is_binary(side);
    if ![base, ours, theirs].into_iter().all(has_lines) {
        return Merge::Conflict;
    }
    merged(base, ours, theirs).map_or(Merge::Conflict, Merge::Clean)
}

fn merged(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    let our = Side::new(base, ours);
    let their = Side::new(base, theirs);
    let base_lines = lines(base);
    let mut out = Vec::with_capacity(ours.len().max(theirs.len()));
    let (mut at, mut next_our, mut next_their) = (0, 0, 0);
    loop {
        let (first_our, first_their) = (our.hunks.get(next_our), their.hunks.get(next_their));
        let starts = [first_our, first_their].into_iter().flatten().map(|hunk| hunk.before.start);
        let Some(start) = starts.min() else { break };
        // All hunks of both sides that touch each other.
        let (from_our, from_their) = (next_our, next_their);
        let mut end = start;
        loop {
            let reached = (end, next_our, next_their);
            next_our = our.reach(next_our, &mut end);
            next_their = their.reach(next_their, &mut end);
            if reached == (end, next_our, next_their) {
                break;
            }
        }
        for line in &base_lines[at..start as usize] {
            out.extend_from_slice(line);
        }
        let (of_our, of_their) =
            (&our.hunks[from_our..next_our], &their.hunks[from_their..next_their]);
        our.resolve(&their, of_our, of_their, &(start..end), &mut out)?;
        at = end as usize;
    }
    for line in &base_lines[at..] {
        out.extend_from_slice(line);
    }
    Some(out)
}

/// One side, with its changes of the base.
pub(super) struct Side<'a> {
    pub(super) lines: Vec<&'a [u8]>,
    pub(super) hunks: Vec<Hunk>,
}

impl<'a> Side<'a> {
    pub(super) fn new(base: &'a [u8], side: &'a [u8]) -> Self {
        let input = InternedInput::new(base, side);
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        diff.postprocess_no_heuristic(&input);
        Self { lines: lines(side), hunks: diff.hunks().collect() }
    }

    /// The index of the first hunk from `next` on that starts behind `end`; moves `end` along the
    /// others.
    fn reach(&self, mut next: usize, end: &mut u32) -> usize {
        while let Some(hunk) = self.hunks.get(next).filter(|hunk| hunk.before.start <= *end) {
            *end = (*end).max(hunk.before.end);
            next += 1;
        }
        next
    }

    /// Writes the merged lines for the lines `range` of the base; None if the sides disagree.
    fn resolve(
        &self,
        their: &Self,
        of_our: &[Hunk],
        of_their: &[Hunk],
        range: &Range<u32>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let lines: Vec<&[u8]> = match (of_our, of_their) {
            (_, []) => self.at(of_our, range).to_vec(),
            ([], _) => their.at(of_their, range).to_vec(),
            _ => {
                let (ours, theirs) = (self.at(of_our, range), their.at(of_their, range));
                if ours == theirs {
                    ours.to_vec()
                } else if let ([one], [other]) = (of_our, of_their) {
                    beside(self, one, their, other)?
                } else {
                    return None;
                }
            }
        };
        for line in lines {
            out.extend_from_slice(line);
        }
        Some(())
    }

    /// The lines of this side that stand for the lines `range` of the base, which `hunks` change.
    fn at(&self, hunks: &[Hunk], range: &Range<u32>) -> &[&'a [u8]] {
        let [first, .., last] = hunks else {
            let [only] = hunks else { return &[] };
            return &self.lines[lines_of(only, only, range)];
        };
        &self.lines[lines_of(first, last, range)]
    }
}

fn lines_of(first: &Hunk, last: &Hunk, range: &Range<u32>) -> Range<usize> {
    let start = first.after.start - (first.before.start - range.start);
    let end = last.after.end + (range.end - last.before.end);
    start as usize..end as usize
}

/// Lines that one side removed beside lines that the other added: as when two agents append to a
/// file in turn, and the lines of one are taken back. Other neighbouring changes are conflicts, as
/// in git.
fn beside<'a>(
    one: &Side<'a>,
    ours: &Hunk,
    other: &Side<'a>,
    theirs: &Hunk,
) -> Option<Vec<&'a [u8]>> {
    let (removed, side, added) = if ours.is_pure_removal() && theirs.is_pure_insertion() {
        (ours, other, theirs)
    } else if theirs.is_pure_removal() && ours.is_pure_insertion() {
        (theirs, one, ours)
    } else {
        return None;
    };
    let at = added.before.start;
    let is_beside = at == removed.before.start || at == removed.before.end;
    let added = added.after.start as usize..added.after.end as usize;
    is_beside.then(|| side.lines[added].to_vec())
}

/// The lines of a content, with their ends.
pub(super) fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|byte| *byte == b'\n').collect()
}
