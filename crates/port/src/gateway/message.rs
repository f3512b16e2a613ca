//! Lines of JSON-RPC: what they are about, and the same line under other ids. What is not replaced stays
//! the bytes that it came in.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::acp::Complaint;
use crate::line;

/// The result of a prompt whose turn is cancelled.
pub(super) const CANCELLED: &str = r#"{"stopReason":"cancelled"}"#;

/// The members of params or a result that name a session or a request.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct About<'a> {
    /// As it stands in the line.
    #[serde(borrow)]
    pub(super) session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) request_id: Option<&'a RawValue>,
}

impl<'a> About<'a> {
    /// Reads them; an error says what is wrong, such as a key that is there twice.
    pub(super) fn read(params: Option<&'a RawValue>) -> Result<Self, String> {
        // A derived reader would take an array as the members in their order.
        match params.map(RawValue::get).filter(|params| params.starts_with('{')) {
            None => Ok(Self::default()),
            Some(params) => serde_json::from_str(params).map_err(|error| error.to_string()),
        }
    }

    /// The session's id, if it is text.
    pub(super) fn session(&self) -> Option<Cow<'a, str>> {
        self.session_id.and_then(text)
    }
}

/// The text that a JSON string stands for.
pub(super) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str(raw.get()).ok().map(|Text(text)| text)
}

/// The number of one of our ids: `"3"` is not 3.
pub(super) fn number(id: &RawValue) -> Option<u64> {
    id.get().parse().ok()
}

/// A line under other ids.
pub(super) struct Edited<'a> {
    line: &'a [u8],
    edits: Vec<(Range<usize>, Cow<'a, str>)>,
}

impl<'a> Edited<'a> {
    pub(super) fn new(line: &'a [u8]) -> Self {
        Self { line, edits: Vec::with_capacity(3) }
    }

    /// Puts `by` in place of a part of the line.
    pub(super) fn replace(mut self, part: &RawValue, by: impl Into<Cow<'a, str>>) -> Self {
        if let Some(range) = self.range(part.get()) {
            self.edits.push((range, by.into()));
        }
        self
    }

    /// Puts `text` behind the first character of a part.
    pub(super) fn insert_into(mut self, part: &RawValue, text: impl Into<Cow<'a, str>>) -> Self {
        if let Some(range) = self.range(part.get()) {
            self.edits.push((range.start + 1..range.start + 1, text.into()));
        }
        self
    }

    /// Where a part of the line stands in it.
    fn range(&self, part: &str) -> Option<Range<usize>> {
        let start = (part.as_ptr() as usize).checked_sub(self.line.as_ptr() as usize)?;
        let end = start.checked_add(part.len())?;
        debug_assert!(end <= self.line.len(), "a part of this line");
        (end <= self.line.len()).then_some(start..end)
    }

    /// The line, with its end.
    pub(super) fn line(mut self) -> Bytes {
        self.edits.sort_by_key(|(range, _)| range.start);
        let added: usize = self.edits.iter().map(|(_, by)| by.len()).sum();
        let mut line = Vec::with_capacity(self.line.len() + added + 1);
        let mut at = 0;
        for (range, by) in &self.edits {
            line.extend_from_slice(&self.line[at..range.start]);
            line.extend_from_slice(by.as_bytes());
            at = range.end;
        }
        line.extend_from_slice(&self.line[at..]);
        line.push(b'\n');
        line.into()
    }
}

/// A JSON string.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Builds a request of the gateway's own; `params` is JSON.
pub(super) fn request(id: u64, method: &str, params: &str) -> Bytes {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n")
        .into()
}

/// Builds a notification.
pub(super) fn notification(method: &str, params: &Value) -> Bytes {
    format!("{}\n", json!({ "jsonrpc": "2.0", "method": method, "params": params })).into()
}

/// Builds a `session/update`.
pub(super) fn update(session: &str, update: &Value) -> Bytes {
    notification("session/update", &json!({ "sessionId": session, "update": update }))
}

/// Builds the `session/update` that shows a block of a prompt.
pub(super) fn user_message(session: &str, block: &RawValue) -> Bytes {
    let session = quoted(session);
    let update = format!("{{\"sessionUpdate\":\"user_message_chunk\",\"content\":{block}}}");
    let params = format!("{{\"sessionId\":{session},\"update\":{update}}}");
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{params}}}\n").into()
}

/// Builds an answer; `result` is JSON.
pub(super) fn result(id: &RawValue, result: &str) -> Bytes {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n").into()
}

/// Builds an error as an answer.
pub(super) fn failure(id: &RawValue, code: i32, message: &str) -> Bytes {
    let message = quoted(message);
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{message}}}}}\n"
    )
    .into()
}

/// The text of an agent's error.
pub(super) fn complaint(error: &RawValue) -> String {
    let complaint: Complaint = line::or_default(error.get());
    let details = complaint.details().next();
    match (complaint.message, details) {
        (Some(message), Some(details)) => format!("{message}: {details}"),
        (Some(message), None) => message,
        (None, _) => error.get().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::acp::AcpMessage;
    use crate::model::code;

    #[test]
    fn a_line_under_other_ids_is_else_the_same() {
        let line =
            br#"{ "id" : 7.50, "method":"x", "params":{"a":[1,  2],"sessionId":"\u0061","z":1e2}}"#;
        let AcpMessage::Request { id, params, .. } = AcpMessage::parse(line).unwrap() else {
            panic!()
        };
        let about = About::read(params).unwrap();
        assert_eq!(about.session().unwrap(), "a");
        let edited = Edited::new(line).replace(about.session_id.unwrap(), "\"b\"").replace(id, "3");
        assert_eq!(
            edited.line(),
            concat!(
                r#"{ "id" : 3, "method":"x", "params":{"a":[1,  2],"sessionId":"b","z":1e2}}"#,
                "\n"
            )
        );
        let blocks: &RawValue = serde_json::from_str(r#"[ {"a":1}]"#).unwrap();
        let edited = Edited::new(blocks.get().as_bytes()).insert_into(blocks, "0,");
        assert_eq!(edited.line(), "[0, {\"a\":1}]\n");
    }

    #[test]
    fn what_parsers_could_read_in_two_ways_is_refused() {
        let refusal = |line: &[u8]| AcpMessage::parse(line).unwrap_err().answer(line).0;
        assert_eq!(refusal(b"nonsense"), code::PARSE_ERROR);
        for line in [&b"[]"[..], b"{}", b"7", br#"{"id":1,"id":2,"method":"m"}"#] {
            assert_eq!(refusal(line), code::INVALID_REQUEST);
        }
        let twice: &RawValue =
            serde_json::from_str(r#"{"sessionId":"a","sessionId":"b"}"#).unwrap();
        assert!(About::read(Some(twice)).is_err());
        let list: &RawValue = serde_json::from_str(r#"["a","b"]"#).unwrap();
        assert!(About::read(Some(list)).unwrap().session_id.is_none());
        let other: &RawValue = serde_json::from_str(r#"{"sessionId":{"a":1}}"#).unwrap();
        assert!(About::read(Some(other)).unwrap().session().is_none());
    }
}
