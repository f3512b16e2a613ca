//! Names the tokens of a piece of code, by the queries that the grammars ship. Reads nothing from the disk.
//!
//! The cost of a hostile text is bounded in bytes, time, captures and tokens.

use std::ops::{ControlFlow, Range};
use std::time::Duration;

use tree_sitter::{
    Language as Grammar, Node, ParseOptions, ParseState, Parser, QueryCursor, QueryCursorOptions,
    QueryCursorState, StreamingIterator as _, Tree,
};

use super::facts::Language;
use super::languages::{Highlighting, Row};
use super::parse::processor_time;
use crate::model::CodeTokenKind;

/// Bytes of a text that is looked at.
pub const LONGEST_CODE: usize = 64 << 10;

/// Tokens of a text; those that come later are left out.
pub const MOST_CODE_TOKENS: usize = 20_000;

/// CPU time for the whole of it. Code of this length takes a quarter, in a build for development.
const MAX_TIME: Duration = Duration::from_millis(100);

/// Matches that the query may have begun at a time; past that the oldest is given up.
const MOST_MATCHES: u32 = 256;

/// Captures of a text, some for each token of the longest one.
const MOST_CAPTURES: usize = 200_000;

/// A token of code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodeToken {
    /// The first of its UTF-16 code units, counted from the start of the text.
    pub start: u32,
    /// The one behind the last of them.
    pub end: u32,
    /// Its kind.
    pub kind: CodeTokenKind,
}

/// The tokens of a text, ordered and apart from one another. A text that is longer than [`LONGEST_CODE`], or that takes
/// too long, has none.
pub fn highlight(language: Language, text: &str) -> Vec<CodeToken> {
    if text.len() > LONGEST_CODE {
        return Vec::new();
    }
    let with = language.row().and_then(Row::highlighting);
    let found = with.and_then(|with| captures(with, text));
    in_utf16(text, flat(found.unwrap_or_default()))
}

/// A node that a pattern names, with what that says of it: None is no token.
struct Capture {
    bytes: Range<usize>,
    pattern: usize,
    kind: Option<CodeTokenKind>,
}

/// Runs the query on a text. None: it takes too long.
fn captures(with: &Highlighting, text: &str) -> Option<Vec<Capture>> {
    let end = processor_time().saturating_add(MAX_TIME);
    let tree = parse(&with.grammar, text, end)?;
    let mut is_late = false;
    let mut go_on = |_: &QueryCursorState| {
        is_late |= processor_time() >= end;
        if is_late { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let mut cursor = QueryCursor::new();
    cursor.set_match_limit(MOST_MATCHES);
    let options = QueryCursorOptions::new().progress_callback(&mut go_on);
    let names = with.query.capture_names();
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut matches = cursor.matches_with_options(&with.query, tree.root_node(), bytes, options);
    while let Some(matched) = matches.next() {
        for capture in matched.captures() {
            let name = names.get(capture.index as usize).copied().unwrap_or_default();
            let bytes = capture.node.byte_range();
            let kind = kind(name, capture.node, text.get(bytes.clone()).unwrap_or_default());
            found.push(Capture { bytes, pattern: matched.pattern_index, kind });
        }
        if found.len() > MOST_CAPTURES {
            break;
        }
    }
    drop(matches);
    (!is_late).then_some(found)
}

fn parse(grammar: &Grammar, text: &str, end: Duration) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(grammar).ok()?;
    let mut go_on = |_: &ParseState| {
        let is_late = processor_time() >= end;
        if is_late { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let options = ParseOptions::new().progress_callback(&mut go_on);
    let bytes = text.as_bytes();
    let mut read = |at: usize, _| bytes.get(at..).unwrap_or_default();
    parser.parse_with_options(&mut read, None, Some(options))
}

/// The kind of a node, by the name that a query gives it.
fn kind(name: &str, node: Node<'_>, text: &str) -> Option<CodeTokenKind> {
    let is_word = text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b' ');
    match name.split('.').next().unwrap_or_default() {
        "keyword" => Some(CodeTokenKind::Keyword),
        "string" | "escape" => Some(CodeTokenKind::String),
        "comment" => Some(CodeTokenKind::Comment),
        "number" => Some(CodeTokenKind::Number),
        "function" => Some(CodeTokenKind::Name),
        "type" | "constructor" | "tag" => Some(CodeTokenKind::Type),
        // `and` of Python.
        "operator" if is_word => Some(CodeTokenKind::Keyword),
        // `this`; `console` has the same name, and is an identifier.
        "variable" if name == "variable.builtin" && node.kind() != "identifier" => {
            Some(CodeTokenKind::Keyword)
        }
        // `true`, and all numbers of Rust.
        "constant" if name == "constant.builtin" => {
            Some(if is_word { CodeTokenKind::Keyword } else { CodeTokenKind::Number })
        }
        _ => None,
    }
}

/// Lays captures, which lie within one another or apart, next to each other: the innermost counts, and of several of one
/// node the pattern that comes last.
fn flat(mut captures: Vec<Capture>) -> Vec<(Range<usize>, CodeTokenKind)> {
    captures.retain(|capture| !capture.bytes.is_empty());
    captures.sort_by_key(|it| (it.bytes.start, std::cmp::Reverse(it.bytes.end), it.pattern));
    let mut laid = Laid::default();
    // Each with where it ends.
    let mut open: Vec<(usize, Option<CodeTokenKind>)> = Vec::new();
    for Capture { bytes, kind, .. } in captures {
        while let Some((end, kind)) = open.pop_if(|(end, _)| *end <= bytes.start) {
            laid.up_to(end, kind);
        }
        if let Some((end, around)) = open.last_mut() {
            laid.up_to(bytes.start, *around);
            if *end == bytes.end && laid.starts_at == Some(bytes.start) {
                // The same node once more.
                *around = kind;
                continue;
            }
        }
        laid.at = laid.at.max(bytes.start);
        laid.starts_at = Some(bytes.start);
        open.push((bytes.end, kind));
    }
    while let Some((end, kind)) = open.pop() {
        laid.up_to(end, kind);
    }
    laid.tokens
}

/// Tokens that were laid down, up to a place.
#[derive(Default)]
struct Laid {
    at: usize,
    /// Where the last capture starts.
    starts_at: Option<usize>,
    tokens: Vec<(Range<usize>, CodeTokenKind)>,
}

impl Laid {
    /// Lays what is between the last place and `end`.
    fn up_to(&mut self, end: usize, kind: Option<CodeTokenKind>) {
        let start = self.at;
        self.at = start.max(end);
        let Some(kind) = kind.filter(|_| start < end) else { return };
        match self.tokens.last_mut() {
            Some((last, of_last)) if last.end == start && *of_last == kind => last.end = end,
            _ => self.tokens.push((start..end, kind)),
        }
    }
}

/// Counts places in UTF-16 code units.
fn in_utf16(text: &str, tokens: Vec<(Range<usize>, CodeTokenKind)>) -> Vec<CodeToken> {
    let (mut bytes, mut units) = (0, 0_u32);
    let mut unit_at = |place: usize| {
        let between = text.get(bytes..place).unwrap_or_default();
        let count: usize = between.chars().map(char::len_utf16).sum();
        units = units.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        bytes = place;
        units
    };
    let tokens = tokens.into_iter().take(MOST_CODE_TOKENS);
    tokens
        .map(|(range, kind)| CodeToken {
            start: unit_at(range.start),
            end: unit_at(range.end),
            kind,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The tokens of a text, as JavaScript would cut them out.
    fn shown(language: &str, text: &str) -> Vec<String> {
        let units: Vec<u16> = text.encode_utf16().collect();
        let mut last = 0;
        highlight(Language::named(language).unwrap(), text)
            .into_iter()
            .map(|token| {
                assert!(last <= token.start && token.start < token.end, "{token:?} in {text}");
                last = token.end;
                let cut = &units[token.start as usize..token.end as usize];
                format!("{} {}", token.kind.as_str(), String::from_utf16(cut).unwrap())
            })
            .collect()
    }

    #[test]
    fn rust_is_told_apart() {
        let text = "// Opens.\npub fn open(at: &str) -> Option<Shop> {\n    self.doors.count(1, \"a\\n\");\n}";
        assert_eq!(
            shown("rs", text),
            [
                "comment // Opens.",
                "keyword pub",
                "keyword fn",
                "name open",
                "type str",
                "type Option",
                "type Shop",
                "keyword self",
                "name count",
                "number 1",
                "string \"a\\n\""
            ]
        );
    }

    #[test]
    fn python_is_told_apart() {
        let text = "# Sums.\nclass Cart(Base):\n    def total(self, n):\n        return None if n and 2.5 else f\"{n}!\"";
        assert_eq!(
            shown("Python3", text),
            [
                "comment # Sums.",
                "keyword class",
                "type Cart",
                "type Base",
                "keyword def",
                "name total",
                "keyword return",
                "keyword None",
                "keyword if",
                "keyword and",
                "number 2.5",
                "keyword else",
                "string f\"",
                "string !\""
            ]
        );
    }

    #[test]
    fn scripts_are_told_apart() {
        let text = "export class Cart { total(): number { return this.sum(`a ${b} c`, 0x1f); } }";
        let typed = [
            "keyword export",
            "keyword class",
            "type Cart",
            "name total",
            "type number",
            "keyword return",
            "keyword this",
            "name sum",
            "string `a ",
            "string  c`",
            "number 0x1f",
        ];
        assert_eq!(shown("ts", text), typed);
        assert_eq!(shown("tsx", text), typed);
        let text = "const all = async () => <Item name={\"x\"} />; // done";
        let script = [
            "keyword const",
            "name all",
            "keyword async",
            "type Item",
            "string \"x\"",
            "comment // done",
        ];
        for language in ["jsx", "tsx", "js"] {
            assert_eq!(shown(language, text), script, "{language}");
        }
    }

    #[test]
    fn places_are_counted_as_javascript_does() {
        let text = "let a = \"😀é\"; return a";
        let found = highlight(Language::named("js").unwrap(), text);
        let places: Vec<_> = found.iter().map(|it| (it.start, it.end, it.kind.as_str())).collect();
        assert_eq!(places, [(0, 3, "keyword"), (8, 13, "string"), (15, 21, "keyword")]);
    }

    #[test]
    fn a_hostile_text_takes_no_longer_than_another() {
        let open = |what: &str| what.repeat(LONGEST_CODE / what.len());
        for text in
            ["(", "{", "`${", "a ", "\"", "x=>", "f(", "<a>", "if ", "\\", "a.b", "/*", "\u{0}"]
        {
            for language in ["rust", "python", "ts", "tsx", "js"] {
                let began = processor_time();
                let found = highlight(Language::named(language).unwrap(), &open(text));
                assert!(found.len() <= MOST_CODE_TOKENS);
                let took = processor_time().saturating_sub(began);
                assert!(took < 20 * MAX_TIME, "{language} {text:?}: {took:?}");
            }
        }
        assert_eq!(highlight(Language::named("js").unwrap(), &"1 ".repeat(LONGEST_CODE)), []);
    }

    #[test]
    fn languages_are_known_by_the_names_of_fences() {
        let known = |name: &str| Language::named(name).map(Language::name);
        for (name, language) in
            [("ts", "typescript"), ("TypeScript", "typescript"), ("rs", "rust"), ("py", "python")]
        {
            assert_eq!(known(name), Some(language));
        }
        for name in ["", "cobol", "ru"] {
            assert_eq!(known(name), None, "{name}");
        }
    }
}
