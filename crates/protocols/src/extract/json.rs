//! Reads JSON one level at a time; deeper levels stay raw text.
//!
//! A malformed field (an unknown type, a lone surrogate, ten thousand levels) then affects only
//! itself. Knows no protocol.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, Visitor};

/// Initial capacity: most objects have no more members.
const FEW: usize = 8;

/// The members of an object in their order, duplicates included.
pub(crate) struct Members<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Members<'a> {
    /// Returns None if the text, which must be JSON, is not an object.
    pub(crate) fn of(raw: &'a str) -> Option<Self> {
        let mut walk = Walk::into(raw, b'{')?;
        let mut members = Vec::with_capacity(FEW);
        while let Some(name) = walk.value() {
            members.push((key(name)?, walk.value()?));
        }
        Some(Self(members))
    }

    /// The first member of that name.
    pub(crate) fn get(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    }

    /// The text of the first member of that name, if it is a string.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(text)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), *value))
    }
}

/// Returns the elements of an array; None if the text, which must be JSON, is not an array.
pub(crate) fn elements(raw: &str) -> Option<Vec<&str>> {
    let mut walk = Walk::into(raw, b'[')?;
    Some(std::iter::from_fn(|| walk.value()).collect())
}

/// Whether a text is JSON. All other functions here require that, and return anything if it is not.
pub(crate) fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Returns the text of a string; None for other values and for invalid Unicode.
pub(crate) fn text(raw: &str) -> Option<Cow<'_, str>> {
    if let Some(plain) = plain(raw) {
        return Some(Cow::Borrowed(plain));
    }
    raw.starts_with('"').then_some(())?;
    serde_json::from_str(raw).ok().map(Cow::Owned)
}

/// Returns the index after the closing quote of the string at `start`.
pub(crate) fn string_end(bytes: &[u8], start: usize) -> usize {
    let inner = bytes.get(start + 1..).unwrap_or_default();
    // Looking back from each quote is faster than stopping at each of the many escapes.
    let closes = |at: &usize| {
        let escapes = inner[..*at].iter().rev().take_while(|byte| **byte == b'\\').count();
        escapes.is_multiple_of(2)
    };
    let end = memchr::memchr_iter(b'"', inner).find(closes);
    end.map_or(bytes.len(), |end| start + 1 + end + 1)
}

/// Iterates over the values of an object or array without parsing them. The text is valid JSON:
/// a line is validated once, however deep it is read.
struct Walk<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Walk<'a> {
    /// Returns None if the text does not begin with the bracket.
    fn into(text: &'a str, bracket: u8) -> Option<Self> {
        let text = text.trim_start();
        text.as_bytes().first().filter(|first| **first == bracket)?;
        Some(Self { text, at: 1 })
    }

    /// The next value, or the name of a member; None after the last.
    fn value(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        let between = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':');
        let start = self.at + bytes[self.at..].iter().position(|byte| !between(byte))?;
        self.at = match bytes[start] {
            b'"' => string_end(bytes, start),
            b'{' | b'[' => nested_end(bytes, start),
            b'}' | b']' => return None,
            _ => {
                let ends = |byte: &u8| between(byte) || matches!(byte, b'}' | b']');
                let length = bytes[start..].iter().position(ends);
                length.map_or(bytes.len(), |length| start + length)
            }
        };
        self.text.get(start..self.at)
    }
}

/// Returns the index after the bracket that closes the one at `start`.
fn nested_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

/// The text of a string without escapes.
fn plain(raw: &str) -> Option<&str> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    memchr::memchr2(b'"', b'\\', inner.as_bytes()).is_none().then_some(inner)
}

/// The name of a member from raw JSON.
pub(crate) fn key(raw: &str) -> Option<Cow<'_, str>> {
    match plain(raw) {
        Some(plain) => Some(Cow::Borrowed(plain)),
        None => serde_json::from_str(raw).ok().map(|MemberName(key)| key),
    }
}

/// The name of a member. Lone surrogates in it become U+FFFD.
pub(crate) struct MemberName<'a>(pub(crate) Cow<'a, str>);

impl<'de> Deserialize<'de> for MemberName<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = MemberName<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a member")
            }

            fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
                // Nearly all are valid UTF-8: this check is faster than the lossy conversion.
                let name = std::str::from_utf8(bytes);
                Ok(MemberName(name.map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)))
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                Ok(MemberName(Cow::Owned(String::from_utf8_lossy(bytes).into_owned())))
            }
        }

        // Bytes, unlike a string, may hold invalid Unicode.
        deserializer.deserialize_bytes(KeyVisitor)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::HashMap;

    use proptest::prelude::*;
    use serde_json::Value;
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn odd_members_cost_only_themselves() {
        let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
        let json =
            format!(r#"{{"\ud800":1,"deep":{deep},"lone":"\udc00","n":1e999,"a":"\u0062"}}"#);
        let members = Members::of(&json).unwrap();
        assert_eq!(members.text("a").unwrap(), "b");
        assert_eq!(members.get("n"), Some("1e999"));
        assert_eq!(members.text("lone"), None);
        assert_eq!(members.get("deep").unwrap().len(), 20_001);
        assert!(members.iter().any(|(key, _)| key.contains('\u{fffd}')));
    }

    #[test]
    fn the_first_of_two_counts() {
        let members = Members::of(r#"{"a":1,"a":2}"#).unwrap();
        assert_eq!(members.get("a"), Some("1"));
        assert_eq!(members.iter().count(), 2);
    }

    #[test]
    fn other_values_are_no_text() {
        assert!(Members::of("[1]").is_none());
        assert_eq!(elements("[1, {}]").unwrap(), ["1", "{}"]);
        assert!(elements("{}").is_none());
        assert!(text("1").is_none());
        assert!(matches!(text(r#""plain""#).unwrap(), Cow::Borrowed("plain")));
    }

    /// JSON with white space in odd places.
    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            r#"[a-zé"\\{}\[\],: \n]{0,8}"#.prop_map(Value::from),
        ];
        let value = leaf.prop_recursive(4, 32, 5, |inner| {
            let name = r#"[a-c"\\{\]\n]{0,2}"#;
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::hash_map(name, inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        });
        (value, any::<bool>()).prop_map(|(value, pretty)| {
            if pretty { format!(" {value:#}\t") } else { value.to_string() }
        })
    }

    proptest! {
        #[test]
        fn what_it_goes_over_is_what_serde_reads(json in json()) {
            prop_assert!(is_json(&json));
            let members: Option<HashMap<String, &RawValue>> = serde_json::from_str(&json).ok();
            let members: Option<HashMap<_, _>> = members.map(|members| {
                members.into_iter().map(|(name, value)| (name, value.get().to_owned())).collect()
            });
            let walked = Members::of(&json);
            let walked = walked.map(|walked| {
                walked.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
            });
            prop_assert_eq!(walked, members);
            let items: Option<Vec<&RawValue>> = serde_json::from_str(&json).ok();
            let items: Option<Vec<_>> =
                items.map(|items| items.into_iter().map(RawValue::get).collect());
            prop_assert_eq!(elements(&json), items);
            prop_assert_eq!(text(json.trim()).map(Cow::into_owned), serde_json::from_str(&json).ok());
        }

        #[test]
        fn what_is_no_json_does_no_harm(text in r#"[a{}\[\]"\\:, é]{0,16}"#) {
            Members::of(&text);
            elements(&text);
            super::text(&text);
        }
    }
}
