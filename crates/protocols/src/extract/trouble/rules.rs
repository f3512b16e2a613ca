//! Looks an error's text up in the table of known ones, `rules.toml`.

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use super::Recovery;

#[derive(Deserialize)]
struct RuleTable {
    names: Vec<String>,
    sentences: Vec<String>,
    notes: Vec<String>,
    note_beginnings: Vec<String>,
    note_retries: Vec<String>,
    marks: Vec<String>,
    prose: Vec<String>,
    rules: Vec<PhraseRule>,
    statuses: Vec<StatusRule>,
}

#[derive(Deserialize)]
struct PhraseRule {
    recovery: Recovery,
    trouble: String,
    phrases: Vec<String>,
}

#[derive(Deserialize)]
struct StatusRule {
    recovery: Recovery,
    trouble: String,
    codes: Vec<u16>,
}

#[expect(clippy::unwrap_used, reason = "the text is part of the program, and tests read it")]
static TABLE: LazyLock<RuleTable> =
    LazyLock::new(|| toml::from_str(include_str!("rules.toml")).unwrap());

/// Bytes of an answer that begins with the name of an error, and of one that begins with a sentence, in
/// which the trouble is named.
const NAMED: usize = 500;
const SAID: usize = 80;

/// An HTTP status, recognised by the word before it.
#[expect(clippy::unwrap_used, reason = "a fixed pattern, which tests compile")]
static STATUS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?:\A\W*|(?:status|code|error|http|https)(?:[ /_-]?(?:code|\d\.\d))?\W{0,6})([45]\d\d)\b",
    )
    .unwrap()
});

/// One note at the beginning of a text.
#[expect(
    clippy::unwrap_used,
    reason = "the patterns are part of the program, and tests compile them"
)]
static NOTE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!(r"(?i)\A\s*(?:{})", TABLE.notes.join("|"))).unwrap());

pub(super) fn find(text: &str) -> Option<(Recovery, &'static str)> {
    let knows = |rule: &&PhraseRule| rule.phrases.iter().any(|phrase| text.contains(phrase));
    let by_phrase = TABLE.rules.iter().find(knows);
    by_phrase.map(|rule| (rule.recovery, &*rule.trouble)).or_else(|| by_status(text))
}

/// The beginning of an answer, in lower case, in which an error is named if it is one.
pub(super) fn beginning_of_error(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let is_name = |name: &String| {
        let rest = text.strip_prefix(name.as_str());
        rest.is_some_and(|rest| !rest.trim_start().starts_with(char::is_alphabetic))
    };
    let begins = |sentence: &String| text.starts_with(sentence.as_str());
    let names_it_within = match () {
        () if TABLE.names.iter().any(is_name) => NAMED,
        () if TABLE.sentences.iter().any(begins) => SAID,
        () => return None,
    };
    Some(&text[..text.floor_char_boundary(names_it_within)])
}

/// Whether an answer that goes on may be an error, or a note.
pub(super) fn may_begin(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let mut known = TABLE.names.iter().chain(&TABLE.sentences).chain(&TABLE.note_beginnings);
    known.any(|known| text.starts_with(known.as_str()))
}

/// The text behind the notes at its beginning, and whether one of these says that a call is tried again.
pub(super) fn without_notes(text: &str) -> (&str, bool) {
    let (mut rest, mut retries) = (text, false);
    while let Some(found) = NOTE.captures(rest) {
        let end = found.name("next").map_or(found.get_match().end(), |next| next.start());
        let note = rest[..end].to_lowercase();
        retries |= TABLE.note_retries.iter().any(|word| note.contains(word.as_str()));
        rest = &rest[end..];
    }
    (rest.trim_start(), retries)
}

/// Whether a text is written for a reader, by its marks or its words: errors of services have none of these.
pub(super) fn is_prose(text: &str, lower: &str) -> bool {
    TABLE.marks.iter().any(|mark| text.contains(mark))
        || TABLE.prose.iter().any(|words| lower.contains(words))
}

fn by_status(text: &str) -> Option<(Recovery, &'static str)> {
    STATUS.captures_iter(text).find_map(|found| {
        let status: u16 = found[1].parse().ok()?;
        let rule = TABLE.statuses.iter().find(|rule| rule.codes.contains(&status))?;
        Some((rule.recovery, &*rule.trouble))
    })
}
