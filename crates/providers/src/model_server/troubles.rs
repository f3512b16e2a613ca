//! Errors as each vendor writes them.

use serde_json::{Value, json};

use super::api::ModelApi;
use crate::model::named;

named! {
    /// A kind of error that a script names.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(super) enum ModelTrouble {
        RateLimit = "rate_limit",
        Overloaded = "overloaded",
        Server = "server",
        Credit = "credit",
        Auth = "auth",
        Forbidden = "forbidden",
        NotFound = "not_found",
        TooLong = "too_long",
        Invalid = "invalid",
    }
}

/// An error, as a script or the server says it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ModelRefusal {
    pub(super) trouble: ModelTrouble,
    /// The status in place of the vendor's own.
    pub(super) status: Option<u16>,
    /// The text in place of the vendor's own.
    pub(super) message: Option<String>,
    pub(super) retry_after_s: Option<u64>,
}

/// The words of a vendor for one kind of error.
struct VendorWords {
    status: u16,
    kind: &'static str,
    code: Option<&'static str>,
    message: &'static str,
}

const fn words(
    status: u16,
    kind: &'static str,
    code: Option<&'static str>,
    message: &'static str,
) -> VendorWords {
    VendorWords { status, kind, code, message }
}

impl ModelRefusal {
    pub(super) fn new(trouble: ModelTrouble, message: impl Into<String>) -> Self {
        Self { trouble, status: None, message: Some(message.into()), retry_after_s: None }
    }

    pub(super) fn status(&self, api: ModelApi) -> u16 {
        self.status.unwrap_or(self.words(api).status)
    }

    /// The body of the answer. `n` is the number of the call.
    pub(super) fn body(&self, api: ModelApi, n: u64) -> Value {
        let words = self.words(api);
        let message = self.message.as_deref().unwrap_or(words.message);
        match api {
            ModelApi::Anthropic => json!({
                "type": "error",
                "error": { "type": words.kind, "message": message },
                "request_id": format!("req_{n:06}"),
            }),
            ModelApi::OpenAiChat | ModelApi::OpenAiResponses => json!({
                "error": {
                    "message": message, "type": words.kind, "param": null, "code": words.code,
                },
            }),
            ModelApi::Gemini => {
                let mut details = Vec::new();
                if let Some(seconds) = self.retry_after_s {
                    details.push(json!({
                        "@type": "type.googleapis.com/google.rpc.RetryInfo",
                        "retryDelay": format!("{seconds}s"),
                    }));
                }
                let status = self.status(api);
                let mut error = json!({ "code": status, "message": message, "status": words.kind });
                if let Some(error) = error.as_object_mut().filter(|_| !details.is_empty()) {
                    error.insert("details".to_owned(), details.into());
                }
                json!({ "error": error })
            }
        }
    }

    /// The code and the text of an answer of `responses` that failed.
    pub(super) fn failed(&self) -> Value {
        let words = self.words(ModelApi::OpenAiResponses);
        let message = self.message.as_deref().unwrap_or(words.message);
        json!({ "code": words.code.unwrap_or(words.kind), "message": message })
    }

    fn words(&self, api: ModelApi) -> VendorWords {
        match api {
            ModelApi::Anthropic => anthropic(self.trouble),
            ModelApi::OpenAiChat | ModelApi::OpenAiResponses => openai(self.trouble),
            ModelApi::Gemini => gemini(self.trouble),
        }
    }
}

fn anthropic(trouble: ModelTrouble) -> VendorWords {
    let invalid = "invalid_request_error";
    match trouble {
        ModelTrouble::RateLimit => words(
            429,
            "rate_limit_error",
            None,
            "This request would exceed your organization's rate limit.",
        ),
        ModelTrouble::Overloaded => words(529, "overloaded_error", None, "Overloaded"),
        ModelTrouble::Server => words(500, "api_error", None, "Internal server error"),
        ModelTrouble::Credit => words(
            400,
            invalid,
            None,
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to \
             upgrade or purchase credits.",
        ),
        ModelTrouble::Auth => words(401, "authentication_error", None, "invalid x-api-key"),
        ModelTrouble::Forbidden => words(
            403,
            "permission_error",
            None,
            "Your API key does not have permission to use the specified resource.",
        ),
        ModelTrouble::NotFound => words(404, "not_found_error", None, "Not found"),
        ModelTrouble::TooLong => {
            words(400, invalid, None, "prompt is too long: 200001 tokens > 200000 maximum")
        }
        ModelTrouble::Invalid => words(400, invalid, None, "Invalid request"),
    }
}

fn openai(trouble: ModelTrouble) -> VendorWords {
    let invalid = "invalid_request_error";
    match trouble {
        ModelTrouble::RateLimit => words(
            429,
            "tokens",
            Some("rate_limit_exceeded"),
            "Rate limit reached on tokens per min (TPM). Please try again later.",
        ),
        ModelTrouble::Overloaded => words(
            503,
            "server_error",
            Some("server_is_overloaded"),
            "The engine is currently overloaded, please try again later",
        ),
        ModelTrouble::Server => words(
            500,
            "server_error",
            Some("server_error"),
            "The server had an error while processing your request. Sorry about that!",
        ),
        ModelTrouble::Credit => words(
            429,
            "insufficient_quota",
            Some("insufficient_quota"),
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        ModelTrouble::Auth => {
            words(401, invalid, Some("invalid_api_key"), "Incorrect API key provided.")
        }
        ModelTrouble::Forbidden => words(
            403,
            invalid,
            Some("unsupported_country_region_territory"),
            "You are not allowed to use this resource.",
        ),
        ModelTrouble::NotFound => words(404, invalid, Some("model_not_found"), "Not found"),
        ModelTrouble::TooLong => words(
            400,
            invalid,
            Some("context_length_exceeded"),
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
        ),
        ModelTrouble::Invalid => words(400, invalid, None, "Invalid request"),
    }
}

fn gemini(trouble: ModelTrouble) -> VendorWords {
    let exhausted = "RESOURCE_EXHAUSTED";
    match trouble {
        ModelTrouble::RateLimit => {
            words(429, exhausted, None, "Resource has been exhausted (e.g. check quota).")
        }
        ModelTrouble::Overloaded => {
            words(503, "UNAVAILABLE", None, "The model is overloaded. Please try again later.")
        }
        ModelTrouble::Server => words(500, "INTERNAL", None, "An internal error has occurred."),
        ModelTrouble::Credit => words(
            429,
            exhausted,
            None,
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        ModelTrouble::Auth => {
            words(401, "UNAUTHENTICATED", None, "Request had invalid authentication credentials.")
        }
        ModelTrouble::Forbidden => words(403, "PERMISSION_DENIED", None, "Permission denied."),
        ModelTrouble::NotFound => words(404, "NOT_FOUND", None, "Not found"),
        ModelTrouble::TooLong => words(
            400,
            "INVALID_ARGUMENT",
            None,
            "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
        ),
        ModelTrouble::Invalid => words(400, "INVALID_ARGUMENT", None, "Invalid request"),
    }
}
