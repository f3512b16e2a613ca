//! The envelope of a JSON-RPC message, with flags for ambiguities.
//!
//! Observation reads any envelope; only the gate requires a clear one. Knows no method.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::strict::mimics;
use crate::extract::json::{self, MemberName};

/// The members of an envelope.
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// The members of the envelope as raw JSON; the first one of duplicates.
#[derive(Default)]
pub(crate) struct Frame<'a> {
    /// The whole message.
    pub(crate) text: &'a str,
    pub(crate) id: Option<&'a RawValue>,
    pub(crate) method: Option<&'a RawValue>,
    pub(crate) params: Option<&'a RawValue>,
    pub(crate) result: Option<&'a RawValue>,
    pub(crate) error: Option<&'a RawValue>,
    jsonrpc: Option<&'a RawValue>,
    /// A member of the envelope is there twice, or a name differs from one only by case.
    pub(crate) unclear: bool,
    /// There are two ids that differ.
    two_ids: bool,
    /// There is a `method`, in any case.
    has_method: bool,
}

impl<'a> Frame<'a> {
    /// Returns None if the line is not a JSON object.
    pub(crate) fn of(line: &'a str) -> Option<Self> {
        let frame: Self = serde_json::from_str(line).ok()?;
        Some(Self { text: line, ..frame })
    }

    /// Takes the id as it stands in the line as it came, of which `text` is the reading: the answer
    /// repeats it.
    pub(crate) fn with_id_of(self, line: &'a [u8], text: &'a str) -> Self {
        if line.len() != text.len() {
            return self;
        }
        let exact = |id: &RawValue| {
            let start = id.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
            serde_json::from_slice(line.get(start..start + id.get().len())?).ok()
        };
        Self { id: self.id.map(|id| exact(id).unwrap_or(id)), ..self }
    }

    /// Reads the members of a line up to its first syntax error.
    pub(crate) fn beginning(line: &'a str) -> Self {
        let mut frame = Self::default();
        let mut json = serde_json::Deserializer::from_str(line);
        let _torn = json.deserialize_map(FrameVisitor(&mut frame));
        frame
    }

    pub(crate) fn method(&self) -> Option<Cow<'a, str>> {
        self.method.and_then(|method| json::text(method.get()))
    }

    /// The parameters' text; `null` without parameters.
    pub(crate) fn params(&self) -> &'a str {
        self.params.map_or("null", RawValue::get)
    }

    /// The id of a request, if it has exactly one.
    pub(crate) fn request_id(&self) -> Option<&'a RawValue> {
        self.id.filter(|_| self.has_method && !self.two_ids)
    }

    fn note<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let place = match name {
            "id" => &mut self.id,
            "method" => &mut self.method,
            "params" => &mut self.params,
            "result" => &mut self.result,
            "error" => &mut self.error,
            "jsonrpc" => &mut self.jsonrpc,
            other => {
                self.has_method |= mimics(other, &["method"]);
                self.unclear |= mimics(other, &MEMBERS);
                return map.next_value::<IgnoredAny>().map(|_| ());
            }
        };
        let value: &RawValue = map.next_value()?;
        match place {
            None => *place = Some(value),
            Some(first) => {
                self.unclear = true;
                self.two_ids |= name == "id" && first.get() != value.get();
            }
        }
        self.has_method |= name == "method";
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Frame<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut frame = Self::default();
        deserializer.deserialize_map(FrameVisitor(&mut frame))?;
        Ok(frame)
    }
}

/// Fills the frame member by member, so that a torn one keeps its first members.
struct FrameVisitor<'f, 'de>(&'f mut Frame<'de>);

impl<'de> Visitor<'de> for FrameVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(MemberName(name)) = map.next_key()? {
            self.0.note(&name, &mut map)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_envelope_is_read_as_text() {
        let frame =
            Frame::of(r#"{"jsonrpc":"2.0","id":1.0,"method":"a\/b","params":{},"x":1}"#).unwrap();
        assert_eq!(frame.request_id().unwrap().get(), "1.0");
        assert_eq!(frame.method().unwrap(), "a/b");
        assert_eq!(frame.params(), "{}");
        assert!(!frame.unclear);
        let null = Frame::of(r#"{"id":null,"method":"a"}"#).unwrap();
        assert_eq!(null.id.unwrap().get(), "null");
        assert!(Frame::of("[]").is_none());
        assert!(Frame::of("{} {}").is_none());
    }

    #[test]
    fn doubles_and_mimics_are_noted() {
        let doubled = Frame::of(r#"{"id":1,"method":"a","id":2}"#).unwrap();
        assert!(doubled.unclear && doubled.request_id().is_none());
        let mimicked = Frame::of(r#"{"id":1,"M\u0045THOD":"a","\ud800":0}"#).unwrap();
        assert!(mimicked.unclear && mimicked.request_id().is_some());
        assert!(Frame::of(r#"{"id":1,"result":{},"x":1,"x":2}"#).unwrap().request_id().is_none());
    }

    #[test]
    fn the_beginning_of_a_torn_line_is_read() {
        let id = |line| Frame::beginning(line).request_id().map(|id| id.get().to_owned());
        assert_eq!(id(r#"{"id":7,"method":"a","params":{"path":"x",}}"#).unwrap(), "7");
        assert_eq!(id(r#"{"id":7,"method":"a"} {"id":8}"#).unwrap(), "7");
        assert_eq!(id(r#"{"id":7,"#), None);
        assert_eq!(id("noise"), None);
    }
}
