//! The envelope of a JSON-RPC message, with what makes it ambiguous noted beside it.
//!
//! Observation takes what is there; only the gate asks for more. Knows no method.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::strict::mimics;
use crate::extract::json::{self, MemberName};

/// The members that matter.
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// The members of the envelope, each the text it came as; of doubled ones the first.
#[derive(Default)]
pub(crate) struct Frame<'a> {
    /// All of it.
    pub(crate) text: &'a str,
    pub(crate) id: Option<&'a RawValue>,
    pub(crate) method: Option<&'a RawValue>,
    pub(crate) params: Option<&'a RawValue>,
    pub(crate) result: Option<&'a RawValue>,
    pub(crate) error: Option<&'a RawValue>,
    jsonrpc: Option<&'a RawValue>,
    /// A member that matters came twice, or one is named like it but for case.
    pub(crate) unclear: bool,
    /// It came with two ids that differ.
    two_ids: bool,
    /// There is a `method`, in whatever case.
    asks: bool,
}

impl<'a> Frame<'a> {
    /// Returns None if the line is no JSON object.
    pub(crate) fn of(line: &'a str) -> Option<Self> {
        let frame: Self = serde_json::from_str(line).ok()?;
        Some(Self { text: line, ..frame })
    }

    /// Returns what can be told of a line that need not be JSON to its end.
    pub(crate) fn beginning(line: &'a str) -> Self {
        let mut frame = Self::default();
        let mut json = serde_json::Deserializer::from_str(line);
        let _torn = json.deserialize_map(FrameVisitor(&mut frame));
        frame
    }

    pub(crate) fn method(&self) -> Option<Cow<'a, str>> {
        self.method.and_then(|method| json::text(method.get()))
    }

    /// The parameters' text; `null` if there are none.
    pub(crate) fn params(&self) -> &'a str {
        self.params.map_or("null", RawValue::get)
    }

    /// The id by which the sender waits for an answer, if it can be told.
    pub(crate) fn asking_id(&self) -> Option<&'a RawValue> {
        self.id.filter(|_| self.asks && !self.two_ids)
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
                self.asks |= mimics(other, &["method"]);
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
        self.asks |= name == "method";
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

/// Fills the frame as it goes, so that something is left of a torn one.
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
        assert_eq!(frame.asking_id().unwrap().get(), "1.0");
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
        assert!(doubled.unclear && doubled.asking_id().is_none());
        let mimicked = Frame::of(r#"{"id":1,"M\u0045THOD":"a","\ud800":0}"#).unwrap();
        assert!(mimicked.unclear && mimicked.asking_id().is_some());
        assert!(Frame::of(r#"{"id":1,"result":{},"x":1,"x":2}"#).unwrap().asking_id().is_none());
    }

    #[test]
    fn the_beginning_of_a_torn_line_is_told() {
        let id = |line| Frame::beginning(line).asking_id().map(|id| id.get().to_owned());
        assert_eq!(id(r#"{"id":7,"method":"a","params":{"path":"x",}}"#).unwrap(), "7");
        assert_eq!(id(r#"{"id":7,"method":"a"} {"id":8}"#).unwrap(), "7");
        assert_eq!(id(r#"{"id":7,"#), None);
        assert_eq!(id("noise"), None);
    }
}
