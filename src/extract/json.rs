//! Reads JSON one level at a time: what lies below a level stays the text it came as.
//!
//! A field that is odd (a future type, a lone surrogate, ten thousand levels deep) then costs
//! nothing but itself. Knows no protocol.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object in their order, doubled ones included.
pub(crate) struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Returns None if the text is no object.
    pub(crate) fn of(raw: &'a str) -> Option<Self> {
        // Most texts are strings: saves the attempt.
        raw.trim_start().starts_with('{').then_some(())?;
        serde_json::from_str(raw).ok()
    }

    /// The first member of that name.
    pub(crate) fn get(&self, key: &str) -> Option<&'a str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.get())
    }

    /// The text of the first member of that name, if it is a string.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(text)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.get()))
    }
}

/// Returns the elements of an array, None if the text is none.
pub(crate) fn elements(raw: &str) -> Option<Vec<&str>> {
    raw.trim_start().starts_with('[').then_some(())?;
    let elements: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
    Some(elements.into_iter().map(RawValue::get).collect())
}

/// Returns the text of a string; None for anything else and for text that is no Unicode.
pub(crate) fn text(raw: &str) -> Option<Cow<'_, str>> {
    /// `Cow` alone would always copy.
    #[derive(serde::Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    raw.trim_start().starts_with('"').then_some(())?;
    serde_json::from_str::<Text<'_>>(raw).ok().map(|text| text.0)
}

/// The name of a member. Lone surrogates in it become U+FFFD.
pub(crate) struct Key<'a>(pub(crate) Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a member")
            }

            fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
                Ok(Key(String::from_utf8_lossy(bytes)))
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(String::from_utf8_lossy(bytes).into_owned())))
            }
        }

        // As bytes, a string need not be Unicode.
        deserializer.deserialize_bytes(KeyVisitor)
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(Key(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
    fn other_values_are_told_apart() {
        assert!(Members::of("[1]").is_none());
        assert!(Members::of(r#"{"a":1"#).is_none());
        assert_eq!(elements("[1, {}]").unwrap(), ["1", "{}"]);
        assert!(elements("{}").is_none());
        assert!(text("1").is_none());
        assert!(matches!(text(r#""plain""#).unwrap(), Cow::Borrowed("plain")));
    }
}
