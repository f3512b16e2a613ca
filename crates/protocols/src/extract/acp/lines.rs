//! The lines of a file that an access covers: from the range in a request or input, or from the
//! texts of a change. Does not know the disk; lines count from 1.

use gix_imara_diff::{Algorithm, Diff, InternedInput, TokenSource};
use memchr::memmem;

use super::update::typed;
use crate::extract::json::Members;
use crate::model::Lines;

/// Bytes of the largest file or text to diff.
pub(crate) const LONGEST_TEXT: usize = 256 * 1024;

/// The lines that an `fs/read_text_file` reads.
pub(super) fn of_read(params: &Members<'_>) -> Lines {
    let number = |name| params.get(name).and_then(typed::<u32>);
    let first = number("line").unwrap_or(1).max(1);
    let last = number("limit").map_or(u32::MAX, |limit| first.saturating_add(limit) - 1);
    Lines::range(first, last)
}

/// The range in the input of a read; None if it has none. Some agents count offsets from 0, some
/// from 1: the result has the lines that both readings share, or of a single line both.
pub(super) fn of_input(raw: &str) -> Option<Lines> {
    let members = Members::of(raw)?;
    let (mut first, mut last, mut offset, mut limit) = (None, None, None, None);
    for (key, value) in members.iter() {
        let key: String =
            key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        let place = match key.as_str() {
            "startline" | "linestart" | "startlinenumber" => &mut first,
            "endline" | "lineend" | "endlinenumber" => &mut last,
            "offset" | "lineoffset" => &mut offset,
            "limit" | "nlines" | "linecount" => &mut limit,
            "viewrange" | "linerange" => {
                let [from, to] = typed::<[i64; 2]>(value)?;
                let to = if to < 0 { u32::MAX } else { u32::try_from(to).ok()? };
                (first, last) = (u32::try_from(from).ok(), Some(to));
                continue;
            }
            _ => continue,
        };
        *place = typed::<u32>(value);
    }
    if first.is_some() || last.is_some() {
        return Some(Lines::range(first.unwrap_or(1).max(1), last.unwrap_or(u32::MAX)));
    }
    Some(match (offset, limit) {
        (None, None) => return None,
        (None, Some(limit)) => Lines::range(1, limit),
        (Some(offset), None) => Lines::range(offset.saturating_add(1), u32::MAX),
        (Some(offset), Some(1)) => Lines::range(offset.max(1), offset.saturating_add(1)),
        (Some(offset), Some(limit)) => {
            Lines::range(offset.saturating_add(1), offset.saturating_add(limit).saturating_sub(1))
        }
    })
}

/// The lines that a change has in the changed file. `old` is the replaced text, None for a write
/// of the whole file; `disk` is the file's content, before or after the change.
pub(super) fn of_change(disk: Option<&str>, old: Option<&str>, new: &str) -> Lines {
    let Some(old) = old.filter(|old| !old.is_empty()) else {
        return match disk {
            Some(before) if before != new => differing(before, new, 0),
            // The write is done, and the old content is gone.
            _ => differing("", new, 0),
        };
    };
    let before = disk.and_then(|disk| {
        let is_whole = disk == old || disk == new;
        if is_whole { Some(0) } else { lines_before(disk, old, new) }
    });
    before.map_or_else(Lines::default, |before| differing(old, new, before))
}

/// The number of lines before a change; None if it is not certain.
fn lines_before(disk: &str, old: &str, new: &str) -> Option<u32> {
    let once = |text: &str| {
        let mut found = memmem::find_iter(disk.as_bytes(), text.as_bytes());
        found.next().filter(|_| found.next().is_none())
    };
    let at = once(old).or_else(|| once(new).filter(|_| !new.is_empty()))?;
    u32::try_from(memchr::memchr_iter(b'\n', &disk.as_bytes()[..at]).count()).ok()
}

/// The lines of `new` that are not in `old`, shifted by `before`, or the one before a removal.
fn differing(old: &str, new: &str, before: u32) -> Lines {
    // A missing newline at the end is no difference.
    let texts = InternedInput::new(Lined(old), Lined(new));
    let diff = Diff::compute(Algorithm::Histogram, &texts);
    let mut lines = Lines::default();
    for hunk in diff.hunks() {
        let first = hunk.after.start + u32::from(!hunk.after.is_empty());
        lines.add((before + first).max(1), (before + hunk.after.end).max(1));
    }
    lines
}

/// The lines of a text, without their ends.
struct Lined<'a>(&'a str);

impl<'a> TokenSource for Lined<'a> {
    type Token = &'a str;
    type Tokenizer = std::str::Lines<'a>;

    fn tokenize(&self) -> Self::Tokenizer {
        self.0.lines()
    }

    fn estimate_tokens(&self) -> u32 {
        64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_name_ranges_under_keys_of_their_own() {
        for (raw, expected) in [
            (r#"{"file_path":"a","offset":10,"limit":20}"#, &[(11, 29)][..]),
            (r#"{"filePath":"a","offset":null,"limit":2000}"#, &[(1, 2000)]),
            (r#"{"path":"a","offset":7}"#, &[(8, u32::MAX)]),
            (r#"{"path":"a","offset":7,"limit":1}"#, &[(7, 8)]),
            (r#"{"path":"a","line_offset":1,"n_lines":10}"#, &[(2, 10)]),
            (r#"{"path":"a","start_line":3,"end_line":5}"#, &[(3, 5)]),
            (r#"{"path":"a","startLine":3}"#, &[(3, u32::MAX)]),
            (r#"{"path":"a","view_range":[3,-1]}"#, &[(3, u32::MAX)]),
            (r#"{"path":"a","view_range":[3,9]}"#, &[(3, 9)]),
            (r#"{"path":"a","start_line":9,"end_line":5}"#, &[]),
            (r#"{"path":"a","offset":4294967295,"limit":4294967295}"#, &[]),
        ] {
            let named = of_input(raw);
            assert_eq!(named.as_ref().map(Lines::ranges), Some(expected), "{raw}");
        }
        for raw in [r#"{"path":"a"}"#, r#"{"view_range":"all"}"#, "[]", r#"{"offset":-4}"#] {
            assert_eq!(of_input(raw), None, "{raw}");
        }
    }

    fn change(disk: Option<&str>, old: Option<&str>, new: &str) -> Vec<(u32, u32)> {
        of_change(disk, old, new).ranges().to_vec()
    }

    #[test]
    fn a_fragment_is_found_before_it_is_written_and_after() {
        let (before, after) = ("a\nb\nc\nd\n", "a\nb\nx\ny\nd\n");
        for disk in [before, after] {
            assert_eq!(change(Some(disk), Some("c\n"), "x\ny\n"), [(3, 4)], "{disk}");
            assert_eq!(change(Some(disk), Some("b\nc"), "b\nx\ny"), [(3, 4)], "{disk}");
        }
        // Put in behind what stays, taken away without a trace.
        assert_eq!(change(Some("a\nb\nn\n"), Some("b"), "b\nn"), [(3, 3)]);
        assert_eq!(change(Some(before), Some("c\nd\n"), "d\n"), [(2, 2)]);
        assert_eq!(change(Some("a\nd\n"), Some("c\n"), ""), [], "it may have been anywhere");
    }

    #[test]
    fn what_may_stand_in_several_places_is_not_known() {
        assert_eq!(change(Some("a\nb\na\n"), Some("a"), "c"), []);
        assert_eq!(change(Some("q\n"), Some("a"), "c"), []);
        assert_eq!(change(None, Some("a"), "c"), []);
    }

    #[test]
    fn of_a_whole_file_what_differs_is_known() {
        let (old, new) = ("a\nb\nc\nd\ne\nf\n", "a\nB\nc\nd\ne\nF\ng\n");
        for disk in [Some(old), Some(new)] {
            assert_eq!(change(disk, Some(old), new), [(2, 2), (6, 7)], "{disk:?}");
        }
        assert_eq!(change(Some(old), None, new), [(2, 2), (6, 7)]);
        for disk in [None, Some(new)] {
            assert_eq!(change(disk, None, new), [(1, 7)], "{disk:?}");
        }
        assert_eq!(change(Some(old), None, ""), [(1, 1)]);
        assert_eq!(change(None, None, ""), []);
    }
}
