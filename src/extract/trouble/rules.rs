//! Looks an error's text up in the table of known ones, `rules.toml`.

use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use super::Recovery;

#[derive(Deserialize)]
struct RuleTable {
    prefixes: Vec<String>,
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

/// An HTTP status, recognised by the word before it.
#[expect(clippy::unwrap_used, reason = "a fixed pattern, which tests compile")]
static STATUS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?:\A\W*|(?:status|code|error|http|https)(?:[ /_-]?(?:code|\d\.\d))?\W{0,6})([45]\d\d)\b",
    )
    .unwrap()
});

pub(super) fn find(text: &str) -> Option<(Recovery, &'static str)> {
    let knows = |rule: &&PhraseRule| rule.phrases.iter().any(|phrase| text.contains(phrase));
    let by_phrase = TABLE.rules.iter().find(knows);
    by_phrase.map(|rule| (rule.recovery, &*rule.trouble)).or_else(|| by_status(text))
}

/// Whether an answer is an error.
pub(super) fn looks_like_error(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    TABLE.prefixes.iter().any(|prefix| text.starts_with(prefix))
}

fn by_status(text: &str) -> Option<(Recovery, &'static str)> {
    STATUS.captures_iter(text).find_map(|found| {
        let status: u16 = found[1].parse().ok()?;
        let rule = TABLE.statuses.iter().find(|rule| rule.codes.contains(&status))?;
        Some((rule.recovery, &*rule.trouble))
    })
}
