//! Finds the text to purge in bytes, and replaces it in texts and in JSON.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::bytes::Regex;

/// The mark that replaces a purged text.
pub const MARK: &str = "[purged]";

/// A text or a regular expression.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

/// Why a pattern can't be used.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// The pattern is empty, or matches the empty text.
    #[error("the pattern is empty, or matches the empty text: it would match everything")]
    Empty,
    /// The text is no valid regular expression.
    #[error(transparent)]
    Regex(#[from] regex::Error),
}

impl Pattern {
    /// Matches exactly this text.
    pub fn text(text: &str) -> Result<Self, PatternError> {
        Self::regex(&regex::escape(text))
    }

    /// Matches a regular expression. Fails if it is invalid, or matches the empty text.
    pub fn regex(pattern: &str) -> Result<Self, PatternError> {
        let regex = Regex::new(pattern)?;
        if regex.is_match(b"") || pattern.is_empty() {
            return Err(PatternError::Empty);
        }
        Ok(Self(regex))
    }

    /// Whether some bytes have it: as UTF-8, or as UTF-16.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.0.is_match(bytes) || self.is_in_utf16(bytes)
    }

    fn is_in_utf16(&self, bytes: &[u8]) -> bool {
        // Each text in a Latin script has zeros, others begin with a mark.
        let has_mark = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
        if !has_mark && memchr::memchr(0, bytes).is_none() {
            return false;
        }
        let units = |skip: usize, unit: fn([u8; 2]) -> u16| {
            let pairs = bytes.get(skip..).unwrap_or_default().chunks_exact(2);
            let units = pairs.map(move |pair| unit([pair[0], pair[1]]));
            char::decode_utf16(units).map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER))
        };
        let ways = [
            (0, u16::from_le_bytes as fn([u8; 2]) -> u16),
            (1, u16::from_le_bytes),
            (0, u16::from_be_bytes),
            (1, u16::from_be_bytes),
        ];
        ways.into_iter().any(|(skip, unit)| {
            let text: String = units(skip, unit).collect();
            self.0.is_match(text.as_bytes())
        })
    }

    /// Whether a file of this program has it, in any form in which this program writes texts.
    pub fn is_in_file(&self, bytes: &[u8]) -> bool {
        self.is_in(bytes) || self.purged_json(&String::from_utf8_lossy(bytes)).is_some()
    }

    /// Where it is in some bytes.
    pub fn places<'a>(
        &'a self,
        bytes: &'a [u8],
    ) -> impl Iterator<Item = std::ops::Range<usize>> + 'a {
        self.0.find_iter(bytes).map(|found| found.range())
    }

    /// The text with marks, if it has a match.
    pub fn purged(&self, text: &str) -> Option<String> {
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
                let purged = self.purged(&text).or_else(|| self.purged_base64(&text))?;
                Some(serde_json::Value::from(purged).to_string())
            }
            // Another program wrote it, or it has half of a pair of surrogates.
            Err(_) => self.purged(token),
        }
    }

    /// A string in base64, such as the bytes of a name that is not UTF-8.
    fn purged_base64(&self, text: &str) -> Option<String> {
        let bytes = STANDARD.decode(text).ok().filter(|bytes| self.is_in(bytes))?;
        let purged = self.0.replace_all(&bytes, regex::bytes::NoExpand(MARK.as_bytes()));
        // In UTF-16 nothing was replaced.
        let purged = if *purged == *bytes { MARK.as_bytes() } else { &*purged };
        Some(STANDARD.encode(purged))
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
    fn what_this_program_encodes_is_found() {
        let pattern = Pattern::text("hunter2").unwrap();
        let name = STANDARD.encode(b"bytes-hunter2\xff");
        let purged = pattern.purged_json(&format!(r#"{{"path_bytes":"{name}"}}"#)).unwrap();
        let expected = STANDARD.encode(b"bytes-[purged]\xff");
        assert_eq!(purged, format!(r#"{{"path_bytes":"{expected}"}}"#));
        let utf16 = |to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            "the hunter2".encode_utf16().flat_map(to_bytes).collect()
        };
        for bytes in [utf16(u16::to_le_bytes), utf16(u16::to_be_bytes)] {
            assert!(pattern.is_in(&bytes) && pattern.is_in(&[b"x", &bytes[..]].concat()));
        }
        assert!(!pattern.is_in(b"h\0u\0n\0t"));
        assert!(pattern.is_in_file(br#"{"x":"\u0068unter2"}"#));
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
