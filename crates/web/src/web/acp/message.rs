//! The facts of a message that the transport has to know: its kind, its id, and its session.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::model::code;

/// The head of a message.
#[derive(Debug)]
pub(super) struct AcpEnvelope<'a> {
    method: Option<Cow<'a, str>>,
    /// As it stands in the message.
    pub(super) id: Option<&'a RawValue>,
    session: Option<String>,
    is_failure: bool,
}

#[derive(Deserialize)]
struct AcpMessageHead<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ParamsHead {
    #[serde(rename = "sessionId")]
    session: String,
}

impl<'a> AcpEnvelope<'a> {
    /// Reads a message; the error is the sender's answer.
    pub(super) fn read(line: &'a [u8]) -> Result<Self, String> {
        // A derived reader would take an array as the members in their order.
        if line.trim_ascii_start().first() == Some(&b'[') {
            let why = "Invalid request: a batch, which the protocol does not have";
            return Err(failure(code::INVALID_REQUEST, why));
        }
        let head: AcpMessageHead<'a> = serde_json::from_slice(line).map_err(|error| {
            let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
            if is_json {
                failure(code::INVALID_REQUEST, &format!("Invalid request: {error}"))
            } else {
                failure(code::PARSE_ERROR, &format!("Parse error: {error}"))
            }
        })?;
        let AcpMessageHead { id, method, params, error } = head;
        let of_session = method.as_ref().is_some_and(|method| !method.starts_with("$/"));
        let params = params.filter(|params| of_session && params.get().starts_with('{'));
        // Params that can't be read are the gateway's to refuse.
        let params = params.and_then(|it| serde_json::from_str::<ParamsHead>(it.get()).ok());
        let session = params.map(|params| params.session);
        Ok(Self { method, id, session, is_failure: error.is_some() })
    }

    pub(super) fn is_request(&self, method: &str) -> bool {
        self.id.is_some() && self.method.as_deref() == Some(method)
    }

    pub(super) fn is_answer(&self) -> bool {
        self.method.is_none() && self.id.is_some()
    }

    pub(super) fn is_failure(&self) -> bool {
        self.is_failure
    }

    /// The session that a request or a notification is about.
    pub(super) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

fn failure(code: i32, message: &str) -> String {
    let error = json!({ "code": code, "message": message });
    json!({ "jsonrpc": "2.0", "id": Value::Null, "error": error }).to_string()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_session_is_that_of_params() {
        let session =
            |line: &str| AcpEnvelope::read(line.as_bytes()).unwrap().session().map(str::to_owned);
        let about = r#"{"id":1,"method":"session/prompt","params":{"a":[1],"sessionId":"\u0073"}}"#;
        assert_eq!(session(about).as_deref(), Some("s"));
        assert_eq!(session(&about.replace("session/prompt", "$/cancel_request")), None);
        for line in [
            r#"{"id":1,"result":{"sessionId":"s"}}"#,
            r#"{"method":"m","params":{"sessionId":7}}"#,
            r#"{"method":"m","params":{"sessionId":"s","sessionId":"t"}}"#,
            r#"{"method":"m","params":["s"]}"#,
            r#"{"method":"m"}"#,
        ] {
            assert_eq!(session(line), None, "{line}");
        }
        for (line, code) in
            [("x", "-32700"), ("[]", "-32600"), ("7", "-32600"), (r#"{"id":1,"id":2}"#, "-32600")]
        {
            assert!(AcpEnvelope::read(line.as_bytes()).unwrap_err().contains(code), "{line}");
        }
    }
}
