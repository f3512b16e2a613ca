//! Parses control requests strictly: a line that two JSON parsers could read differently is an error,
//! since it is unknown what Claude will act on.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Text that every control request contains, perhaps with escaped characters.
const MARKS: [&str; 2] = ["control_request", "\\u"];

/// White space of JSON.
const WHITE: [char; 3] = [' ', '\t', '\r'];

/// Members that determine what a request asks for.
const ENVELOPE: [&str; 3] = ["type", "request_id", "request"];
const REQUEST: [&str; 4] = ["subtype", "tool_name", "input", "callback_id"];
const HOOK: [&str; 3] = ["hook_event_name", "tool_name", "tool_input"];

/// Parses a control request; None if no parser would take the line for one.
pub(crate) fn request(line: &[u8]) -> Result<Option<Value>, String> {
    let line = str::from_utf8(line).map_err(|_| "a line is not UTF-8")?.trim_matches(WHITE);
    // Some parsers start at the first object, and join lines until it is complete.
    if !line.starts_with('{') {
        let mut objects = line.match_indices('{');
        return if objects.any(|(at, _)| opens(&line[at + 1..])) {
            Err("a line has JSON behind something else".to_owned())
        } else {
            Ok(None)
        };
    }
    let unclear = |error| format!("a line is no JSON that is clear: {error}");
    serde_json::from_str::<IgnoredAny>(line).map_err(unclear)?;
    // Few lines are requests; `observe` parses the others again.
    if !MARKS.iter().any(|mark| line.contains(mark)) {
        return Ok(None);
    }
    if line.contains('\r') {
        return Err("a line may be several to some readers".to_owned());
    }
    #[expect(clippy::zero_sized_map_values, reason = "a set is read from a list")]
    let names: BTreeMap<String, IgnoredAny> = serde_json::from_str(line).map_err(unclear)?;
    well_spelt(names.keys(), &ENVELOPE)?;
    let Kind { kind } = serde_json::from_str(line).map_err(unclear)?;
    if kind.is_none_or(|kind| kind != "control_request") {
        return Ok(None);
    }
    serde_json::from_str::<Unique>(line).map_err(unclear)?;
    let message: Value = serde_json::from_str(line).map_err(unclear)?;
    let request = &message["request"];
    well_spelt(members(request), &REQUEST)?;
    if request["subtype"] == "hook_callback" {
        well_spelt(members(&request["input"]), &HOOK)?;
    }
    Ok(Some(message))
}

/// Whether an object that begins before this text could still have members in it.
fn opens(rest: &str) -> bool {
    let rest = rest.trim_start_matches(WHITE);
    rest.is_empty() || rest.starts_with('"')
}

fn members(value: &Value) -> impl Iterator<Item = &String> {
    value.as_object().into_iter().flat_map(serde_json::Map::keys)
}

/// Refuses names that some parsers treat as one of these.
fn well_spelt<'a>(
    names: impl Iterator<Item = &'a String>,
    known: &[&'static str],
) -> Result<(), String> {
    for name in names {
        let folded = name.replace('ſ', "s").replace('\u{212a}', "k").to_ascii_lowercase();
        if folded != *name && known.contains(&&*folded) {
            return Err(format!("a line has a misspelt `{folded}`"));
        }
    }
    Ok(())
}

/// An error if the member is there twice.
#[derive(serde::Deserialize)]
struct Kind {
    #[serde(rename = "type")]
    kind: Option<Value>,
}

/// JSON in which no object has a duplicate member.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self, A::Error> {
        while seq.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut known = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if known.contains(&key) {
                return Err(A::Error::custom(format!("`{key}` is there twice")));
            }
            known.insert(key);
            map.next_value::<Self>()?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::request;

    const REQUEST: &str = r#"{"type":"control_request","request_id":"r","request":{}}"#;

    #[test]
    fn a_request_is_found_however_it_is_written() {
        for line in [REQUEST, &REQUEST.replace("l_", r"l\u005f"), &format!("  {REQUEST} ")] {
            assert!(request(line.as_bytes()).unwrap().is_some(), "{line}");
        }
    }

    #[test]
    fn what_readers_could_take_for_one_or_not_is_an_error() {
        let twice = [r#"{"type":"x","#, &REQUEST[1..]].concat();
        let deep = REQUEST.replace("{}", r#"{"a":[{"b":1,"b":2}]}"#);
        let (begin, end) = REQUEST.split_at(20);
        let hook = r#"{"subtype":"hook_callback","input":{"Tool_Name":"Write"}}"#;
        for line in [
            &twice,
            &deep,
            begin,
            &REQUEST.replace(',', ",\r"),
            &REQUEST.replace("\"type", "\"Type"),
            &REQUEST.replace("\"request\"", "\"reque\u{17f}t\""),
            &REQUEST.replace("{}", r#"{"SubType":"can_use_tool"}"#),
            &REQUEST.replace("{}", hook),
            r#"{"type":"control_request","type":"user"}"#,
        ] {
            assert!(request(line.as_bytes()).is_err(), "{line}");
        }
        for split in ["\r", "\u{2028}", "\u{85}", "\u{b}", "\u{feff}", " "] {
            for tail in [REQUEST, begin, "{", "{ "] {
                let line = format!("x{split}{tail}");
                assert!(request(line.as_bytes()).is_err(), "{line:?}");
            }
        }
        assert!(request(&[REQUEST.as_bytes(), b"\xff"].concat()).is_err());
        // What is left of one that was dropped is none to anybody.
        assert_eq!(request(end.as_bytes()), Ok(None));
    }

    #[test]
    fn what_only_mentions_one_is_none() {
        let quoted = r#"{\"type\":\"control_request\"}"#;
        for line in [
            "control_request",
            "    at run (cli.js:1) { code: 1 }",
            r#"{"type":"user","text":"a control_request \u001b[0m"}"#,
            // Half a character, and a number, that many can't read.
            r#"{"type":"user","text":"\ud83d","n":1e400}"#,
            &format!("{{\"type\":\"user\",\"text\":\"\u{2028}{quoted}\u{2028}\"}}"),
        ] {
            assert_eq!(request(line.as_bytes()), Ok(None), "{line}");
        }
    }
}
