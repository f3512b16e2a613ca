#![allow(clippy::unwrap_used)]
use std::sync::Arc;
use std::time::Duration;

use crate::model::{Charge, Figure, TokenKind};
use http::{HeaderMap, StatusCode};

use super::*;
use crate::provider::ProviderKind::{self, Anthropic, Gemini, OpenAi};

const ASKED: AskedSizes = AskedSizes { body: 1000, most_output: Some(50) };

/// The figures of an answer in the order of their kinds, `~` before an estimate's bounds, `?` for what is unknown;
/// then the model and the cost.
fn counted(kind: ProviderKind, end: CallEnd, pieces: &[&[u8]]) -> String {
    let mut tally = CallTally::new(kind, ASKED);
    tally.head(StatusCode::OK, &HeaderMap::new());
    for piece in pieces {
        tally.feed(piece);
    }
    if end == CallEnd::Whole {
        tally.end();
    }
    shown(&tally, end)
}

fn shown(tally: &CallTally, end: CallEnd) -> String {
    let Some(spending) = tally.spending(end, Some(&Arc::from("asked"))) else {
        return "nothing".to_owned();
    };
    let tokens = spending.tokens.unwrap();
    let figures = TokenKind::ALL.map(|kind| match tokens.get(kind) {
        Figure::Unknown => "?".to_owned(),
        Figure::Estimated { least, most } => format!("{least}~{most}"),
        Figure::Measured(number) => number.to_string(),
    });
    let cost = match spending.cost {
        Some(Charge::Measured(cost)) => format!(" {} {}", cost.amount, cost.currency),
        _ => String::new(),
    };
    format!("{} {}{cost}", figures.join(" "), spending.model.unwrap())
}

/// Counts an answer whole, torn in two at each byte, and byte by byte.
fn whole(kind: ProviderKind, answer: &str) -> String {
    let answer = answer.as_bytes();
    let counts = counted(kind, CallEnd::Whole, &[answer]);
    for at in 0..=answer.len() {
        let torn = counted(kind, CallEnd::Whole, &[&answer[..at], &answer[at..]]);
        assert_eq!(torn, counts, "torn at {at}");
    }
    let bytes: Vec<_> = answer.chunks(1).collect();
    assert_eq!(counted(kind, CallEnd::Whole, &bytes), counts);
    counts
}

fn events(data: &[&str]) -> String {
    let events: Vec<_> = data.iter().map(|data| format!("data: {data}\n\n")).collect();
    events.concat()
}

#[test]
fn chat_completions_are_counted() {
    let usage = r#""usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,
        "prompt_tokens_details":{"cached_tokens":60,"audio_tokens":0},
        "completion_tokens_details":{"reasoning_tokens":12}}"#;
    let answer = format!(
        r#"{{"id":"x","model":"gpt-5","choices":[{{"message":{{"content":"\"usage\":{{\"prompt_tokens\":9}}"}}}}],{usage}}}"#
    );
    assert_eq!(whole(OpenAi, &answer), "40 60 ? 20 12 120 gpt-5");
    let usage = usage.replace('\n', "");
    let stream = events(&[
        r#"{"model":"gpt-5-mini","choices":[{"delta":{"role":"assistant","content":""}}],"usage":null}"#,
        r#"{"model":"gpt-5-mini","choices":[{"delta":{"content":"Hé\n"}}],"usage":null}"#,
        &format!(r#"{{"model":"gpt-5-mini","choices":[],{usage}}}"#),
        "[DONE]",
    ]);
    assert_eq!(whole(OpenAi, &stream), "40 60 ? 20 12 120 gpt-5-mini");
    assert_eq!(whole(OpenAi, &stream.replace('\n', "\r\n")), "40 60 ? 20 12 120 gpt-5-mini");
    assert_eq!(whole(OpenAi, &stream.replace("\n\n", "\n")), "40 60 ? 20 12 120 gpt-5-mini");
    assert_eq!(whole(OpenAi, &format!(": hello\n\n{stream}")), "40 60 ? 20 12 120 gpt-5-mini");
}

#[test]
fn compatible_servers_are_counted_in_their_own_shapes() {
    for (usage, counts) in [
        // DeepSeek.
        (
            r#"{"prompt_tokens":320,"completion_tokens":18,"total_tokens":338,
                "prompt_cache_hit_tokens":300,"prompt_cache_miss_tokens":20}"#,
            "20 300 ? 18 ? 338 m",
        ),
        // OpenRouter.
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"cost":0.0125,
                "prompt_tokens_details":{"cached_tokens":2,"cache_write_tokens":3}}"#,
            "5 2 3 5 ? 15 m 0.0125 USD",
        ),
        // Moonshot.
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"cached_tokens":8}"#,
            "2 8 ? 5 ? 15 m",
        ),
        // xAI and Gemini count reasoning beside the output.
        (
            r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":115,
                "completion_tokens_details":{"reasoning_tokens":100}}"#,
            "10 ? ? 105 100 115 m",
        ),
    ] {
        let answer = format!(r#"{{"model":"m","usage":{usage}}}"#);
        assert_eq!(whole(OpenAi, &answer), counts);
    }
    for stream in [
        r#"{"model":"m","choices":[{"delta":{},"usage":{"prompt_tokens":7,"completion_tokens":3}}]}"#,
        r#"{"model":"m","choices":[],"x_groq":{"usage":{"prompt_tokens":7,"completion_tokens":3}}}"#,
    ] {
        assert_eq!(whole(OpenAi, &events(&[stream])), "7 ? ? 3 ? 10 m");
    }
}

#[test]
fn responses_are_counted() {
    let usage = r#""usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":40},
        "output_tokens":30,"output_tokens_details":{"reasoning_tokens":10},"total_tokens":130}"#;
    let usage = usage.replace('\n', "");
    let answer = format!(r#"{{"object":"response","model":"gpt-5","output":[],{usage}}}"#);
    assert_eq!(whole(OpenAi, &answer), "60 40 ? 30 10 130 gpt-5");
    let stream = format!(
        "event: response.created\n{}event: response.completed\n{}",
        events(&[r#"{"type":"response.created","response":{"model":"gpt-5","usage":null}}"#]),
        events(&[&format!(
            r#"{{"type":"response.completed","response":{{"model":"gpt-5",{usage}}}}}"#
        )]),
    );
    assert_eq!(whole(OpenAi, &stream), "60 40 ? 30 10 130 gpt-5");
}

const MESSAGES: [&str; 4] = [
    r#"{"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":25,
"cache_creation_input_tokens":5,"cache_read_input_tokens":70,"output_tokens":1}}}"#,
    r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"four"}}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":15}}"#,
    r#"{"type":"message_stop"}"#,
];

#[test]
fn messages_are_counted() {
    let answer = r#"{"model":"claude-x","content":[{"type":"tool_use","input":{"usage":{"input_tokens":9}}}],
        "usage":{"input_tokens":25,"cache_creation_input_tokens":5,"cache_read_input_tokens":70,
        "cache_creation":{"ephemeral_5m_input_tokens":5},"output_tokens":15}}"#;
    assert_eq!(whole(Anthropic, answer), "25 70 5 15 ? 115 claude-x");
    let data = MESSAGES.map(|data| data.replace('\n', ""));
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    assert_eq!(whole(Anthropic, &events(&data)), "25 70 5 15 ? 115 claude-x");
    // A server that repeats what it does not know as 0.
    let zero = data[2].replace("{\"output", "{\"input_tokens\":0,\"output");
    let stream = events(&[data[0], data[1], &zero]);
    assert_eq!(whole(Anthropic, &stream), "25 70 5 15 ? 115 claude-x");
}

#[test]
fn a_call_that_was_cut_counts_what_came_by_its_bounds() {
    let data = MESSAGES.map(|data| data.replace('\n', ""));
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    let begun = events(&data[..2]);
    let cut = |kind, text: &str| counted(kind, CallEnd::CutByProvider, &[text.as_bytes()]);
    assert_eq!(cut(Anthropic, &begun), "25 70 5 1~4 ? 101~104 claude-x");
    // An end without the last count is no whole answer either.
    assert_eq!(whole(Anthropic, &begun), "25 70 5 1~4 ? 101~104 claude-x");
    let counted_whole = events(&data[..3]);
    assert_eq!(cut(Anthropic, &counted_whole), "25 70 5 15 ? 115 claude-x");
    let number = r#"data: {"usage":{"input_tokens":12"#;
    assert_eq!(cut(Anthropic, number), "0~1000 ? ? 0~0 ? 0~1000 asked");
    let chat = events(&[r#"{"model":"m","choices":[{"delta":{"content":"12345678"}}]}"#]);
    assert_eq!(cut(OpenAi, &chat), "0~1000 ? ? 0~8 ? 0~1008 m");
    let gemini = events(&[r#"{"candidates":[{"content":{"parts":[{"text":"12345678"}],"role":"model"}}],
"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"totalTokenCount":11},"modelVersion":"g"}"#
        .replace('\n', "").as_str()]);
    assert_eq!(cut(Gemini, &gemini), "9 0 ? 2~8 0 11~17 g");
    // A server that counts after each piece.
    let counting = events(&[
        r#"{"model":"m","usage":{"prompt_tokens":9,"completion_tokens":1},"choices":[{"delta":{"content":"12345678"}}]}"#,
    ]);
    assert_eq!(cut(OpenAi, &counting), "9 ? ? 1~8 ? 10~17 m");
}

#[test]
fn a_stream_without_usage_is_an_estimate_and_one_that_cannot_be_read_has_the_bounds_of_its_request()
{
    let chat = events(&[
        r#"{"choices":[{"delta":{"role":"assistant","content":"12"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"id":"call_1","type":"function","function":{"arguments":"3456"}}]}}]}"#,
        "[DONE]",
    ]);
    assert_eq!(whole(OpenAi, &chat), "0~1000 ? ? 0~6 ? 0~1006 asked");
    let mut tally = CallTally::new(OpenAi, ASKED);
    let mut headers = HeaderMap::new();
    headers.insert("content-encoding", "br".parse().unwrap());
    tally.head(StatusCode::OK, &headers);
    tally.feed(br#"{"usage":{"prompt_tokens":1,"completion_tokens":1}}"#);
    tally.end();
    assert_eq!(shown(&tally, CallEnd::Whole), "0~1000 ? ? 0~50 ? 0~1050 asked");
    let tally = CallTally::new(OpenAi, ASKED);
    assert_eq!(shown(&tally, CallEnd::Unanswered), "0~1000 ? ? 0~50 ? 0~1050 asked");
    assert_eq!(shown(&tally, CallEnd::Unsent), "nothing");
}

#[test]
fn gemini_is_counted_as_one_answer_as_an_array_and_as_events() {
    let usage = r#""usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":30,
        "candidatesTokenCount":10,"thoughtsTokenCount":25,"toolUsePromptTokenCount":4,
        "totalTokenCount":139,"promptTokensDetails":[{"modality":"TEXT","tokenCount":100}]}"#;
    let usage = usage.replace('\n', "");
    let last = format!(
        r#"{{"candidates":[{{"content":{{"parts":[{{"text":"x"}}]}},"finishReason":"STOP"}}],{usage},"modelVersion":"gemini-3"}}"#
    );
    let first = r#"{"candidates":[{"content":{"parts":[{"text":"x"}]}}],
        "usageMetadata":{"promptTokenCount":100,"totalTokenCount":100},"modelVersion":"gemini-3"}"#;
    let counts = "74 30 ? 35 25 139 gemini-3";
    assert_eq!(whole(Gemini, &last), counts);
    assert_eq!(whole(Gemini, &format!("[{first},\n{last}\n]")), counts);
    assert_eq!(whole(Gemini, &events(&[&first.replace('\n', ""), &last])), counts);
    assert_eq!(whole(Gemini, &events(&[&format!(r#"{{"response":{last}}}"#)])), counts);
    // What is zero is left out.
    let plain = r#"{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}],
        "usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":7,"totalTokenCount":107},"modelVersion":"g"}"#;
    assert_eq!(whole(Gemini, plain), "100 0 ? 7 0 107 g");
    let blocked = r#"{"promptFeedback":{"blockReason":"SAFETY"},
        "usageMetadata":{"promptTokenCount":100,"totalTokenCount":100},"modelVersion":"g"}"#;
    assert_eq!(whole(Gemini, blocked), "100 0 ? 0 0 100 g");
}

#[test]
fn hostile_answers_are_passed_over() {
    for answer in [
        "",
        "null",
        "{",
        r#"{"usage":{"prompt_tokens":-5,"completion_tokens":1e9}}"#,
        r#"{"usage":{"prompt_tokens":99999999999999999999,"completion_tokens":9000000000000001}}"#,
        r#"{"usage":[{"prompt_tokens":5}]}"#,
        r#"{"a":{"usage":{"prompt_tokens":5}}}"#,
        "data: \u{0}\u{ff}\n\ndata: {{{{\n\n",
    ] {
        assert!(whole(OpenAi, answer).starts_with("0~1000 ? ? 0~"), "{answer}");
    }
    let deep = format!(
        r#"{{"a":{}{},"usage":{{"prompt_tokens":5}}}}"#,
        "[".repeat(9999),
        "]".repeat(9999)
    );
    assert!(counted(OpenAi, CallEnd::Whole, &[deep.as_bytes()]).starts_with("0~1000"));
    // An event of any length is read with the same memory.
    let mut tally = CallTally::new(OpenAi, ASKED);
    tally.head(StatusCode::OK, &HeaderMap::new());
    tally.feed(br#"data: {"choices":[{"delta":{"content":""#);
    for _ in 0..100 {
        tally.feed(&[b'x'; 10_000]);
    }
    tally.feed(b"\"}}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n");
    tally.end();
    assert_eq!(shown(&tally, CallEnd::Whole), "3 ? ? 4 ? 7 asked");
    let bad_model = r#"{"model":"a b","usage":{"prompt_tokens":3,"completion_tokens":4}}"#;
    assert_eq!(whole(OpenAi, bad_model), "3 ? ? 4 ? 7 asked");
}

#[test]
fn setbacks_are_known_by_status_and_by_the_vendors_words() {
    use ProviderTrouble::{KeyRefused, NoCredit, Overloaded, RateLimited};
    for (status, after, body, expected) in [
        (429, "7", r#"{"error":{"type":"rate_limit_error"}}"#, Some((RateLimited, Some(7)))),
        (429, "", r#"{"error":{"code":"insufficient_quota"}}"#, Some((NoCredit, None))),
        (
            400,
            "",
            r#"{"type":"error","error":{"type":"invalid_request_error",
                "message":"Your credit balance is too low to access the Anthropic API."}}"#,
            Some((NoCredit, None)),
        ),
        (402, "", r#"{"error":{"message":"Insufficient Balance"}}"#, Some((NoCredit, None))),
        (529, "", r#"{"error":{"type":"overloaded_error"}}"#, Some((Overloaded, None))),
        (503, "12.5", "<html>", Some((Overloaded, Some(12)))),
        (
            429,
            "",
            r#"[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[
                {"@type":"x"},{"@type":"y","retryDelay":"34.07s"}]}}]"#,
            Some((RateLimited, Some(34))),
        ),
        (401, "", "", Some((KeyRefused, None))),
        (400, "", r#"{"error":{"type":"invalid_request_error","message":"no"}}"#, None),
        (500, "", "", None),
        // Within a stream.
        (
            200,
            "",
            "event: error\ndata: {\"error\":{\"type\":\"overloaded_error\"}}\n\n",
            Some((Overloaded, None)),
        ),
        (200, "", r#"{"choices":[{"message":{"content":"rate_limit"}}]}"#, None),
        (429, "99999999999999", "", Some((RateLimited, Some(30 * 24 * 3600)))),
        (429, "-1", "", Some((RateLimited, None))),
    ] {
        let mut tally = CallTally::new(Anthropic, ASKED);
        let mut headers = HeaderMap::new();
        if !after.is_empty() {
            headers.insert("retry-after", after.parse().unwrap());
        }
        tally.head(StatusCode::from_u16(status).unwrap(), &headers);
        tally.feed(body.as_bytes());
        tally.end();
        let setback = tally.setback().map(|it| (it.trouble, it.retry_after.map(|it| it.as_secs())));
        assert_eq!(setback, expected, "{status} {body}");
        if status >= 400 {
            assert_eq!(shown(&tally, CallEnd::Whole), "nothing");
        }
    }
    let mut tally = CallTally::new(OpenAi, ASKED);
    let mut headers = HeaderMap::new();
    headers.insert("retry-after-ms", "1500".parse().unwrap());
    headers.insert("retry-after", "9".parse().unwrap());
    tally.head(StatusCode::TOO_MANY_REQUESTS, &headers);
    assert_eq!(tally.setback().unwrap().retry_after, Some(Duration::from_millis(1500)));
}

#[test]
fn a_recorded_call_is_masked() {
    let known = ["MINE-1", "t0ken-of-agent"];
    let masked = |text: &str| {
        let call = RecordedCall {
            request: text.to_owned().into(),
            answer: text.into(),
            request_is_cut: true,
            answer_is_cut: true,
        };
        assert!(!format!("{call:?}").contains("SECRET"));
        assert_eq!(call.request(&known), call.answer(&known));
        call.answer(&known)
    };
    assert_eq!(masked(r#"{"a":[],"b":{"api_key":"SECRET"}}"#), r#"{"a":[],"b":{"api_key":"***"}}"#);
    let events = "event: x\ndata: {\"password\":\"SECRET\",\"b\":1}\n\ndata: [DONE]\n\ndata: {\"token\":\"SECR";
    assert_eq!(
        masked(events),
        "event: x\ndata: {\"password\":\"***\",\"b\":1}\n\ndata: [DONE]\n\ndata: {\"token\":\"***\"}"
    );
    let text = r#"{"a":[1,{"token":"SECRET","n":12},"t\u00e9\"x"],"password":"SECRET"}"#;
    for at in 1..text.len() {
        let cut = masked(&text[..at]);
        assert!(cut.starts_with('{') && !cut.contains("SECRET"), "{at}: {cut}");
    }
    assert!(!masked("{\"token\":\"SECRET\"} {").contains("SECRET"));
    assert!(!masked("{token: SECRET}").contains("SECRET"));
    let texts = r#"{"a":["with MINE-1\nx sk-0123456789abcdefg","MY_KEY=x"],"b":"t0ken-of-agent."}"#;
    assert_eq!(masked(texts), r#"{"a":["with ***\nx ***","MY_KEY=***"],"b":"***."}"#);
    // Names of members, and JSON within a text.
    let named = r#"{"a":{"MINE-1":1,"b":"{\"c\":\"\\nsk-0123456789abcdefg\"}"}}"#;
    assert_eq!(masked(named), r#"{"a":{"***":1,"b":"{\"c\":\"\\n***\"}"}}"#);
    assert_eq!(masked("data: {\"a\":\"MINE-1\"}\n\nMINE-1"), "data: {\"a\":\"***\"}\n\n***");
    for at in texts.find("MINE").unwrap() + 4..texts.find("MINE-1").unwrap() + 6 {
        assert!(!masked(&texts[..at]).contains("MINE"), "{at}");
    }
}
