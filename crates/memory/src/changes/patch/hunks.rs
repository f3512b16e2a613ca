//! Two texts as the hunks of a unified diff, as git writes them.

use gix_imara_diff::{Algorithm, Diff, Hunk, InternedInput};

use super::{PatchLine, PatchLines};
use crate::changes::merge::lines;

/// Lines around a change.
const CONTEXT: u32 = 3;

/// Bytes of the line that a hunk's header shows.
const LONGEST_HEADING: usize = 80;

/// The counts of a diff of two texts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Counts {
    pub(super) added: usize,
    pub(super) removed: usize,
    /// Bytes of the old text's lines that the new one keeps.
    pub(super) kept: usize,
}

/// Writes the hunks that turn `old` into `new`.
pub(super) fn write(old: &[u8], new: &[u8], out: &mut PatchLines) -> Counts {
    let (hunks, old, new) = diff(old, new);
    let mut counts = Counts { kept: old.iter().map(|line| line.len()).sum(), ..Counts::default() };
    for hunk in &hunks {
        counts.removed += hunk.before.len();
        counts.added += hunk.after.len();
        counts.kept -= slice(&old, &hunk.before).iter().map(|line| line.len()).sum::<usize>();
    }
    let mut rest = &hunks[..];
    while let Some(first) = rest.first() {
        let apart = |pair: &[Hunk]| pair[1].before.start - pair[0].before.end > 2 * CONTEXT;
        let count = rest.windows(2).position(apart).map_or(rest.len(), |at| at + 1);
        let (group, others) = rest.split_at(count);
        rest = others;
        let last = group.last().unwrap_or(first);
        let before = first.before.start.min(CONTEXT);
        let behind = CONTEXT.min(length(&old) - last.before.end);
        let of_old = first.before.start - before..last.before.end + behind;
        let of_new = first.after.start - before..last.after.end + behind;
        let mut header = format!("@@ -{} +{} @@", range(&of_old), range(&of_new)).into_bytes();
        if let Some(heading) = heading(&old, of_old.start) {
            header.push(b' ');
            header.extend_from_slice(heading);
        }
        header.push(b'\n');
        out.push(PatchLine::Hunk, &header);
        let mut at = of_old.start;
        for hunk in group {
            each(out, PatchLine::Context, b' ', slice(&old, &(at..hunk.before.start)));
            each(out, PatchLine::Removed, b'-', slice(&old, &hunk.before));
            each(out, PatchLine::Added, b'+', slice(&new, &hunk.after));
            at = hunk.before.end;
        }
        each(out, PatchLine::Context, b' ', slice(&old, &(at..of_old.end)));
    }
    counts
}

fn diff<'a>(old: &'a [u8], new: &'a [u8]) -> (Vec<Hunk>, Vec<&'a [u8]>, Vec<&'a [u8]>) {
    let input = InternedInput::new(old, new);
    // The default of `git diff`.
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    (diff.hunks().collect(), lines(old), lines(new))
}

fn slice<'a, 'b>(lines: &'b [&'a [u8]], range: &std::ops::Range<u32>) -> &'b [&'a [u8]] {
    &lines[range.start as usize..range.end as usize]
}

fn length(lines: &[&[u8]]) -> u32 {
    u32::try_from(lines.len()).unwrap_or(u32::MAX)
}

/// Lines from 1; an empty range stands behind the line of its number.
fn range(range: &std::ops::Range<u32>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        count => format!("{},{count}", range.start + 1),
    }
}

/// The nearest line before a hunk that looks like the beginning of a function.
fn heading<'a>(old: &[&'a [u8]], start: u32) -> Option<&'a [u8]> {
    let begins = |line: &&&[u8]| {
        line.first().is_some_and(|byte| byte.is_ascii_alphabetic() || b"_$".contains(byte))
    };
    let line = old[..start as usize].iter().rev().find(begins)?;
    Some(line[..line.len().min(LONGEST_HEADING)].trim_ascii_end())
}

fn each(out: &mut PatchLines, kind: PatchLine, mark: u8, lines: &[&[u8]]) {
    for line in lines {
        let mut marked = Vec::with_capacity(line.len() + 2);
        marked.push(mark);
        marked.extend_from_slice(line);
        if line.ends_with(b"\n") {
            out.push(kind, &marked);
        } else {
            marked.push(b'\n');
            out.push(kind, &marked);
            out.push(PatchLine::Context, b"\\ No newline at end of file\n");
        }
    }
}
