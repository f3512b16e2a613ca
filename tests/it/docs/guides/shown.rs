//! Compares what a guide shows with what is printed. `…` stands for any part of a line; as a line of its own
//! for any number of lines.

const ANY: &str = "…";

/// Whether these lines are what is shown.
pub(super) fn matches(shown: &[&str], printed: &[String]) -> bool {
    match shown {
        [] => printed.is_empty(),
        [first, rest @ ..] if first.trim() == ANY => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]))
        }
        [first, rest @ ..] => printed
            .split_first()
            .is_some_and(|(line, others)| line_matches(first, line) && matches(rest, others)),
    }
}

/// Whether a line is what is shown; blanks at its end are not seen.
fn line_matches(shown: &str, line: &str) -> bool {
    let (shown, line) = (shown.trim_end(), line.trim_end());
    let mut parts = shown.split(ANY);
    let begin = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(begin) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(end) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(end)
}

#[test]
fn dots_stand_for_anything_and_nothing_else_does() {
    let cases: [(&[&str], &str, bool); 15] = [
        (&[], "", true),
        (&[], "a", false),
        (&["a"], "a", true),
        (&["a"], "a  ", true),
        (&["a"], "ab", false),
        (&["a"], "a\nb", false),
        (&["a…"], "ab", true),
        (&["…c"], "abc", true),
        (&["a…c…e"], "abcde", true),
        (&["a…c…e"], "abde", false),
        (&["a…a"], "a", false),
        (&["…"], "a\nb", true),
        (&["a", "…", "d"], "a\nb\nc\nd", true),
        (&["a", "…", "b"], "a\nb", true),
        (&["a", "…", "d"], "a\nb\nc", false),
    ];
    for (shown, printed, expected) in cases {
        let printed: Vec<String> = printed.lines().map(str::to_owned).collect();
        assert_eq!(matches(shown, &printed), expected, "{shown:?} {printed:?}");
    }
}
