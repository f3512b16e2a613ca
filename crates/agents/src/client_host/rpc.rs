//! JSON-RPC on the pipe: reads what messages of the agent carry, and builds the host's. Does not
//! interpret methods.

use agent_client_protocol_schema::v1::Error;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::HostError;
use crate::acp::{self, Complaint, RpcResult};
use crate::line;
use crate::model::code;

/// Length of the longest line sent, which every relay on the way accepts.
pub(super) const MAX_SENT: usize = 64 << 20;

/// Upper bound for the bytes of an answer beside its result and id.
const ENVELOPE: usize = 64;

/// An error answer of the agent, in any shape: the caller must always receive it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct RpcFailure {
    code: i64,
    message: String,
}

impl RpcFailure {
    /// The useful detail is often only in `data`.
    pub(super) fn read(raw: &RawValue) -> Self {
        let error: Value = line::read(raw.get().as_bytes()).unwrap_or_default();
        let error: Complaint = acp::read(&error);
        let details = error.details().find(|details| !details.is_empty());
        let code = line::integer(&error.code.to_string()).unwrap_or_default();
        let message = match (error.message, details) {
            (Some(message), Some(details)) => format!("{message}: {details}"),
            (Some(message), None) => message,
            (None, _) => raw.get().to_owned(),
        };
        Self { code, message }
    }

    pub(super) fn into_error(self, method: &str) -> HostError {
        HostError::Refused { method: method.to_owned(), code: self.code, message: self.message }
    }
}

/// Returns the number of one of the host's ids. `"3"` is not 3: an answer has the same id as its
/// request (JSON-RPC 2.0, section 5).
pub(super) fn number(id: &RawValue) -> Option<u64> {
    line::integer(id.get()).and_then(|number| u64::try_from(number).ok())
}

/// Decodes the params of a request.
pub(super) fn decode<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, Error> {
    let text = params.map_or("null", RawValue::get);
    line::read(text.as_bytes())
        .map_err(|error| failure(code::INVALID_PARAMS, format!("Invalid params: {error}")))
}

/// Params of `$/cancel_request`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CancelRequest {
    pub(super) request_id: Box<RawValue>,
}

/// Encodes the result of a request.
pub(super) fn encode(result: &impl Serialize) -> Result<Box<RawValue>, Error> {
    to_raw_value(result).map_err(|error| failure(code::INTERNAL_ERROR, error.to_string()))
}

pub(super) fn failure(code: i32, message: impl Into<String>) -> Error {
    Error::new(code, message)
}

pub(super) fn request(id: u64, method: &str, params: &impl Serialize) -> Bytes {
    #[derive(Serialize)]
    struct RpcRequest<'a, P> {
        jsonrpc: &'static str,
        id: u64,
        method: &'a str,
        params: &'a P,
    }
    line(&RpcRequest { jsonrpc: "2.0", id, method, params })
}

pub(super) fn notification(method: &str, params: &impl Serialize) -> Bytes {
    #[derive(Serialize)]
    struct Notification<'a, P> {
        jsonrpc: &'static str,
        method: &'a str,
        params: &'a P,
    }
    line(&Notification { jsonrpc: "2.0", method, params })
}

/// Builds the line that forwards a message: a request under a new id, or a notification. None if
/// the line would be too long.
pub(super) fn forward_message(
    id: Option<u64>,
    method: &str,
    params: Option<&RawValue>,
) -> Option<Bytes> {
    #[derive(Serialize)]
    struct PassedOn<'a> {
        jsonrpc: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
        method: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<&'a RawValue>,
    }
    let line = line(&PassedOn { jsonrpc: "2.0", id, method, params });
    (line.len() <= MAX_SENT).then_some(line)
}

/// Builds the answer to a request, with its id as it came. An answer too long for a line becomes an
/// error.
pub(super) fn response(id: &RawValue, outcome: Result<&RawValue, &Error>) -> Bytes {
    response_within(MAX_SENT, id, outcome)
}

/// Builds the line that forwards an answer, with its outcome as it came.
pub(super) fn forward_response(id: &RawValue, outcome: RpcResult<'_>) -> Bytes {
    response_within(MAX_SENT, id, outcome.map(|result| result.unwrap_or(RawValue::NULL)))
}

fn response_within(
    max: usize,
    id: &RawValue,
    outcome: Result<&RawValue, &(impl Serialize + ?Sized)>,
) -> Bytes {
    #[derive(Serialize)]
    struct RpcResponse<'a, E: ?Sized> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a E>,
    }
    match outcome {
        Ok(result) if result.get().len() + id.get().len() + ENVELOPE > max => {
            let why = format!("The answer is longer than the {max} bytes that a line may have");
            let error = failure(code::INTERNAL_ERROR, why);
            line(&RpcResponse { jsonrpc: "2.0", id, result: None, error: Some(&error) })
        }
        outcome => {
            line(&RpcResponse { jsonrpc: "2.0", id, result: outcome.ok(), error: outcome.err() })
        }
    }
}

#[expect(clippy::expect_used, reason = "structs and JSON values always serialise")]
fn line(message: &impl Serialize) -> Bytes {
    let mut line = serde_json::to_vec(message).expect("a message has string keys only");
    line.push(b'\n');
    line.into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use expect_test::{Expect, expect};

    use super::*;
    use crate::acp::AcpMessage;

    #[test]
    fn lines_are_distinguished() {
        let check = |line: &str, reported: Expect| {
            reported.assert_eq(&match AcpMessage::parse(line.as_bytes()) {
                Ok(AcpMessage::Request { id, method, params }) => {
                    format!("request {id} {method} {:?}", params.map(RawValue::get))
                }
                Ok(AcpMessage::Notification { method, params }) => {
                    format!("notification {method} {:?}", params.map(RawValue::get))
                }
                Ok(AcpMessage::Response { id, outcome }) => format!(
                    "response {id} {:?}",
                    outcome
                        .map(|result| result.map(RawValue::get))
                        .map_err(|error| RpcFailure::read(error).into_error("m").to_string())
                ),
                Err(why) => format!("bad: {why}"),
            });
        };
        check(
            r#"{"jsonrpc":"2.0","id": 1.50 ,"method":"m","params":{"a":1}}"#,
            expect![[r#"request 1.50 m Some("{\"a\":1}")"#]],
        );
        check(r#"{"id":"é\u00e9","method":"m"}"#, expect![[r#"request "é\u00e9" m None"#]]);
        check(r#"{"id":null,"method":"m"}"#, expect!["request null m None"]);
        check(r#"{"method":"m","params":null}"#, expect!["notification m None"]);
        check(r#"{"id":0,"result":null}"#, expect!["response 0 Ok(None)"]);
        check(r#"{"id":0,"result":{}}"#, expect![[r#"response 0 Ok(Some("{}"))"#]]);
        check(
            r#"{"id":0,"error":{"code":-32603,"message":"Internal error","data":{"details":"no key"}}}"#,
            expect![[
                r#"response 0 Err("the agent answered `m` with error -32603: Internal error: no key")"#
            ]],
        );
        check(
            r#"{"id":0,"error":{"code":1,"message":"no","data":{"message":"why"}},"result":null}"#,
            expect![[r#"response 0 Err("the agent answered `m` with error 1: no: why")"#]],
        );
        check(
            r#"{"id":0,"error":{}}"#,
            expect![[r#"response 0 Err("the agent answered `m` with error 0: {}")"#]],
        );
        check(
            r#"{"id":0,"error":"boom"}"#,
            expect![[r#"response 0 Err("the agent answered `m` with error 0: \"boom\"")"#]],
        );
        check(r#"{"id":0,"error":null,"result":1}"#, expect![[r#"response 0 Ok(Some("1"))"#]]);
        check("{}", expect!["bad: neither a method nor an id"]);
        check(" [{}]", expect!["bad: a batch, which the protocol does not have"]);
        check(
            "7",
            expect!["bad: invalid type: integer `7`, expected an object at line 1 column 1"],
        );
        check("npm WARN", expect!["bad: expected ident at line 1 column 2"]);
        check(
            r#"{"id":1,"id":2,"method":"m"}"#,
            expect!["bad: duplicate field `id` at line 1 column 12"],
        );
        let deep = format!(r#"{{"method":"m","params":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
        assert!(AcpMessage::parse(deep.as_bytes()).is_ok());
        assert!(AcpMessage::parse(b"{\"method\":\"\xff\"}").is_err());
    }

    #[test]
    fn an_answer_too_long_for_a_line_is_an_error() {
        let id = encode(&7).unwrap();
        let answer = |length| {
            let result = encode(&"x".repeat(length)).unwrap();
            String::from_utf8(response_within(100, &id, Ok::<_, &Error>(&result)).into()).unwrap()
        };
        assert_eq!(
            answer(33),
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":"{}"}}"#, "x".repeat(33)) + "\n"
        );
        expect![[r#"
            {"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"The answer is longer than the 100 bytes that a line may have"}}
        "#]].assert_eq(&answer(34));
    }
}
