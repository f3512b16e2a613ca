//! Errors as agents and model services word them.
#![allow(clippy::unwrap_used)]

use super::Trouble;

fn named(text: &str) -> String {
    Trouble::of(text).map_or_else(|| "-".to_owned(), |trouble| trouble.to_string())
}

#[test]
fn errors_of_many_services_are_classified() {
    for (text, expected) in ERRORS {
        assert_eq!(named(text), *expected, "{text}");
    }
}

#[test]
fn an_answer_that_speaks_of_errors_is_none() {
    let said = |text: &str| Trouble::from_text(text).map(|trouble| trouble.to_string());
    assert_eq!(
        said("\n\nClaude AI usage limit reached|1760000400").as_deref(),
        Some("usage limit reached (transient, try again at 2025-10-09T09:00:00Z)")
    );
    assert_eq!(
        said("API Error: Repeated 529 Overloaded errors").as_deref(),
        Some("overloaded (transient)")
    );
    assert_eq!(said("I now handle the 429 that a rate limit answers with."), None);
    assert_eq!(said("You've hit your stride."), None);
}

#[test]
fn none_of_forty_answers_about_errors_is_taken_for_one() {
    #[derive(serde::Deserialize)]
    struct Corpus {
        answers: Vec<String>,
    }
    let corpus: Corpus = toml::from_str(include_str!("answers.toml")).unwrap();
    assert_eq!(corpus.answers.len(), 40);
    for answer in corpus.answers {
        assert_eq!(Trouble::sent_as_answer(&answer), None, "{answer}");
        let noted = format!("Retrying (attempt 1/3, waiting 2s)...{answer}");
        assert_eq!(Trouble::sent_as_answer(&noted), None, "{noted}");
    }
}

#[test]
fn errors_that_are_sent_as_answers_are_found_however_long() {
    for (answer, what) in [
        (
            "unexpected status 500 Internal Server Error: upstream, url: http://127.0.0.1:1/v1/responses",
            "server error",
        ),
        (
            "exceeded retry limit, last status: 429 Too Many Requests, request id: 9c0d",
            "rate limited",
        ),
        (
            "Error: Failed to get response from the AI model; retried 5 times (total retry wait time: 6.1 seconds) Last error: CAPIError: 500 Internal Server Error",
            "server error",
        ),
        ("API call failed after 3 retries: HTTP 500: internal error", "server error"),
        ("Execution failed: CAPIError: 429 Too Many Requests", "rate limited"),
        ("HTTP 503: {}", "overloaded"),
        ("Selected model is at capacity. Please try a different model.", "overloaded"),
        (
            "Error: The model `gpt-9` does not exist or you do not have access to it.",
            "model unknown",
        ),
    ] {
        assert_eq!(Trouble::from_text(answer).map(|it| it.what()), Some(what), "{answer}");
    }
    let long = |letters: usize| format!("API Error: 500 {}", "é".repeat(letters));
    assert!(Trouble::from_text(&long(1_985)).is_some());
    assert!(Trouble::from_text(&long(1_986)).is_none());
    // The error is named at the beginning.
    assert!(Trouble::from_text(&format!("Error: {} rate limit", "x".repeat(600))).is_none());
}

#[test]
fn notes_before_an_error_are_passed_over_by_one_rule() {
    let said = |text: &str| {
        let (trouble, text) = Trouble::sent_as_answer(text)?;
        Some(format!("{}: {text}", trouble.map_or("-", |it| it.what())))
    };
    let none = Some("-: the agent gave no answer after retries".to_owned());
    for (answer, expected) in [
        (
            "Info: Using model gpt-5.Error: 429 slow",
            Some("rate limited: Error: 429 slow".to_owned()),
        ),
        (
            "Warning: the key is old\nInfo: Retrying...\n\nAPI Error: 529 x",
            Some("overloaded: API Error: 529 x".to_owned()),
        ),
        ("Reconnecting... 1/5Reconnecting... 2/5", none.clone()),
        ("Retrying in 4 seconds… (attempt 1/10)", none.clone()),
        ("Retrying...", none),
        // Answers.
        ("Info: the build passes.", None),
        ("Info: Request failed. Retrying...The cart is fixed.", None),
        ("Retrying was the fault: the client did it for ever. It stops after 3 times now.", None),
        ("Retry finished. All 12 jobs are green.", None),
        ("pi v1.6.0\n---\n", None),
        ("pi v1.6.0\n---\n## Skills\n- /x/SKILL.md\n\nHello", None),
        ("", None),
    ] {
        assert_eq!(said(answer), expected, "{answer}");
    }
    for only in
        ["", " ", "pi v1.6.0\n---\n\n## Skills\n- /x/SKILL.md\n\n---\nNew version available: v2\n"]
    {
        assert!(Trouble::has_only_notes(only), "{only}");
    }
    assert!(!Trouble::has_only_notes("Info: the build passes."));
    let many = "Info: x...".repeat(10_000);
    assert_eq!(said(&many), None);
}

#[test]
fn odd_texts_are_read_to_an_end() {
    for text in [
        "\\".repeat(100_000),
        "é".repeat(100_000),
        "try again in ".repeat(10_000),
        format!("rate limit, retry after {} s", "9".repeat(400)),
        "rate limit resets at 4999999999".to_owned(),
    ] {
        let _ = named(&text);
    }
    assert_eq!(named("rate limit, retry after 0"), "rate limited (transient)");
    assert_eq!(named("rate limit, try again in 999999999 days"), "rate limited (transient)");
}

/// The texts of errors, and their meanings.
const ERRORS: &[(&str, &str)] = &[
    // Anthropic's service, and Claude Code.
    (
        r#"{"code":-32603,"message":"Internal error","data":{"details":"API Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"},\"request_id\":\"req_011CV2S4jxpPs7x8XWqHUiM7\"}"}}"#,
        "overloaded (transient)",
    ),
    (
        r#"429 {"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's rate limit. Please try again later."},"request_id":"req_011CTrmdPsD7d9uz7LstkY5g"}"#,
        "rate limited (transient)",
    ),
    (
        r#"{"message":"Internal error: Claude AI usage limit reached|1760000400"}"#,
        "usage limit reached (transient, try again at 2025-10-09T09:00:00Z)",
    ),
    (
        "You've hit your limit · resets 1:30am (Asia/Dhaka)",
        "usage limit reached (transient, try again at 1:30am (Asia/Dhaka))",
    ),
    (
        "Claude usage limit reached. Your limit will reset at 9am (America/Chicago).",
        "usage limit reached (transient, try again at 9am (America/Chicago))",
    ),
    (
        r#"API Error: 400 {"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}"#,
        "no credit (user's to mend)",
    ),
    ("Invalid API key · Please run /login", "not authenticated (user's to mend)"),
    (
        r#"API Error: 401 {"type":"error","error":{"type":"authentication_error","message":"OAuth token has expired. Please obtain a new token or refresh your existing token."}}"#,
        "not authenticated (user's to mend)",
    ),
    (
        r#"API Error: 400 {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 212038 tokens > 200000 maximum"}}"#,
        "context too long (terminal)",
    ),
    (
        r#"API Error: 404 {"type":"error","error":{"type":"not_found_error","message":"model: claude-nope"}}"#,
        "model unknown (user's to mend)",
    ),
    // OpenAI's, and Codex.
    (
        "stream disconnected before completion: Rate limit reached for organization org-x on tokens per min (TPM): Limit 250000, Used 250000, Requested 13472. Please try again in 3.233s. Visit https://platform.openai.com/account/rate-limits to learn more.",
        "rate limited (transient, try again in 4 s)",
    ),
    (
        r#"{"code":-32603,"message":"Internal error","data":{"message":"You've hit your usage limit. Upgrade to Pro (https://openai.com/chatgpt/pricing) or try again in 5 days 22 hours 11 minutes.","codex_error_info":"usage_limit_exceeded"}}"#,
        "usage limit reached (transient, try again in 5 d 22 h 11 min)",
    ),
    (
        "You've hit your usage limit. Upgrade your plan to continue, or try again at Jul 10th, 2026 11:52 AM.",
        "usage limit reached (transient, try again at Jul 10th, 2026 11:52 AM)",
    ),
    (
        "You’re out of Codex messages Your rate limit resets on Jul 19, 2026, 1:42 PM. To continue using Codex, upgrade to Plus today.",
        "rate limited (transient, try again at Jul 19, 2026, 1:42 PM)",
    ),
    (
        r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
        "no credit (user's to mend)",
    ),
    (
        r#"{"error":{"message":"The model `gpt-9` does not exist or you do not have access to it.","type":"invalid_request_error","code":"model_not_found"}}"#,
        "model unknown (user's to mend)",
    ),
    (
        "Please try again in 6m0s. rate_limit_exceeded",
        "rate limited (transient, try again in 6 min)",
    ),
    (
        "exceeded retry limit, last status: 429 Too Many Requests, request id: 9c0d",
        "rate limited (transient)",
    ),
    ("unexpected status 503 Service Unavailable: upstream", "overloaded (transient)"),
    ("exceeded retry limit, last status: 502", "server error (transient)"),
    // Google's, and gemini-cli.
    (
        r#"{"code":429,"message":"{\n  \"error\": {\n    \"code\": 429,\n    \"message\": \"You exceeded your current quota, please check your plan and billing details. Please retry in 20.511s.\",\n    \"status\": \"RESOURCE_EXHAUSTED\",\n    \"details\": [{\"@type\":\"type.googleapis.com/google.rpc.RetryInfo\",\"retryDelay\": \"20s\"}]}}"}"#,
        "rate limited (transient, try again in 21 s)",
    ),
    (
        r#"[{"error":{"code":429,"details":[{"retryDelay":"34.07s"}],"message":"Resource exhausted. Please try again later."}}]"#,
        "rate limited (transient, try again in 35 s)",
    ),
    (
        "Quota exceeded for quota metric 'Gemini 2.5 Pro Requests' and limit 'Gemini 2.5 Pro Requests per day per user per tier' of service 'cloudcode-pa.googleapis.com'",
        "usage limit reached (transient)",
    ),
    (
        r#"{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}"#,
        "overloaded (transient)",
    ),
    (
        r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#,
        "not authenticated (user's to mend)",
    ),
    // OpenCode, Copilot, Kimi, Mistral, and others.
    (
        "AI_RetryError: Failed after 3 attempts. Last error: Rate limit exceeded. Please try again later.",
        "rate limited (transient)",
    ),
    (
        r#"{"name":"ProviderModelNotFoundError","data":{"providerID":"x","modelID":"y"}}"#,
        "model unknown (user's to mend)",
    ),
    (
        "Sorry, you've hit a rate limit that restricts the number of Copilot model requests you can make within a specific time period. Please try again in 58 hours. Please review our Terms of Service",
        "rate limited (transient, try again in 2 d 10 h)",
    ),
    (
        "Sorry, your request was rate-limited. Please wait 3 hours 23 minutes before trying again.",
        "rate limited (transient, try again in 3 h 23 min)",
    ),
    (
        r#"Model call failed: {"message":"rate limit exceeded","code":"rate_limited"}"#,
        "rate limited (transient)",
    ),
    (
        "Error code: 402 - {'error': {'message': 'Insufficient Balance'}}",
        "no credit (user's to mend)",
    ),
    (
        r#"{"status":429,"headers":{"retry-after":"20"},"body":"slow"}"#,
        "rate limited (transient, try again in 20 s)",
    ),
    (
        r#"{"code":429,"data":{"retry_after_ms":1500}}"#,
        "rate limited (transient, try again in 2 s)",
    ),
    (
        "429 Too Many Requests; Retry-After: Wed, 21 Oct 2026 07:28:00 GMT",
        "rate limited (transient, try again at Wed, 21 Oct 2026 07:28:00 GMT)",
    ),
    (
        r#"[1308][usage limit reached; resets at 2026-08-27T19:00:00+08:00][x]"#,
        "usage limit reached (transient, try again at 2026-08-27T19:00:00+08:00)",
    ),
    (
        r#"{"code":-32000,"message":"Authentication required"}"#,
        "not authenticated (user's to mend)",
    ),
    ("TypeError: fetch failed: read ECONNRESET", "connection failed (transient)"),
    (
        "You have exhausted your capacity on this model. Your quota will reset after 5h32m10s.",
        "rate limited (transient, try again in 5 h 32 min 10 s)",
    ),
    (
        "API error from mistral (model: devstral): Service tier capacity exceeded for this model. (429)",
        "overloaded (transient)",
    ),
    (
        r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"headers":{"X-RateLimit-Reset":"1760000400000"}}}}"#,
        "rate limited (transient)",
    ),
    (
        r#"{"type":"usage_limit_reached","plan_type":"plus","resets_at":1760000400,"resets_in_seconds":9000}"#,
        "usage limit reached (transient, try again at 2025-10-09T09:00:00Z)",
    ),
    (
        r#"{"type":"usage_limit_reached","resets_in_seconds":9000}"#,
        "usage limit reached (transient, try again in 2 h 30 min)",
    ),
    (
        "Too many requests, retry after 2 minutes 30 seconds",
        "rate limited (transient, try again in 2 min 30 s)",
    ),
    ("HTTP 401: {}", "not authenticated (user's to mend)"),
    ("HTTP/1.1 504", "server error (transient)"),
    // Unknown errors get no class.
    (r#"{"code":-32603,"message":"Internal error"}"#, "-"),
    ("request 42942 of 500 is wrong at line 429", "-"),
    ("", "-"),
];
