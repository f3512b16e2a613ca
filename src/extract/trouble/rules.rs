//! The table of error texts. A new wording needs a new entry and a test.

use std::sync::LazyLock;

use regex::Regex;

use super::Recovery::{self, Terminal, Transient, Users};

/// The first rule with a phrase in the lower-case text applies: specific rules come first.
const RULES: &[(Recovery, &str, &[&str])] = &[
    (
        Users,
        "no credit",
        &[
            "insufficient_quota",
            "insufficient quota",
            "credit balance is too low",
            "credit balance too low",
            "insufficient credit",
            "insufficient balance",
            "insufficient funds",
            "not enough credit",
            "out of credits",
            "no credits",
            "creditserror",
            "billing_hard_limit",
            "billing_not_active",
            "billing hard limit",
            "payment required",
            "payment_required",
            "spending limit",
            "monthly spend limit",
        ],
    ),
    (
        Transient,
        "usage limit reached",
        &[
            "usage limit",
            "usage_limit",
            "hit your limit",
            "hit your session limit",
            "hit your weekly limit",
            "hour limit",
            "session limit",
            "weekly limit",
            "monthly limit",
            "requests per day",
            "requestsperday",
            "perday",
            "out of extra usage",
            "out of premium requests",
            "premium request allowance",
            "quota_exceeded",
            "daily quota",
        ],
    ),
    (
        Transient,
        "overloaded",
        &[
            "overloaded",
            "at capacity",
            "capacity exceeded",
            "model_capacity_exhausted",
            "no capacity available",
            "experiencing high demand",
            "service unavailable",
            "service_unavailable",
            "serviceunavailable",
            "temporarily unavailable",
            "\"unavailable\"",
            "slow_down",
        ],
    ),
    (
        Transient,
        "rate limited",
        &[
            "rate limit",
            "rate_limit",
            "rate-limit",
            "ratelimit",
            "too many requests",
            "too_many_requests",
            "toomanyrequests",
            "resource_exhausted",
            "resource exhausted",
            "resource has been exhausted",
            "tokens per min",
            "requests per min",
            "throttl",
            "exhausted your capacity",
            "quota exceeded",
        ],
    ),
    // OpenAI's and Gemini's texts without credit; Gemini's limits per minute match a rule above.
    (Users, "no credit", &["exceeded your current quota", "check your plan and billing"]),
    (
        Users,
        "not authenticated",
        &[
            "authentication required",
            "authentication_error",
            "authentication_failed",
            "authentication failed",
            "auth_required",
            "auth required",
            "authrequired",
            "failed to authenticate",
            "not authenticated",
            "unauthenticated",
            "unauthorized",
            "not logged in",
            "log in again",
            "login required",
            "please run /login",
            "please login",
            "please log in",
            "sign in again",
            "invalid api key",
            "invalid_api_key",
            "invalid x-api-key",
            "incorrect api key",
            "missing api key",
            "no api key",
            "api key not valid",
            "api key not found",
            "api_key_invalid",
            "api key is missing",
            "api key expired",
            "token expired",
            "token has expired",
            "token is expired",
            "refresh token",
            "providerautherror",
            "bad credentials",
            "permission_error",
            "permission_denied",
            "permissiondenied",
        ],
    ),
    (
        Users,
        "model unknown",
        &[
            "model_not_found",
            "modelnotfound",
            "model not found",
            "model_not_supported",
            "model is not supported",
            "model not supported",
            "model_not_available",
            "model not available",
            "unknown model",
            "\"message\":\"model: ",
            "no such model",
            "invalid model",
            "invalid_model",
            "model does not exist",
            "do not have access to the model",
            "does not exist or you do not have access",
            "is not found for api version",
            "decommissioned",
        ],
    ),
    (
        Terminal,
        "context too long",
        &[
            "prompt is too long",
            "prompt too long",
            "input is too long",
            "context_length",
            "context length",
            "context window",
            "maximum context",
            "contextoverflow",
            "request_too_large",
            "request too large",
            "exceeds the maximum number of tokens",
        ],
    ),
    (
        Terminal,
        "refused by policy",
        &[
            "content_policy",
            "content policy",
            "content_filter",
            "content filter",
            "usage policy",
            "usage policies",
            "invalid_prompt",
            "cyber_policy",
            "prohibited_content",
            "flagged",
        ],
    ),
    (
        Transient,
        "server error",
        &[
            "api_error",
            "internal_server_error",
            "internal server error",
            "bad gateway",
            "gateway timeout",
            "gateway time-out",
            "server_error",
            "deadline_exceeded",
        ],
    ),
    (
        Transient,
        "connection failed",
        &[
            "econnreset",
            "econnrefused",
            "etimedout",
            "enotfound",
            "eai_again",
            "socket hang up",
            "fetch failed",
            "connection error",
            "connection reset",
            "connection refused",
            "network error",
            "stream disconnected",
            "error sending request",
            "request timed out",
            "unable to connect",
        ],
    ),
    (
        Terminal,
        "invalid request",
        &["invalid_request_error", "invalid_argument", "invalid request", "bad request"],
    ),
];

/// HTTP statuses, for texts without a known phrase.
const STATUSES: &[(&[u16], Recovery, &str)] = &[
    (&[401, 403, 407], Users, "not authenticated"),
    (&[402], Users, "no credit"),
    (&[429], Transient, "rate limited"),
    (&[503, 529], Transient, "overloaded"),
    (&[408, 425, 500, 502, 504, 520, 521, 522, 523, 524], Transient, "server error"),
    (&[413], Terminal, "context too long"),
    (&[400, 422], Terminal, "invalid request"),
];

/// Beginnings of answers that are errors.
const ERROR_PREFIXES: &[&str] = &[
    "api error",
    "error:",
    "error ",
    "claude ai usage limit reached",
    "claude usage limit reached",
    "usage limit reached",
    "5-hour limit reached",
    "weekly limit reached",
    "session limit reached",
    "you've hit your",
    "you’ve hit your",
    "you've reached your",
    "you're out of",
    "you have exceeded",
    "you exceeded",
    "sorry, you've hit a rate limit",
    "sorry, your request was rate-limited",
    "sorry, you have exhausted",
    "model call failed",
    "rate limit exceeded",
    "credit balance is too low",
    "your credit balance is too low",
    "invalid api key",
    "please run /login",
    "failed to authenticate",
    "prompt is too long",
];

/// An HTTP status, recognised by the word before it.
#[expect(clippy::unwrap_used, reason = "a fixed pattern, which tests compile")]
static STATUS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?:\A\W*|(?:status|code|error|http|https)(?:[ /_-]?(?:code|\d\.\d))?\W{0,6})([45]\d\d)\b",
    )
    .unwrap()
});

pub(super) fn find(text: &str) -> Option<(Recovery, &'static str)> {
    let by_word = RULES.iter().find(|(.., words)| words.iter().any(|word| text.contains(word)));
    by_word.map(|(recovery, what, _)| (*recovery, *what)).or_else(|| by_status(text))
}

/// Whether an answer is an error.
pub(super) fn looks_like_error(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    ERROR_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
}

fn by_status(text: &str) -> Option<(Recovery, &'static str)> {
    STATUS.captures_iter(text).find_map(|found| {
        let status: u16 = found[1].parse().ok()?;
        let rule = STATUSES.iter().find(|(statuses, ..)| statuses.contains(&status));
        rule.map(|(_, recovery, what)| (*recovery, *what))
    })
}
