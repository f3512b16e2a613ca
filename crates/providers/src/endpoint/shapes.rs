//! The endpoint's own answers, each in the shape and with the status of the vendor, so that agents take them as its.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

use super::callers::CallRefusal;
use crate::provider::ProviderKind;

/// An answer of the endpoint itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum OwnAnswer {
    /// The token is missing or nobody's.
    Stranger,
    /// The budget, or whatever else `admit` keeps.
    Refused(CallRefusal),
    /// The request can't be sent as it is.
    Bad(&'static str),
    /// The body is longer than this many bytes.
    TooLong(u64),
    /// Too many bodies are on their way.
    Full,
    /// The provider can't be reached, or did not answer.
    Away(&'static str),
    /// The endpoint does not take over connections.
    NoUpgrade,
}

/// The words of an answer: its status, and how each vendor calls it.
struct OwnWords {
    status: u16,
    message: String,
    openai: (&'static str, Option<&'static str>),
    anthropic: &'static str,
    gemini: &'static str,
}

impl OwnAnswer {
    /// Makes the answer in the shape of a kind of provider.
    pub(super) fn shaped(&self, kind: ProviderKind) -> Response<Bytes> {
        let said = self.said(kind);
        let body = match kind {
            ProviderKind::OpenAi => json!({"error": {
                "message": said.message,
                "type": said.openai.0,
                "param": null,
                "code": said.openai.1,
            }}),
            ProviderKind::Anthropic => json!({
                "type": "error",
                "error": {"type": said.anthropic, "message": said.message},
            }),
            ProviderKind::Gemini => {
                let mut error = json!({
                    "code": said.status,
                    "message": said.message,
                    "status": said.gemini,
                });
                if let (Self::Refused(refusal), Value::Object(error)) = (self, &mut error) {
                    error.insert("details".to_owned(), details(refusal));
                }
                json!({ "error": error })
            }
        };
        let mut response = plain(said.status, body.to_string(), "application/json");
        if let Self::Refused(refusal) = self {
            let headers = response.headers_mut();
            // The SDKs of two vendors try a 429 again unless this says no.
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
            if let Some(wait) = refusal.retry_after {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
            }
        }
        response
    }

    fn said(&self, kind: ProviderKind) -> OwnWords {
        let said = |status, message: &str, openai, anthropic, gemini| OwnWords {
            status,
            message: message.to_owned(),
            openai,
            anthropic,
            gemini,
        };
        let bad = ("invalid_request_error", None);
        match self {
            Self::Stranger => said(
                if kind == ProviderKind::Gemini { 400 } else { 401 },
                "eisen-core: this token is not that of an agent of the team, or the request comes from a process \
                 that is not the agent's",
                ("invalid_request_error", Some("invalid_api_key")),
                "authentication_error",
                "INVALID_ARGUMENT",
            ),
            Self::Refused(refusal) => said(
                if kind == ProviderKind::Anthropic { 400 } else { 429 },
                &match kind {
                    ProviderKind::Anthropic => format!(
                        "Your credit balance is too low to access the Anthropic API. eisen-core: {}",
                        refusal.why
                    ),
                    ProviderKind::OpenAi | ProviderKind::Gemini => {
                        format!("You exceeded your current quota. eisen-core: {}", refusal.why)
                    }
                },
                ("insufficient_quota", Some("insufficient_quota")),
                "invalid_request_error",
                "RESOURCE_EXHAUSTED",
            ),
            Self::Bad(why) => said(400, why, bad, "invalid_request_error", "INVALID_ARGUMENT"),
            Self::TooLong(most) => said(
                413,
                &format!("eisen-core: a request may have {most} bytes"),
                bad,
                "request_too_large",
                "INVALID_ARGUMENT",
            ),
            Self::Full => said(
                503,
                "eisen-core: too many requests with long bodies at once; try again",
                ("server_error", None),
                "overloaded_error",
                "UNAVAILABLE",
            ),
            Self::Away(why) => said(502, why, ("server_error", None), "api_error", "UNAVAILABLE"),
            Self::NoUpgrade => said(
                426,
                "eisen-core: this endpoint speaks HTTP, and no WebSocket",
                bad,
                "invalid_request_error",
                "INVALID_ARGUMENT",
            ),
        }
    }
}

/// The details by which Gemini's own agent knows that it is of no use to try again soon.
fn details(refusal: &CallRefusal) -> Value {
    let mut details = vec![json!({
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaId": "EisenTeamBudgetPerDay", "description": refusal.why}],
    })];
    if let Some(wait) = refusal.retry_after {
        details.push(json!({
            "@type": "type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay": format!("{}s", whole_seconds(wait)),
        }));
    }
    Value::Array(details)
}

fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

/// An answer to a request that is for no provider.
pub(super) fn unshaped(status: StatusCode, why: &str) -> Response<Bytes> {
    plain(status.as_u16(), format!("eisen-core: {why}\n"), "text/plain; charset=utf-8")
}

fn plain(status: u16, body: String, kind: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
