//! Finds the text to purge in bytes, and replaces it in texts and in JSON.

use std::borrow::Cow;

use regex::bytes::Regex;

/// The mark that replaces a purged text.
pub const MARK: &str = "[purged]";

/// A text or a regular expression.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

/// Why a pattern can't be used.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    #[error("the pattern is empty, or matches the empty text: it would match everything")]
    Empty,
    #[error(transparent)]
    Regex(#[from] regex::Error),
}

impl Pattern {
    /// Matches exactly this text.
    pub fn text(text: &str) -> Result<Self, PatternError> {
        Self::regex(&regex::escape(text))
    }

    pub fn regex(pattern: &str) -> Result<Self, PatternError> {
        let regex = Regex::new(pattern)?;
        if regex.is_match(b"") || pattern.is_empty() {
            return Err(PatternError::Empty);
        }
        Ok(Self(regex))
    }

    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.0.is_match(bytes)
    }

    /// The text with marks, if it has a match.
    pub(super) fn purged(&self, text: &str) -> Option<String> {
        match self.0.replace_all(text.as_bytes(), regex::bytes::NoExpand(MARK.as_bytes())) {
            Cow::Borrowed(_) => None,
            // A pattern without Unicode may match a part of a character.
            Cow::Owned(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// JSON with marks in its strings, if one has a match; all else stays as it is. A number becomes a
    /// string if all of it matches.
    pub fn purged_json(&self, json: &str) -> Option<String> {
        let (mut out, mut rest, mut changed) = (String::new(), json, false);
        while !rest.is_empty() {
            let (token, is_string) = next_token(rest);
            rest = &rest[token.len()..];
            let purged =
                if is_string { self.purged_string(token) } else { self.purged_number(token) };
            changed |= purged.is_some();
            out.push_str(purged.as_deref().unwrap_or(token));
        }
        changed.then_some(out)
    }

    /// A string of JSON, in its quotes.
    fn purged_string(&self, token: &str) -> Option<String> {
        match serde_json::from_str::<String>(token) {
            Ok(text) => {
                let purged = self.purged(&text)?;
                Some(serde_json::Value::from(purged).to_string())
            }
            // Another program wrote it, or it has half of a pair of surrogates.
            Err(_) => self.purged(token),
        }
    }

    fn purged_number(&self, token: &str) -> Option<String> {
        let is_number = token.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let found = self.0.find(token.as_bytes()).filter(|_| is_number)?;
        (found.len() == token.len()).then(|| format!("\"{MARK}\""))
    }
}

/// The first token, and whether it is a string in quotes.
fn next_token(json: &str) -> (&str, bool) {
    let bytes = json.as_bytes();
    if bytes[0] != b'"' {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let word = bytes.iter().take_while(|byte| is_word(byte)).count();
        let end = if word > 0 { word } else { json.chars().next().map_or(1, char::len_utf8) };
        return (&json[..end], false);
    }
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return (&json[..=at], true),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    (json, true)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn strings_of_json_are_purged_and_the_rest_stays() {
        let pattern = Pattern::text("a\"b").unwrap();
        for (json, purged) in [
            (r#"{"x": "a\"b", "n":1.50}"#, Some(r#"{"x": "[purged]", "n":1.50}"#)),
            (r#"{"x\u0061\"b":[1e400]}"#, Some(r#"{"x[purged]":[1e400]}"#)),
            (r#"{"x":"\u0061\u0022\u0062é"}"#, Some(r#"{"x":"[purged]é"}"#)),
            (r#"{"x":"a","b":"c"}"#, None),
            (r#"{"torn":"\ud800 a"#, None),
            ("", None),
        ] {
            assert_eq!(pattern.purged_json(json).as_deref(), purged, "{json}");
        }
        let number = Pattern::text("4711").unwrap();
        assert_eq!(number.purged_json(r#"[4711,47110]"#).unwrap(), r#"["[purged]",47110]"#);
        let torn = Pattern::regex("sk-[0-9]+").unwrap();
        assert_eq!(torn.purged_json(r#"{"a":"\ud800 sk-12"#).unwrap(), r#"{"a":"\ud800 [purged]"#);
    }

    #[test]
    fn what_matches_everything_is_refused() {
        for pattern in ["", "x*", "a|", "("] {
            assert!(Pattern::regex(pattern).is_err(), "{pattern}");
        }
        assert!(Pattern::text("").is_err());
        assert!(Pattern::text("a|").unwrap().purged("x|a").is_none());
    }
}
