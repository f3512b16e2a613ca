#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

mod asking;
mod conversation;

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use eisen_plugin::Usage;

use super::*;

fn plain() -> Translation {
    Translation::new("words".to_owned(), None, Conversation::default())
}

/// A conversation with a session `s` in `/w`.
fn opened() -> Translation {
    let model = Some("big".to_owned());
    let mut translation = Translation::new("words".to_owned(), model, Conversation::default());
    translation.translate(Record::Session { id: "s".into() }, &mut Translated::default()).unwrap();
    let mut said = Translated::default();
    translation.on_client_line(
        br#"{"id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}"#,
        &mut said,
    );
    let intent = said.intents.remove(0);
    translation.fulfilled(intent, Ok(()), &mut said);
    translation
}

fn prompted() -> Translation {
    let mut translation = opened();
    heard(&mut translation, &prompt(2, "s"));
    translation
}

fn prompt(id: u64, session: &str) -> String {
    let prompt = json!([{"type": "text", "text": "do"}]);
    let params = json!({"sessionId": session, "prompt": prompt});
    json!({"id": id, "method": "session/prompt", "params": params}).to_string()
}

fn shown(said: &Translated) -> String {
    let mut text = String::from_utf8(said.to_client.clone()).unwrap();
    for line in &said.to_agent {
        let _ = writeln!(text, "to the agent: {}", String::from_utf8_lossy(line));
    }
    for intent in &said.intents {
        let _ = writeln!(text, "{intent:?}");
    }
    text
}

fn heard(translation: &mut Translation, line: &str) -> String {
    let mut said = Translated::default();
    translation.on_client_line(line.as_bytes(), &mut said);
    shown(&said)
}

fn reported(translation: &mut Translation, record: Record<'_>) -> String {
    let mut said = Translated::default();
    translation.translate(record, &mut said).unwrap();
    shown(&said)
}

fn hears(translation: &mut Translation, line: &str, expected: Expect) {
    expected.assert_eq(&heard(translation, line));
}

fn reports(translation: &mut Translation, record: Record<'_>, expected: Expect) {
    expected.assert_eq(&reported(translation, record));
}

fn ask(id: &'static str, access: Option<(&'static str, &'static str)>) -> Record<'static> {
    let accesses = access.into_iter().map(|(action, path)| (action.into(), path.into())).collect();
    let command = if access.is_none() { "ls" } else { "" };
    Record::Ask { id: id.into(), title: "T".into(), accesses, command: command.into() }
}

fn ended(reason: &'static str, body: &'static str) -> Record<'static> {
    Record::TurnEnded { reason: reason.into(), body: body.into() }
}

#[test]
fn a_conversation_begins_once() {
    let plain = &mut plain();
    hears(
        plain,
        r#"{"id":0,"method":"initialize","params":{"protocolVersion":1}}"#,
        expect![[r#"
        {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{"promptCapabilities":{"embeddedContext":true}},"agentInfo":{"name":"words","version":"0.1.0"},"authMethods":[]}}
    "#]],
    );
    hears(
        plain,
        r#"{"id":"a","method":"session/new","params":{"cwd":"w"}}"#,
        expect![[r#"
        {"jsonrpc":"2.0","id":"a","error":{"code":-32602,"message":"`cwd` is not an absolute path"}}
    "#]],
    );
    hears(
        plain,
        r#"{"id":"a","method":"session/new","params":{"cwd":"/w"}}"#,
        expect![[r#"
        Start { id: String("a"), settings: "{\"cwd\":\"/w\"}" }
    "#]],
    );
    let mut said = Translated::default();
    let start = Intent::Start { id: "a".into(), settings: String::new() };
    plain.fulfilled(start, Err("no".to_owned()), &mut said);
    expect![[r#"
        {"jsonrpc":"2.0","id":"a","error":{"code":-32603,"message":"the plugin can't begin: no"}}
    "#]]
    .assert_eq(&shown(&said));

    hears(
        &mut opened(),
        r#"{"id":5,"method":"session/new","params":{"cwd":"/w"}}"#,
        expect![[r#"
        {"jsonrpc":"2.0","id":5,"error":{"code":-32600,"message":"this agent has one session, which is open"}}
    "#]],
    );
    hears(
        &mut opened(),
        r#"{"id":5,"method":"session/load","params":{}}"#,
        expect![[r#"
        {"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"this agent has no session/load"}}
    "#]],
    );
}

#[test]
fn one_prompt_runs_at_a_time() {
    let it = &mut opened();
    hears(
        it,
        &prompt(2, "other"),
        expect![[r#"
        {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"there is no such session"}}
    "#]],
    );
    hears(
        it,
        r#"{"id":2,"method":"session/prompt","params":{"sessionId":"s"}}"#,
        expect![[r#"
        {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"`prompt` is no list of content blocks"}}
    "#]],
    );
    let blocks = r#"[{"type":"text","text":"a"},{"type":"resource_link","uri":"file:///b"},{"type":"resource","resource":{"uri":"file:///c","text":"d"}},{"type":"image"},7]"#;
    let long = format!(
        r#"{{"id":2,"method":"session/prompt","params":{{"sessionId":"s","prompt":{blocks}}}}}"#
    );
    hears(
        it,
        &long,
        expect![[r#"
        Prompt { text: "a\n[file:///b]\nfile:///c:\nd" }
    "#]],
    );
    hears(
        it,
        &prompt(3, "s"),
        expect![[r#"
        {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"a prompt is running"}}
    "#]],
    );
    reports(
        it,
        ended("end_turn", ""),
        expect![[r#"
        {"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}
    "#]],
    );
    reports(it, ended("end_turn", ""), expect![[""]]);

    let mut said = Translated::default();
    prompted().fulfilled(Intent::Prompt { text: String::new() }, Err("no".to_owned()), &mut said);
    expect![[r#"
        {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the plugin can't prompt: no"}}
    "#]]
    .assert_eq(&shown(&said));
}

#[test]
fn a_turn_ends_as_acp_has_it() {
    for reason in ["max_tokens", "max_turn_requests", "refusal", "cancelled", "end_turn"] {
        let expected = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{\"stopReason\":\"{reason}\"}}}}\n"
        );
        assert_eq!(reported(&mut prompted(), ended(reason, "")), expected);
    }
    reports(
        &mut prompted(),
        ended("error", "no credit"),
        expect![[r#"
        {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"no credit"}}
    "#]],
    );
}

#[test]
fn a_turn_that_was_cancelled_ends_so_whatever_the_agent_says() {
    let cancel = r#"{"method":"session/cancel","params":{"sessionId":"s"}}"#;
    hears(&mut opened(), cancel, expect![[""]]);
    for reason in ["end_turn", "error", "refusal"] {
        let it = &mut prompted();
        assert_eq!(heard(it, cancel), "Cancel\n");
        let said = reported(it, ended(reason, "why"));
        assert!(said.contains(r#""id":2,"result":{"stopReason":"cancelled"}"#), "{said}");
        // The next is another.
        heard(it, &prompt(3, "s"));
        assert!(reported(it, ended("end_turn", "")).contains("end_turn"));
    }
}

#[test]
fn what_is_asked_is_answered_once() {
    let early = &mut plain();
    reports(
        early,
        ask("7", Some(("read", "a"))),
        expect![[r#"
        Deny { ask: "7", why: "Nobody can answer this now." }
    "#]],
    );

    let it = &mut prompted();
    reports(
        it,
        ask("7", Some(("read", "a"))),
        expect![[r#"
            {"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"7/ask1","title":"T","kind":"read","status":"pending","locations":[{"path":"/w/a"}]},"options":[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]}}
        "#]],
    );
    reports(
        it,
        ask("8", Some(("write", "/b"))),
        expect![[r#"
            {"jsonrpc":"2.0","id":2,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"8/ask2","title":"T","kind":"edit","status":"pending","locations":[{"path":"/b"}]},"options":[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]}}
        "#]],
    );
    reports(
        it,
        ask("9", None),
        expect![[r#"
            {"jsonrpc":"2.0","id":3,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"9/ask3","title":"T","kind":"execute","status":"pending","locations":[],"rawInput":{"command":"ls"}},"options":[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]}}
        "#]],
    );
    reported(it, ask("10", Some(("read", "c"))));
    for (line, expected) in [
        (
            r#"{"id":1,"result":{"outcome":{"outcome":"selected","optionId":"allow"}}}"#,
            expect![[r#"
                Allow { ask: "7" }
            "#]],
        ),
        (
            r#"{"id":1,"result":{"outcome":{"outcome":"selected","optionId":"allow"}}}"#,
            expect![[""]],
        ),
        (
            r#"{"id":2,"result":{"outcome":{"outcome":"selected","optionId":"reject"}}}"#,
            expect![[r#"
                Deny { ask: "8", why: "This was refused." }
            "#]],
        ),
        (
            r#"{"id":3,"result":{"outcome":{"outcome":"cancelled"}}}"#,
            expect![[r#"
            Deny { ask: "9", why: "The turn was cancelled." }
        "#]],
        ),
        (
            r#"{"id":4,"error":{"code":-32001,"message":"Outside agent zone: c."}}"#,
            expect![[r#"
            Deny { ask: "10", why: "Outside agent zone: c." }
        "#]],
        ),
        (
            r#"{"id":99,"result":{"outcome":{"outcome":"selected","optionId":"allow"}}}"#,
            expect![[""]],
        ),
        (r#"{"id":"1","result":{}}"#, expect![[""]]),
    ] {
        hears(it, line, expected);
    }
    for id in 0..super::permissions::MOST_ASKS {
        let (id, title, command) = (format!("many {id}").into(), "T".into(), "ls".into());
        let asked = reported(it, Record::Ask { id, title, accesses: Vec::new(), command });
        assert!(asked.contains("request_permission"), "{asked}");
    }
    reports(
        it,
        ask("11", Some(("read", "c"))),
        expect![[r#"
        Deny { ask: "11", why: "Nobody can answer this now." }
    "#]],
    );
}

#[test]
fn records_become_updates() {
    let touched = |action: &'static str, path: &'static str, call: &'static str| Record::Touched {
        action: action.into(),
        path: path.into(),
        call: call.into(),
    };
    let text = |reason: &'static str| Record::Text { body: "hi".into(), reason: reason.into() };
    let usage = Usage { used: Some(7), size: None, cost: Some("0.5".into()), currency: None };
    reports(&mut plain(), text(""), expect![[""]]);
    let it = &mut opened();
    for (record, expected) in [
        (
            text(""),
            expect![[r#"
            {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}}}
        "#]],
        ),
        (
            text("thought"),
            expect![[r#"
            {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hi"}}}}
        "#]],
        ),
        (
            touched("read", "a", "c"),
            expect![[r#"
            {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c/1","title":"Read /w/a","kind":"read","status":"completed","locations":[{"path":"/w/a"}]}}}
        "#]],
        ),
        (
            touched("write", "/etc/b", ""),
            expect![[r#"
            {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"2","title":"Write /etc/b","kind":"edit","status":"completed","locations":[{"path":"/etc/b"}]}}}
        "#]],
        ),
        (
            Record::Runs { command: "cat a".into(), call: "c".into() },
            expect![[r#"
                {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c/3","title":"cat a","kind":"execute","status":"completed","rawInput":{"command":"cat a"}}}}
            "#]],
        ),
        (
            Record::Usage(usage),
            expect![[r#"
            {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"usage_update","used":7,"size":0,"cost":{"amount":0.5,"currency":"USD"}}}}
        "#]],
        ),
        (
            Record::Model { id: "m".into(), name: "".into() },
            expect![[r#"
            {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"config_option_update","configOptions":[{"type":"select","id":"model","category":"model","name":"Model","currentValue":"m","options":[{"value":"m","name":"m"}]}]}}}
        "#]],
        ),
        (
            Record::Line { body: b"\xff" },
            expect![[r#"
            to the agent: �
        "#]],
        ),
        (Record::TurnBegan, expect![[""]]),
    ] {
        reports(it, record, expected);
    }
}

#[test]
fn odd_lines_say_nothing() {
    for line in ["", "x", "[]", "7", "{}", r#"{"method":7}"#, r#"{"id":{},"result":0}"#, "\u{0}"] {
        hears(&mut prompted(), line, expect![[""]]);
    }
    hears(
        &mut prompted(),
        r#"{"id":{},"method":"x","params":7}"#,
        expect![[r#"
        {"jsonrpc":"2.0","id":{},"error":{"code":-32601,"message":"this agent has no x"}}
    "#]],
    );
    hears(
        &mut opened(),
        r#"{"id":4,"method":"session/prompt","params":[]}"#,
        expect![[r#"
        {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"`prompt` is no list of content blocks"}}
    "#]],
    );
}
