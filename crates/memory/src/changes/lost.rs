//! Whether a write takes back what somebody else wrote before it.

use super::merge::{MOST_MERGED, Side, is_binary, lines};

/// Whether `ours`, which was written over `theirs`, changes lines that `theirs` has and `base` had
/// not, or has lines again that `theirs` removed. Contents without lines are compared as a whole.
pub fn loses(base: &[u8], theirs: &[u8], ours: &[u8]) -> bool {
    if base == theirs || theirs == ours {
        return false;
    }
    let has_lines = |side: &[u8]| side.len() <= MOST_MERGED && !is_binary(side);
    if ![base, theirs, ours].into_iter().all(has_lines) {
        return true;
    }
    let (their, our) = (Side::new(base, theirs), Side::new(theirs, ours));
    let base = lines(base);
    their.hunks.iter().any(|written| {
        let (added, removed) = (&written.after, &written.before);
        our.hunks.iter().any(|over| {
            let overlaps = over.before.start < added.end && added.start < over.before.end;
            let touches = over.before.start <= added.start && added.start <= over.before.end;
            let removed = &base[removed.start as usize..removed.end as usize];
            let put = &our.lines[over.after.start as usize..over.after.end as usize];
            let is_back = !removed.is_empty()
                && added.is_empty()
                && put.windows(removed.len()).any(|lines| lines == removed);
            overlaps || touches && is_back
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_keeps_what_another_wrote_loses_nothing() {
        let loses = |base: &str, theirs: &str, ours: &str| {
            loses(base.as_bytes(), theirs.as_bytes(), ours.as_bytes())
        };
        // As the other left it, appended to, and changed elsewhere.
        assert!(!loses("a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\n"));
        assert!(!loses("a\nb\nc\n", "a\nB\nc\n", "a\nB\nc\nd\n"));
        assert!(!loses("a\nb\nc\nd\n", "a\nB\nc\nd\n", "a\nB\nc\nD\n"));
        assert!(!loses("", "a\n", "a\nb\n"));
        // A line of the other's is gone, changed, or back.
        assert!(loses("a\nb\nc\nd\n", "a\nB\nc\nd\n", "a\nb\nc\nD\n"));
        assert!(loses("a\nb\nc\n", "a\nB\nc\n", "a\nBB\nc\n"));
        assert!(loses("a\nb\nc\n", "a\nc\n", "a\nb\nc\nd\n"));
        assert!(loses("", "a\n", "b\n"));
        assert!(loses("", "a\n", ""));
    }

    #[test]
    fn contents_without_lines_are_compared_as_a_whole() {
        assert!(loses(b"\0a", b"\0b", b"\0c"));
        assert!(!loses(b"\0a", b"\0b", b"\0b"));
        assert!(!loses(b"\0a", b"\0a", b"\0b"));
    }
}
