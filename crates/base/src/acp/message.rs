//! Tells which kind of message a line is: a request, a notification, or a response. Its parts stay as they came.

use std::borrow::Cow;

use serde::de::{Deserialize as _, Deserializer, IgnoredAny};
use serde_json::value::RawValue;

use crate::model::code;

/// A line, by its kind.
#[derive(Debug)]
pub enum AcpMessage<'a> {
    /// A call that is to be answered.
    Request {
        /// Any JSON, as it stands in the line.
        id: &'a RawValue,
        /// The method's name.
        method: Cow<'a, str>,
        /// Any JSON; None where there are none.
        params: Option<&'a RawValue>,
    },
    /// A call that has no answer.
    Notification {
        /// The method's name.
        method: Cow<'a, str>,
        /// Any JSON; None where there are none.
        params: Option<&'a RawValue>,
    },
    /// The answer to a request.
    Response {
        /// The id of the request.
        id: &'a RawValue,
        /// The result or the error.
        outcome: RpcResult<'a>,
    },
}

/// The outcome of a request as raw JSON: a result, where None is `null`, or an error.
pub type RpcResult<'a> = Result<Option<&'a RawValue>, &'a RawValue>;

/// Why a line is not a message.
#[derive(Debug, thiserror::Error)]
pub enum NoMessage {
    /// A list of messages.
    #[error("a batch, which the protocol does not have")]
    Batch,
    /// An object of no kind.
    #[error("neither a method nor an id")]
    Nothing,
    /// No JSON, or none that has the members of a message.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

#[derive(serde::Deserialize)]
#[serde(expecting = "an object")]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// Tells a value of `null` from a missing value.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl<'a> AcpMessage<'a> {
    /// Parses a line; each member may stand in it once.
    pub fn parse(line: &'a [u8]) -> Result<Self, NoMessage> {
        if line.trim_ascii_start().first() == Some(&b'[') {
            return Err(NoMessage::Batch);
        }
        let Envelope { id, method, params, result, error } = serde_json::from_slice(line)?;
        match (method, id) {
            (Some(method), Some(id)) => Ok(Self::Request { id, method, params }),
            (Some(method), None) => Ok(Self::Notification { method, params }),
            (None, Some(id)) => Ok(Self::Response { id, outcome: error.map_or(Ok(result), Err) }),
            (None, None) => Err(NoMessage::Nothing),
        }
    }
}

impl NoMessage {
    /// The same for all lines with the same mistake.
    pub fn cause(&self) -> &'static str {
        match self {
            Self::Batch => "a batch",
            Self::Nothing => "no method and no id",
            Self::Json(_) => "no JSON",
        }
    }

    /// The code and the message of the answer to the line's sender.
    pub fn answer(&self, line: &[u8]) -> (i32, String) {
        let is_json = serde_json::from_slice::<IgnoredAny>(line).is_ok();
        match self {
            Self::Json(error) if !is_json => (code::PARSE_ERROR, format!("Parse error: {error}")),
            why => (code::INVALID_REQUEST, format!("Invalid request: {why}")),
        }
    }
}
