//! The bridge, by events as they were recorded from version 1.18 of the server.

#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::api::ApiError;
use super::bridge::{Bridge, BridgeStep};
use super::shapes::{Permission, ServerMessage};
use super::tasks::{
    Checked, OfferedModel, Opened, ServerTask, SessionOpening, Settings, TaskOutcome,
};

/// A bridge with one session, and what it does as one line a step.
struct Bench {
    bridge: Bridge,
}

fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self { bridge: Bridge::new(None) };
        let opened = bench.client("session/new", json!({"cwd": "/shop", "mcpServers": []}));
        assert_eq!(opened, "follow /shop\nopen\n");
        let settings = Settings {
            modes: vec![
                of(json!({"name": "build", "mode": "primary"})),
                of(json!({"name": "plan", "mode": "primary"})),
            ],
            models: vec![OfferedModel { id: "fake/m".into(), name: "M".into(), context: 1000 }],
            model: Some("fake/m".into()),
        };
        let opened = Opened {
            session: of(json!({"id": "ses_1"})),
            settings: Arc::new(settings),
            messages: Vec::new(),
        };
        let (id, cwd, how) = (json!(1), "/shop".to_owned(), SessionOpening::New);
        let held =
            bench.bridge.done(TaskOutcome::Opened { id, cwd, how, opened: Ok(Box::new(opened)) });
        // Events come first: none of a prompt's is missed.
        assert_eq!(held.len(), 0);
        let steps = bench.bridge.connected("/shop");
        assert!(told(steps).starts_with("answer {"));
        bench
    }

    fn client(&mut self, method: &str, params: Value) -> String {
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        told(self.bridge.client(line.to_string().as_bytes()))
    }

    fn prompt(&mut self) {
        let prompt = json!([{"type": "text", "text": "go"}]);
        let params = json!({"sessionId": "ses_1", "prompt": prompt});
        let told = self.client("session/prompt", params);
        assert_eq!(
            told,
            "prompt {\"parts\":[{\"type\":\"text\",\"text\":\"go\"}],\"agent\":\"build\"}\n"
        );
    }

    fn event(&mut self, kind: &str, properties: Value) -> String {
        let event = json!({"id": "evt_1", "type": kind, "properties": properties});
        told(self.bridge.event(event.to_string().as_bytes()))
    }

    fn message(&mut self, id: &str, role: &str, more: Value) -> String {
        self.event("message.updated", json!({"info": info(id, role, more)}))
    }

    fn part(&mut self, id: &str, more: Value) -> String {
        self.event("message.part.updated", json!({"part": part(id, more)}))
    }

    fn idle(&mut self) -> String {
        self.event("session.idle", json!({"sessionID": "ses_1"}))
    }

    fn checked(&mut self, is_busy: bool, messages: Vec<Value>, permissions: Vec<Value>) -> String {
        let messages: Vec<ServerMessage> = messages.into_iter().map(of).collect();
        let permissions: Vec<Permission> = permissions.into_iter().map(of).collect();
        let checked = Ok(Box::new(Checked { is_busy, permissions, messages }));
        told(self.bridge.done(TaskOutcome::Checked { session: "ses_1".into(), checked }))
    }
}

fn with(mut value: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("{more}") };
    value.as_object_mut().unwrap().extend(more);
    value
}

fn info(id: &str, role: &str, more: Value) -> Value {
    let info = json!({"id": id, "sessionID": "ses_1", "role": role, "providerID": "fake", "modelID": "m",
        "cost": 0.25, "tokens": {"input": 7, "output": 3, "cache": {"read": 10, "write": 0}}});
    with(info, more)
}

fn part(id: &str, more: Value) -> Value {
    with(json!({"id": id, "messageID": "msg_a", "sessionID": "ses_1"}), more)
}

fn ended(finish: &str) -> Value {
    json!({"finish": finish, "time": {"created": 1, "completed": 2}})
}

fn told(steps: Vec<BridgeStep>) -> String {
    let told = |step| match step {
        BridgeStep::Say(message) => match message["method"].as_str() {
            Some("session/update") => message["params"]["update"].to_string(),
            Some(method) => format!("{method} {}", message["params"]["toolCall"]),
            None if message["error"].is_object() => format!("error {}", message["error"]),
            None => format!("answer {}", message["result"]),
        },
        BridgeStep::Do(ServerTask::Prompt { body, .. }) => format!("prompt {body}"),
        BridgeStep::Do(ServerTask::Reply { permission, body, .. }) => {
            format!("reply {permission} {body}")
        }
        BridgeStep::Do(ServerTask::Check { .. }) => "check".to_owned(),
        BridgeStep::Do(ServerTask::Abort { .. }) => "abort".to_owned(),
        BridgeStep::Do(ServerTask::Find { .. }) => "find".to_owned(),
        BridgeStep::Do(ServerTask::Open { .. }) => "open".to_owned(),
        BridgeStep::Do(task) => format!("{task:?}"),
        BridgeStep::Follow(cwd) => format!("follow {cwd}"),
    };
    steps.into_iter().map(|step| told(step) + "\n").collect()
}

fn check(told: &str, expected: &Expect) {
    expected.assert_eq(told);
}

#[test]
fn a_turn_is_told_in_updates_and_ends_when_the_session_is_idle() {
    let mut bench = Bench::new();
    bench.prompt();
    let mut told = bench.message("msg_u", "user", json!({}));
    told += &bench.part("prt_u", json!({"messageID": "msg_u", "type": "text", "text": "go"}));
    told += &bench.message("msg_a", "assistant", json!({"time": {"created": 1}}));
    told += &bench.part("prt_1", json!({"type": "reasoning", "text": "", "time": {"start": 1}}));
    let delta = |part: &str, text: &str| json!({"sessionID": "ses_1", "partID": part, "field": "text", "delta": text});
    told += &bench.event("message.part.delta", delta("prt_1", "Let me "));
    told += &bench.part(
        "prt_1",
        json!({"type": "reasoning", "text": "Let me think", "time": {"start": 1, "end": 2}}),
    );
    let tool =
        |state: Value| json!({"type": "tool", "tool": "bash", "callID": "call_1", "state": state});
    told += &bench.part("prt_2", tool(json!({"status": "pending", "input": {}, "raw": ""})));
    told += &bench.part("prt_2", tool(json!({"status": "running", "input": {"command": "ls"}})));
    told += &bench.part("prt_2", tool(json!({"status": "completed", "input": {"command": "ls"}, "output": "a\n", "title": "ls"})));
    told += &bench.event("todo.updated", json!({"sessionID": "ses_1", "todos": [{"content": "x", "status": "cancelled", "priority": "high"}]}));
    // It is not the end while the answer waits for tools.
    told += &bench.message("msg_a", "assistant", ended("tool-calls"));
    told += &bench.idle();
    told += &bench.message("msg_b", "assistant", ended("stop"));
    told += &bench.idle();
    told += &bench.idle();
    check(
        &told,
        &expect![[r#"
        {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Let me "}}
        {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"think"}}
        {"toolCallId":"prt_2","kind":"execute","title":"bash","sessionUpdate":"tool_call","status":"pending"}
        {"toolCallId":"prt_2","kind":"execute","title":"ls","rawInput":{"command":"ls"},"sessionUpdate":"tool_call_update","status":"in_progress"}
        {"toolCallId":"prt_2","kind":"execute","title":"ls","rawInput":{"command":"ls"},"sessionUpdate":"tool_call_update","status":"completed","content":[{"type":"content","content":{"type":"text","text":"a\n"}}],"rawOutput":{"output":"a\n"}}
        {"sessionUpdate":"plan","entries":[{"content":"x","status":"completed","priority":"high"}]}
        {"sessionUpdate":"usage_update","used":20,"size":1000,"cost":{"amount":0.25,"currency":"USD"}}
        check
        {"sessionUpdate":"usage_update","used":20,"size":1000,"cost":{"amount":0.5,"currency":"USD"}}
        answer {"stopReason":"end_turn","usage":{"inputTokens":14,"outputTokens":6,"thoughtTokens":0,"cachedReadTokens":20,"cachedWriteTokens":0,"totalTokens":40}}
    "#]],
    );
}

#[test]
fn a_request_for_permission_is_asked_once_its_files_are_known() {
    let mut bench = Bench::new();
    bench.prompt();
    bench.message("msg_a", "assistant", json!({}));
    let asked = |id: &str, what: &str, more: Value| {
        with(
            json!({"id": id, "sessionID": "ses_1", "permission": what, "patterns": ["../x"], "metadata": {}}),
            more,
        )
    };
    let tool = json!({"messageID": "msg_a", "callID": "call_1"});
    let read = asked("per_1", "read", json!({"tool": tool}));
    let mut told = bench.event("permission.asked", read.clone());
    told += &bench.event("permission.asked", read);
    let state = json!({"status": "running", "input": {"filePath": "/shop/a"}});
    told += &bench
        .part("prt_1", json!({"type": "tool", "tool": "read", "callID": "call_1", "state": state}));
    let files = json!({"filepath": "a, b", "files": [{"filePath": "/shop/a"}, {"filePath": "/shop/b", "movePath": "/shop/c"}]});
    told += &bench.event("permission.asked", asked("per_2", "edit", json!({"metadata": files})));
    told += &bench.event(
        "permission.asked",
        asked("per_3", "external_directory", json!({"patterns": ["/etc/*"]})),
    );
    // These name nothing that could be judged.
    told += &bench.event("permission.asked", asked("per_4", "edit", json!({})));
    told += &bench.event("permission.asked", asked("per_5", "bash", json!({})));
    told += &bench.event(
        "permission.asked",
        asked("per_6", "glob", json!({"tool": {"messageID": "msg_a", "callID": "call_2"}})),
    );
    let lost = asked("per_6", "glob", json!({"tool": {"messageID": "msg_a", "callID": "call_2"}}));
    told += &self::told(bench.bridge.done(TaskOutcome::Found { asked: of(lost), message: None }));
    check(
        &told,
        &expect![[r#"
        find
        {"toolCallId":"prt_1","kind":"read","title":"read","rawInput":{"filePath":"/shop/a"},"locations":[{"path":"/shop/a"}],"sessionUpdate":"tool_call","status":"pending"}
        {"toolCallId":"prt_1","kind":"read","title":"read","rawInput":{"filePath":"/shop/a"},"locations":[{"path":"/shop/a"}],"sessionUpdate":"tool_call_update","status":"in_progress"}
        session/request_permission {"toolCallId":"prt_1","title":"read /shop/a","kind":"read","status":"pending","locations":[{"path":"/shop/a"}],"rawInput":{"filePath":"/shop/a"}}
        session/request_permission {"toolCallId":"per_2","title":"edit /shop/a","kind":"edit","status":"pending","locations":[{"path":"/shop/a"},{"path":"/shop/b"},{"path":"/shop/c"}],"rawInput":{"filepath":"a, b","files":[{"filePath":"/shop/a"},{"filePath":"/shop/b","movePath":"/shop/c"}]}}
        session/request_permission {"toolCallId":"per_3","title":"external_directory","kind":"other","status":"pending","locations":[{"path":"/etc"}],"rawInput":{}}
        reply per_4 {"reply":"reject","message":"This is not allowed here. Do what you can without it."}
        reply per_5 {"reply":"reject","message":"This is not allowed here. Do what you can without it."}
        find
        reply per_6 {"reply":"reject","message":"This is not allowed here. Do what you can without it."}
    "#]],
    );
}

#[test]
fn a_decision_is_passed_on_once() {
    let mut bench = Bench::new();
    let metadata = json!({"command": "ls"});
    let mut ids = Vec::new();
    for at in 0..4 {
        let asked = json!({"id": format!("per_{at}"), "sessionID": "ses_1", "permission": "bash", "metadata": metadata});
        bench.event("permission.asked", asked);
        ids.push(*bench.bridge.asked.keys().max().unwrap());
    }
    let selected =
        |option: &str| json!({"result": {"outcome": {"outcome": "selected", "optionId": option}}});
    let answers = [
        selected("once"),
        selected("reject"),
        json!({"result": {"outcome": {"outcome": "cancelled"}}}),
        json!({"error": {"code": 1}}),
    ];
    let mut told = String::new();
    for (id, answer) in ids.iter().zip(answers) {
        let line = with(json!({"jsonrpc": "2.0", "id": id}), answer).to_string();
        told += &self::told(bench.bridge.client(line.as_bytes()));
        assert!(bench.bridge.client(line.as_bytes()).is_empty());
    }
    // What somebody else has decided is not answered.
    let asked =
        json!({"id": "per_9", "sessionID": "ses_1", "permission": "bash", "metadata": metadata});
    bench.event("permission.asked", asked);
    bench.event(
        "permission.replied",
        json!({"sessionID": "ses_1", "requestID": "per_9", "reply": "once"}),
    );
    assert!(bench.bridge.asked.is_empty());
    check(
        &told,
        &expect![[r#"
        reply per_0 {"reply":"once"}
        reply per_1 {"reply":"reject","message":"This is not allowed here. Do what you can without it."}
        reply per_2 {"reply":"reject"}
        reply per_3 {"reply":"reject","message":"This is not allowed here. Do what you can without it."}
    "#]],
    );
}

#[test]
fn what_was_lost_is_read_again() {
    let mut bench = Bench::new();
    bench.prompt();
    bench.message("msg_a", "assistant", json!({}));
    bench.part("prt_1", json!({"type": "text", "text": ""}));
    let delta = |text: &str| json!({"sessionID": "ses_1", "partID": "prt_1", "field": "text", "delta": text});
    bench.event("message.part.delta", delta("One "));
    bench.bridge.lost("/shop");
    let mut told = self::told(bench.bridge.connected("/shop"));
    // It went on meanwhile: the rest comes with the whole.
    told += &bench.event("message.part.delta", delta("three"));
    let user = json!({"info": info("msg_u", "user", json!({})), "parts": []});
    let asked = json!({"id": "per_1", "sessionID": "ses_1", "permission": "bash", "metadata": {"command": "ls"}});
    told += &bench.checked(true, vec![user.clone()], vec![asked]);
    // The server began anew, and does not go on.
    let text = part("prt_1", json!({"type": "text", "text": "One two three", "time": {"end": 1}}));
    let torn = json!({"info": info("msg_a", "assistant", ended("tool-calls")), "parts": [text]});
    for _ in 0..5 {
        told += &bench.checked(false, vec![user.clone(), torn.clone()], vec![]);
    }
    check(
        &told,
        &expect![[r#"
        check
        session/request_permission {"toolCallId":"per_1","title":"ls","kind":"execute","status":"pending","locations":[],"rawInput":{"command":"ls"}}
        {"sessionUpdate":"usage_update","used":20,"size":1000,"cost":{"amount":0.25,"currency":"USD"}}
        {"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"two three"}}
        check
        check
        check
        check
        error {"code":-32603,"message":"the server has ended its work on this prompt before the answer was complete"}
    "#]],
    );
}

#[test]
fn a_late_abort_is_of_the_turn_before() {
    let mut bench = Bench::new();
    bench.prompt();
    bench.message("msg_u1", "user", json!({}));
    let cancel =
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "ses_1"}});
    let mut told = self::told(bench.bridge.client(cancel.to_string().as_bytes()));
    // That it is idle is read before the events of its end come.
    told += &bench.checked(false, vec![], vec![]);
    bench.prompt();
    let aborted = json!({"name": "MessageAbortedError", "data": {"message": "Aborted"}});
    bench.event("session.error", json!({"sessionID": "ses_1", "error": aborted}));
    let late = json!({"parentID": "msg_u1", "error": aborted});
    told += &bench.message("msg_a1", "assistant", late);
    told += &bench.message("msg_u2", "user", json!({}));
    told +=
        &bench.message("msg_a2", "assistant", with(ended("stop"), json!({"parentID": "msg_u2"})));
    told += &bench.idle();
    check(
        &told,
        &expect![[r#"
        abort
        check
        answer {"stopReason":"cancelled"}
        {"sessionUpdate":"usage_update","used":20,"size":1000,"cost":{"amount":0.25,"currency":"USD"}}
        answer {"stopReason":"end_turn","usage":{"inputTokens":7,"outputTokens":3,"thoughtTokens":0,"cachedReadTokens":10,"cachedWriteTokens":0,"totalTokens":20}}
    "#]],
    );
}

#[test]
fn a_turn_that_fails_or_is_cancelled_ends_so() {
    let mut bench = Bench::new();
    bench.prompt();
    let error = |name: &str, text: &str| json!({"sessionID": "ses_1", "error": {"name": name, "data": {"message": text}}});
    let mut told = bench.event("session.error", error("APIError", "Rate limit reached"));
    told += &bench.idle();
    bench.prompt();
    let cancel =
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "ses_1"}});
    told += &self::told(bench.bridge.client(cancel.to_string().as_bytes()));
    // It began only after it was told to end.
    told += &bench.checked(true, vec![], vec![]);
    told += &bench.event("session.error", error("MessageAbortedError", "Aborted"));
    told += &bench.idle();
    bench.prompt();
    let accepted = Err(ApiError::Refused { status: 404, said: "Session not found".into() });
    let turn = bench.bridge.sessions["ses_1"].turn.as_ref().unwrap().number;
    told += &self::told(bench.bridge.done(TaskOutcome::Prompted {
        session: "ses_1".into(),
        turn,
        accepted,
    }));
    check(
        &told,
        &expect![[r#"
        check
        error {"code":-32603,"message":"Rate limit reached"}
        abort
        check
        abort
        check
        check
        answer {"stopReason":"cancelled"}
        error {"code":-32603,"message":"the server answered 404: Session not found"}
    "#]],
    );
}

#[test]
fn what_can_t_be_read_changes_nothing() {
    let mut bench = Bench::new();
    bench.prompt();
    for raw in [
        "",
        "{",
        "[]",
        "null",
        "{\"type\":1}",
        "{\"type\":\"session.idle\"}",
        "{\"type\":\"message.part.updated\",\"properties\":[]}",
    ] {
        assert_eq!(told(bench.bridge.event(raw.as_bytes())), "", "{raw}");
        assert_eq!(told(bench.bridge.client(raw.as_bytes())), "", "{raw}");
    }
    let other = json!({"sessionID": "ses_2", "error": {"name": "x"}});
    assert_eq!(bench.event("session.error", other), "");
    assert_eq!(bench.event("session.idle", json!({"sessionID": "ses_2"})), "");
    let asked = json!({"id": "per_1", "sessionID": "ses_2", "permission": "bash", "metadata": {"command": "ls"}});
    assert_eq!(bench.event("permission.asked", asked), "");
}
