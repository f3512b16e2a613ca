//! JSON-RPC over ndjson, on the agent's side: bounded lines in, messages out. Knows no methods.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::AsyncRead;
use tokio::sync::mpsc;

pub(super) use crate::line::MAX_LINE;
use crate::line::{Line, LineReader};
use crate::model::code;

/// Capacity of the queue of lines read; past that, reading waits.
pub(super) const LINES_AHEAD: usize = 16;

/// A JSON-RPC request, notification or response, by its fields.
#[derive(Deserialize)]
pub(super) struct Incoming {
    /// Raw, so that it is sent back unchanged.
    pub(super) id: Option<Box<RawValue>>,
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Value,
    pub(super) result: Option<Value>,
    pub(super) error: Option<RpcError>,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct RpcError {
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
}

impl RpcError {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }

    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }
}

/// Reads lines to the end of the input; sends None for a line that is too long.
pub(super) async fn read_lines<R>(reader: R, lines: mpsc::Sender<Option<Bytes>>)
where
    R: AsyncRead + Unpin,
{
    let mut reader = LineReader::new(reader, MAX_LINE);
    loop {
        let line = match reader.next().await {
            Ok(Line::Whole(line)) if line.trim_ascii().is_empty() => continue,
            Ok(Line::Whole(line)) => Some(line),
            Ok(Line::TooLong(_)) => None,
            Ok(Line::End) | Err(_) => return,
        };
        let is_last = line.is_none();
        // Fails if the receiver has ended.
        if lines.send(line).await.is_err() || is_last {
            return;
        }
    }
}

pub(super) fn parse(line: &[u8]) -> Result<Incoming, RpcError> {
    // A batch: serde would read an array as the fields of the message in order.
    if line.trim_ascii_start().starts_with(b"[") {
        return Err(RpcError::new(code::INVALID_REQUEST, "a message is an object"));
    }
    serde_json::from_slice(line).map_err(|error| {
        let code = if error.is_data() { code::INVALID_REQUEST } else { code::PARSE_ERROR };
        RpcError::new(code, error.to_string())
    })
}

pub(super) fn response(id: Option<&RawValue>, answer: &Result<Value, RpcError>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Response<'a> {
        jsonrpc: &'static str,
        id: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a RpcError>,
    }
    let (result, error) = (answer.as_ref().ok(), answer.as_ref().err());
    line(&Response { jsonrpc: "2.0", id, result, error })
}

pub(super) fn request(id: u64, method: &str, params: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

pub(super) fn notification(method: &str, params: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

fn line(message: &impl Serialize) -> Vec<u8> {
    // Maps with string keys, strings and finite numbers always serialize.
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line
}
