//! Tests of turns that end in an error.

use super::{acp, observe};
use crate::model::ActivityKind;

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
    let long = says(&"x".repeat(600));
    assert_eq!(turn(&[&outcry, &long, &end("end_turn", "")]), "end_turn: ");
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
