//! Tests of turns that end in an error.

use super::{acp, observe};
use crate::extract::Extractor as _;
use crate::model::{Activity, ActivityKind, UsageScope};

const PROMPT: &str =
    r#">{"id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#;

/// Plays a turn; returns how it ended.
fn turn(lines: &[&str]) -> String {
    let observed = observe(&mut acp(), &[&[PROMPT], lines].concat());
    let ended = observed.into_iter().find_map(|activity| match activity.kind {
        ActivityKind::TurnEnded { stop_reason, reason } => {
            Some(format!("{stop_reason}: {}", reason.as_deref().unwrap_or_default()))
        }
        _ => None,
    });
    ended.unwrap()
}

fn says(text: &str) -> String {
    format!(
        r#"{{"method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
    )
}

#[test]
fn an_error_is_named_with_what_its_data_hide() {
    for (error, reason) in [
        (
            r#"{"code":-32603,"message":"Internal error","data":{"details":"429 Too Many Requests, retry after 20 s"}}"#,
            "rate limited (transient, try again in 20 s): Internal error: 429 Too Many Requests, retry after 20 s",
        ),
        (
            r#"{"code":-32000,"message":"Authentication required"}"#,
            "not authenticated (user's to mend): Authentication required",
        ),
        (
            r#"{"code":-32603,"message":"Internal error","data":"out of cheese"}"#,
            "Internal error: out of cheese",
        ),
        (r#"{"code":-32603,"message":"Internal error","data":{}}"#, "Internal error"),
        (r#""boom""#, "boom"),
        (r#"{"code":1}"#, r#"{"code":1}"#),
    ] {
        let answer = format!(r#"{{"id":1,"error":{error}}}"#);
        assert_eq!(turn(&[&answer]), format!("error: {reason}"));
    }
    let long = format!(r#"{{"id":1,"error":{{"code":1,"message":"{}"}}}}"#, "é".repeat(5000));
    assert!(turn(&[&long]).len() < 2100);
}

#[test]
fn a_refusal_and_an_answer_may_be_errors_too() {
    let end =
        |stop: &str, meta: &str| format!(r#"{{"id":1,"result":{{"stopReason":"{stop}"{meta}}}}}"#);
    let outcry = says("Claude AI usage limit reached|1760000400");
    let limit = "usage limit reached (transient, try again at 2025-10-09T09:00:00Z): \
                 Claude AI usage limit reached|1760000400";
    assert_eq!(turn(&[&outcry, &end("end_turn", "")]), format!("end_turn: {limit}"));
    assert_eq!(turn(&[&outcry, &end("refusal", "")]), format!("refusal: {limit}"));
    let meta = r#","_meta":{"error":{"message":"free model rate limit"}}"#;
    assert_eq!(
        turn(&[&end("refusal", meta)]),
        "refusal: rate limited (transient): free model rate limit"
    );
    // Answers that speak of such things, and refusals for other reasons.
    let speaks = says("The rate limit is 429 a minute.");
    assert_eq!(turn(&[&speaks, &end("end_turn", "")]), "end_turn: ");
    assert_eq!(turn(&[&says("I will not do that."), &end("refusal", "")]), "refusal: ");
    let long = says(&"x".repeat(2_000));
    assert_eq!(turn(&[&outcry, &long, &end("end_turn", "")]), "end_turn: ");
}

#[test]
fn an_answer_after_work_is_no_error() {
    let end = |usage: &str| format!(r#"{{"id":1,"result":{{"stopReason":"end_turn"{usage}}}}}"#);
    let outcry = says("API Error: 500 Internal Server Error");
    let failed = "end_turn: server error (transient): API Error: 500 Internal Server Error";
    let update = |update: &str| {
        format!(
            r#"{{"method":"session/update","params":{{"sessionId":"s","update":{{{update}}}}}}}"#
        )
    };
    let used = r#","usage":{"inputTokens":9,"outputTokens":1,"totalTokens":10}"#;
    let unused = r#","usage":{"inputTokens":0,"outputTokens":0,"totalTokens":0}"#;
    let call = update(r#""sessionUpdate":"tool_call","toolCallId":"t","status":"completed""#);
    let context = update(r#""sessionUpdate":"usage_update","used":9,"size":10"#);
    let commands = update(r#""sessionUpdate":"available_commands_update","availableCommands":[]"#);
    assert_eq!(turn(&[&outcry, &end("")]), failed);
    assert_eq!(turn(&[&commands, &outcry, &end(unused)]), failed);
    // Of an agent that reports its calls otherwise, the context tells nothing.
    assert_eq!(turn(&[&outcry, &context, &end("")]), failed);
    for lines in [[&call, &outcry, &end("")], [&commands, &outcry, &end(used)]] {
        assert_eq!(turn(&lines.map(String::as_str)), "end_turn: ", "{lines:?}");
    }
    let has_no_reason =
        |it: &Activity| matches!(&it.kind, ActivityKind::TurnEnded { reason: None, .. });
    let mut by_context = acp().counting(UsageScope::Context, None);
    let observed = observe(&mut by_context, &[PROMPT, &outcry, &context, &end("")]);
    assert!(observed.iter().any(has_no_reason), "{observed:?}");
    // Of one that never reports what it uses, nobody can tell.
    let mut silent = acp().counting(UsageScope::Nothing, None);
    let observed = observe(&mut silent, &[PROMPT, &outcry, &end("")]);
    assert!(observed.iter().any(has_no_reason), "{observed:?}");
}

/// As Copilot 1.0.102 and pi-acp 0.0.34 were recorded: they report how full the context is, by their own estimate,
/// before a model call, and say in notes that they try again.
#[test]
fn notes_and_estimates_before_a_failure_are_no_work() {
    let used = |used: u64| {
        format!(
            r#"{{"method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"usage_update","used":{used},"size":128000}}}}}}"#
        )
    };
    let end = r#"{"id":1,"result":{"stopReason":"end_turn"}}"#.to_owned();
    let ended = |scope: UsageScope, lines: &[String]| {
        let lines = [PROMPT].into_iter().chain(lines.iter().map(String::as_str));
        let observed = observe(&mut acp().counting(scope, None), &lines.collect::<Vec<_>>());
        observed.into_iter().find_map(|it| match it.kind {
            ActivityKind::TurnEnded { reason, .. } => Some(reason.unwrap_or_default().to_string()),
            _ => None,
        })
    };
    let copilot = |retries: usize, error: &str| {
        let note =
            [says("Info: Request failed due to a transient API error. Retrying..."), used(8997)];
        let notes = std::iter::repeat_n(note, retries).flatten();
        let lines: Vec<_> =
            [used(8997)].into_iter().chain(notes).chain([says(error), end.clone()]).collect();
        ended(UsageScope::Session, &lines).unwrap()
    };
    let error = "Error: Failed to get response from the AI model; retried 5 times (total retry wait time: 16.04 seconds) Last error: 500 The server had an error while processing your request. Sorry about that!";
    assert_eq!(copilot(5, error), format!("server error (transient): {error}"));
    // More of them than are kept of an answer.
    assert_eq!(copilot(20, error), format!("server error (transient): {error}"));
    let login = r"Error: Authentication failed with provider at http://127.0.0.1:4561/v1 (HTTP 401).\n  Check your COPILOT_PROVIDER_API_KEY, COPILOT_PROVIDER_API_KEY_COMMAND, or COPILOT_PROVIDER_BEARER_TOKEN.";
    assert!(copilot(2, login).starts_with("not authenticated (user's to mend): Error: Auth"));
    assert_eq!(copilot(5, "Hello!"), "");
    assert_eq!(copilot(5, ""), "the agent gave no answer after retries");
    let pi = [
        says(r"pi v1.6.0\n---\n"),
        used(0),
        says("Retrying (attempt 1/3, waiting 2s)..."),
        says("Retrying (attempt 2/3, waiting 4s)..."),
        says("Retrying (attempt 3/3, waiting 8s)..."),
        says("Retry finished, resuming."),
        used(1320),
        end.clone(),
    ];
    let no_answer = Some("the agent gave no answer after retries".to_owned());
    assert_eq!(ended(UsageScope::Context, &pi), no_answer);
    let answered = [&pi[..6], &[says("Hello!")], &pi[6..]].concat();
    assert_eq!(ended(UsageScope::Context, &answered), Some(String::new()));
}

/// As Vibe 3.0.2 was recorded.
#[test]
fn a_retry_that_an_agent_notifies_of_is_a_trouble_and_no_progress() {
    let mut acp = acp();
    observe(&mut acp, &[PROMPT]);
    let retrying = r#"{"jsonrpc":"2.0","method":"_session/retrying","params":{"sessionId":"s","category":"rate_limited","detail":"HTTP 429"}}"#;
    acp.take_progress();
    let observed = observe(&mut acp, &[retrying]);
    let [Activity { kind: ActivityKind::Troubled { why }, .. }] = &observed[..] else {
        panic!("{observed:?}")
    };
    assert_eq!(&**why, "rate limited (transient): rate_limited: HTTP 429");
    assert!(!acp.take_progress());
    // It got over it.
    let end = r#"{"id":1,"result":{"stopReason":"end_turn"}}"#;
    assert_eq!(turn(&[retrying, &says("Done."), end]), "end_turn: ");
    // No notification: an unknown session, no turn, nothing said.
    for line in [
        &retrying.replace("\"s\"", "\"t\""),
        r#"{"method":"_session/retrying","params":{"sessionId":"s"}}"#,
    ] {
        assert!(observe(&mut acp, &[line]).is_empty(), "{line}");
    }
}

#[test]
fn what_an_agent_says_in_fields_of_its_own_is_read() {
    let info = |meta: &str| {
        format!(
            r#"{{"method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"session_info_update","_meta":{{"codex":{{{meta}}}}}}}}}}}"#
        )
    };
    let error = |retries: bool| {
        info(&format!(
            r#""error":{{"message":"stream error","additionalDetails":"429 Too Many Requests","turnId":"t","willRetry":{retries}}}"#
        ))
    };
    let end = r#"{"id":1,"result":{"stopReason":"end_turn"}}"#;
    let broken = info(r#""threadStatus":{"type":"systemError"}"#);
    let active = info(r#""threadStatus":{"type":"active"}"#);
    let said = says("Something went wrong.");
    let reason = "end_turn: stream error: 429 Too Many Requests";
    let reason = reason.replace(": stream", ": rate limited (transient): stream");
    assert_eq!(turn(&[&error(false), &said, end]), reason);
    assert_eq!(turn(&[&error(true), &broken, end]), reason);
    assert_eq!(turn(&[&broken, &said, end]), "end_turn: Something went wrong.");
    // It got over it.
    assert_eq!(turn(&[&error(true), &said, end]), "end_turn: ");
    assert_eq!(turn(&[&broken, &active, &said, end]), "end_turn: ");
    let observed = observe(&mut acp(), &[PROMPT, &error(true)]);
    assert!(matches!(&observed.last().unwrap().kind, ActivityKind::Troubled { .. }));
}

#[test]
fn housekeeping_is_no_progress() {
    let mut acp = acp();
    let update = |kind: &str| {
        format!(
            r#"{{"method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"{kind}"}}}}}}"#
        )
    };
    observe(&mut acp, &[PROMPT]);
    for kind in [
        "available_commands_update",
        "current_mode_update",
        "config_option_update",
        "session_info_update",
        "usage_update",
    ] {
        observe(&mut acp, &[&update(kind)]);
        assert!(!acp.take_progress(), "{kind}");
    }
    for line in [&says("x"), &says("x"), &update("tool_call"), &update("plan"), "noise"] {
        observe(&mut acp, &[line]);
        assert!(acp.take_progress(), "{line}");
    }
}

#[test]
fn a_cancelled_turn_is_cancelled_whatever_is_answered() {
    let cancel = r#">{"method":"session/cancel","params":{"sessionId":"s"}}"#;
    for answer in [
        r#"{"id":1,"result":{"stopReason":"end_turn"}}"#,
        r#"{"id":1,"error":{"code":-32603,"message":"AbortError"}}"#,
        r#"{"id":1,"result":{}}"#,
    ] {
        assert_eq!(turn(&[cancel, answer]), "cancelled: ", "{answer}");
    }
    // A cancel that comes after the answer, and one before the prompt, cancel nothing.
    let end = r#"{"id":1,"result":{"stopReason":"end_turn"}}"#;
    assert_eq!(turn(&[end, cancel]), "end_turn: ");
    let mut acp = acp();
    let ended = observe(&mut acp, &[cancel, PROMPT, end]);
    assert!(format!("{ended:?}").contains("end_turn"));
    // Of two prompts that overlap, those that ran are cancelled.
    let second = PROMPT.replace("\"id\":1", "\"id\":2");
    let ends = observe(&mut acp, &[PROMPT, cancel, &second, end, &end.replace('1', "2")]);
    let reasons = ends.iter().filter_map(|it| match &it.kind {
        ActivityKind::TurnEnded { stop_reason, .. } => Some(stop_reason.to_string()),
        _ => None,
    });
    assert_eq!(reasons.collect::<Vec<_>>(), ["cancelled", "end_turn"]);
}

#[test]
fn a_chunk_known_from_before_the_turn_is_read_in_it() {
    let mut acp = acp();
    let end = r#"{"id":1,"result":{"stopReason":"end_turn"}}"#;
    let (hello, outcry) = (says("hello"), says("Claude AI usage limit reached|1760000400"));
    observe(&mut acp, &[&hello, &hello]);
    let observed = observe(&mut acp, &[PROMPT, &outcry, end]);
    let ended = observed.last().map(|activity| format!("{:?}", activity.kind));
    assert!(ended.unwrap().contains("usage limit reached"));
}

#[test]
fn a_known_chunk_has_no_activities_once_its_session_is_closed() {
    let mut acp = acp();
    let close = r#">{"id":2,"method":"session/close","params":{"sessionId":"s"}}"#;
    let hello = says("hello");
    assert_eq!(observe(&mut acp, &[&hello, &hello]).len(), 2);
    observe(&mut acp, &[close, r#"{"id":2,"result":{}}"#]);
    assert!(observe(&mut acp, &[&hello]).is_empty());
}
