//! Finds member names that parsers could read differently: duplicates, and names that differ from
//! a known one only by case.
//!
//! Expects valid JSON. Works in one pass and without recursion, so depth and size cannot stop it.
//! Knows no method.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::extract::json::{key, string_end};

/// Initial capacity: most requests have fewer open names and objects.
const MOST: usize = 32;

/// Folds a name as the most lenient reader would: by Unicode case, and cut at a NUL, where a C
/// string ends. Compare the results ignoring ASCII case; ASCII names are returned as they are.
pub(crate) fn fold<'a>(name: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
    let name = name.into();
    if name.bytes().all(|byte| matches!(byte, 1..=0x7f)) {
        return name;
    }
    let name = name.split('\0').next().unwrap_or_default();
    // Upper case first: it maps the long s and the Kelvin sign to `S` and `K`.
    name.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect()
}

/// Whether `name` is not in `known` but some reader could take it for one of them.
pub(crate) fn mimics(name: &str, known: &[&str]) -> bool {
    let folded = fold(name);
    !known.contains(&name) && known.iter().any(|known| known.eq_ignore_ascii_case(&folded))
}

/// Whether any object of the value, at any depth, has two members with the same folded name.
pub(crate) fn has_doubles(value: &RawValue) -> bool {
    let text = value.get();
    let bytes = text.as_bytes();
    // The names of all open objects.
    let mut names: Vec<Cow<'_, str>> = Vec::with_capacity(MOST);
    // For each open object the index of its first name; None for an array.
    let mut open: Vec<Option<usize>> = Vec::with_capacity(MOST);
    let mut name_next = false;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'{' => {
                open.push(Some(names.len()));
                name_next = true;
            }
            b'[' => {
                open.push(None);
                name_next = false;
            }
            b'}' | b']' => {
                if let Some(Some(first)) = open.pop() {
                    let own = &mut names[first..];
                    own.sort_unstable_by(|a, b| lowered(a).cmp(lowered(b)));
                    if own.windows(2).any(|two| two[0].eq_ignore_ascii_case(&two[1])) {
                        return true;
                    }
                    names.truncate(first);
                }
                name_next = false;
            }
            b',' => name_next = matches!(open.last(), Some(Some(_))),
            b'"' => {
                let end = string_end(bytes, at);
                if name_next {
                    name_next = false;
                    match key(&text[at..end]) {
                        Some(name) => names.push(fold(name)),
                        // Not valid JSON.
                        None => return true,
                    }
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    false
}

fn lowered(name: &str) -> impl Iterator<Item = u8> {
    name.bytes().map(|byte| byte.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn doubles(json: &str) -> bool {
        has_doubles(&RawValue::from_string(json.to_owned()).unwrap())
    }

    #[test]
    fn doubled_names_are_found_at_any_depth() {
        let cases = [
            (r#"{"a":1,"b":{"a":2},"c":[{"a":1},{"a":2}]}"#, false),
            (r#"{"a":1,"a":2}"#, true),
            (r#"{"path":1,"Path":2}"#, true),
            (r#"{"path":1,"Zed":2,"Path":3}"#, true),
            (r#"{"path":1,"p\u0061th":2}"#, true),
            (r#"{"path":1,"path\u0000x":2}"#, true),
            (r#"{"task":1,"tas\u212a":2}"#, true),
            (r#"{"sessionId":1,"\u017fessionId":2}"#, true),
            (r#"[[{"x":{"y":[{"k":"\"k\":","K":0}]}}]]"#, true),
            (r#"{"k":"k","v":"k"}"#, false),
            (r#"{"a":["a","a"],"b":"{\"a\":1,\"a\":2}"}"#, false),
            (r#"{"\ud800":1,"\ud800":2}"#, true),
            (r#"{"a":{},"b":[],"a":0}"#, true),
            (r#""a""#, false),
        ];
        for (json, expected) in cases {
            assert_eq!(doubles(json), expected, "{json}");
        }
    }

    #[test]
    fn depth_and_size_do_not_stop_it() {
        let deep =
            |inner: &str| format!("{}{inner}{}", r#"{"a":["#.repeat(50_000), "]}".repeat(50_000));
        assert!(!doubles(&deep(r#"{"b":0}"#)));
        assert!(doubles(&deep(r#"{"b":0,"B":0}"#)));
    }

    #[test]
    fn case_makes_a_mimic_and_equality_does_not() {
        let known = &["path", "sessionId", "toolCall"];
        for name in ["Path", "toolcall", "path\0", "PATH\0x", "\u{17f}essionId", "SeSsIoNiD"] {
            assert!(mimics(name, known), "{name:?}");
        }
        for name in ["path", "toolCall", "paths", "pat", "", "\0path", "ſ"] {
            assert!(!mimics(name, known), "{name:?}");
        }
    }
}
