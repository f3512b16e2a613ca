//! Version 2 of the protocol, by its own types: what its permission requests ask for, and what its
//! tool calls report.

use agent_client_protocol_schema::v2::{
    CommandPermissionSubject, Content, Diff, DiffChange, IdleStateUpdate, PermissionOption,
    PermissionOptionKind, PromptResponse, RequestPermissionRequest, RequestPermissionResponse,
    RequestPermissionSubject, RequiresActionStateUpdate, RunningStateUpdate, SessionUpdate,
    StateUpdate, StopReason, TerminalExitStatus, TerminalUpdate, ToolCallContent,
    ToolCallContentChunk, ToolCallStatus, ToolCallUpdate, ToolKind, UpdateSessionNotification,
};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::gate::shown as asked;
use super::observe::shown;
use super::{acp, observe};
use crate::extract::{Extractor, Gate, Refusal};

fn permission(subject: Option<RequestPermissionSubject>) -> Value {
    let options = vec![
        PermissionOption::new("y", "Yes", PermissionOptionKind::AllowOnce),
        PermissionOption::new("n", "No", PermissionOptionKind::RejectOnce),
    ];
    let params = RequestPermissionRequest::new("s", "May I?", options).subject(subject);
    json!({ "jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": params })
}

fn call(content: Vec<ToolCallContent>) -> ToolCallUpdate {
    ToolCallUpdate::new("c").title("t").kind(ToolKind::Edit).content(content)
}

fn diff(changes: Vec<DiffChange>) -> ToolCallContent {
    ToolCallContent::Diff(Diff::new(changes))
}

fn check(request: &Value, expected: &Expect) {
    expected.assert_eq(&asked(&acp().gate(request.to_string().as_bytes())));
}

#[test]
fn a_permission_asks_for_what_its_subject_names() {
    let changes = vec![
        DiffChange::add("/w/ui/new"),
        DiffChange::modify("/w/ui/app.tsx"),
        DiffChange::delete("/w/core/auth.rs"),
        DiffChange::move_file("/w/core/db.py", "/w/ui/db.py"),
        DiffChange::copy("/o/x", "/w/ui/x"),
    ];
    check(
        &permission(Some(call(vec![diff(changes)]).into())),
        &expect![
            "1: write /w/ui/new, write /w/ui/app.tsx, write /w/core/auth.rs, write /w/ui/db.py, write /w/core/db.py, write /w/ui/x, read /o/x"
        ],
    );
    let read = ToolCallUpdate::new("c").kind(ToolKind::Read).raw_input(json!({ "path": "/o/x" }));
    check(&permission(Some(read.into())), &expect!["1: read /o/x"]);
    let command = CommandPermissionSubject::new("cat auth.rs > /o/out", "/w/core");
    check(
        &permission(Some(command.into())),
        &expect!["1: cwd /w/core, write /o/out, read /w/core/auth.rs"],
    );
    // Nothing but a title, for people.
    check(&permission(None), &expect!["1: "]);
}

#[test]
fn a_subject_that_names_only_the_call_means_what_was_reported_of_it() {
    let mut acp = acp();
    let line =
        update(SessionUpdate::ToolCallUpdate(call(vec![diff(vec![DiffChange::add("/o/x")])])));
    observe(&mut acp, &[&line]);
    let request = permission(Some(ToolCallUpdate::new("c").into()));
    assert_eq!(asked(&acp.gate(request.to_string().as_bytes())), "1: write /o/x");
}

#[test]
fn what_cannot_be_read_for_certain_never_passes() {
    let with_subject = |subject: Value| {
        let mut request = permission(None);
        request["params"]["subject"] = subject;
        request
    };
    let with_change = |change: Value| {
        let content = json!([{ "type": "diff", "changes": [change] }]);
        with_subject(
            json!({ "type": "tool_call", "toolCall": { "toolCallId": "c", "content": content } }),
        )
    };
    let mut both = permission(Some(call(vec![]).into()));
    both["params"]["toolCall"] = json!({ "toolCallId": "c", "kind": "read" });
    let pathless =
        json!([{ "type": "diff", "changes": [], "patch": { "format": "git_patch", "text": "" } }]);
    for request in [
        both,
        with_subject(json!({ "type": "network", "host": "example.com" })),
        with_subject(json!({ "toolCall": { "toolCallId": "c" } })),
        with_subject(json!("tool_call")),
        with_subject(json!({ "type": "tool_call" })),
        with_subject(json!({ "type": "tool_call", "toolCall": { "kind": "read" } })),
        with_subject(
            json!({ "type": "tool_call", "toolCall": { "toolCallId": "c", "content": pathless } }),
        ),
        with_subject(json!({ "type": "command", "command": ["cat", "x"], "cwd": "/w" })),
        with_subject(json!({ "type": "command", "Command": "cat x", "cwd": "/w" })),
        with_subject(json!({ "type": "command", "command": "ls", "cwd": 7 })),
        with_change(json!({ "operation": "modify" })),
        with_change(json!({ "operation": "modify", "Path": "/o/x" })),
        with_change(json!({ "operation": "move", "path": "/w/a", "oldPath": 7 })),
        with_change(json!("/o/x")),
    ] {
        let verdict = asked(&acp().gate(request.to_string().as_bytes()));
        assert!(
            verdict.starts_with("ambiguous") && verdict.ends_with("[1]"),
            "{verdict}: {request}"
        );
    }
    // What is done with a path need not be known, so that it is judged as a write.
    check(
        &with_change(json!({ "operation": "_link", "path": "/o/x", "oldPath": "/w/a" })),
        &expect!["1: write /o/x, write /w/a"],
    );
}

#[test]
fn a_refusal_is_an_answer_of_version_2() {
    let mut acp = acp();
    let request = permission(Some(CommandPermissionSubject::new("cat /o/x", "/w").into()));
    let Gate::Ask(ask) = acp.gate(request.to_string().as_bytes()) else { panic!("no ask") };
    let line = acp.refuse(&ask, &Refusal::NoTerminals).unwrap();
    let answer: Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(answer["result"], json!({ "outcome": { "outcome": "selected", "optionId": "n" } }));
    let _: RequestPermissionResponse = serde_json::from_value(answer["result"].clone()).unwrap();
}

fn update(update: SessionUpdate) -> String {
    let params = UpdateSessionNotification::new("s", update);
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }).to_string()
}

fn check_updates(updates: Vec<SessionUpdate>, expected: &Expect) {
    let lines: Vec<String> = updates.into_iter().map(update).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    expected.assert_eq(&shown(&observe(&mut acp(), &lines)));
}

#[test]
fn diffs_are_writes() {
    let text = Content::new("done");
    check_updates(
        vec![
            SessionUpdate::ToolCallUpdate(call(vec![diff(vec![
                DiffChange::modify("/w/ui/app.tsx"),
                DiffChange::copy("/w/core/auth.rs", "/w/ui/auth.rs"),
            ])])),
            SessionUpdate::ToolCallContentChunk(ToolCallContentChunk::new(
                "c",
                diff(vec![DiffChange::delete("/w/README.md")]),
            )),
            SessionUpdate::ToolCallContentChunk(ToolCallContentChunk::new(
                "c",
                ToolCallContent::Content(Box::new(text)),
            )),
            SessionUpdate::ToolCallUpdate(
                ToolCallUpdate::new("c").status(ToolCallStatus::Completed),
            ),
        ],
        &expect![[r#"
            s write ui/app.tsx (Tool)
            s write ui/auth.rs (Tool)
            s read core/auth.rs (Tool)
            s write README.md (Tool)
            s performed write ui/app.tsx
            s performed write ui/auth.rs
            s performed write README.md
            s performed read core/auth.rs
        "#]],
    );
}

#[test]
fn a_call_that_was_cancelled_performed_nothing() {
    check_updates(
        vec![
            SessionUpdate::ToolCallUpdate(call(vec![diff(vec![DiffChange::add("/w/x")])])),
            SessionUpdate::ToolCallUpdate(
                ToolCallUpdate::new("c").status(ToolCallStatus::Cancelled),
            ),
        ],
        &expect![[r#"
            s write x (Tool)
        "#]],
    );
}

#[test]
fn a_terminal_of_the_agent_touches_what_its_command_names() {
    let terminal = |id: &str| TerminalUpdate::new(id.to_owned());
    let exit = |code| TerminalExitStatus::new().exit_code(code);
    let all = [
        terminal("a").command("cat auth.rs > out; make").cwd("/w/core"),
        terminal("a").exit_status(exit(0)),
        // What it says after its end changes nothing.
        terminal("a").command("cat auth.rs > out; make"),
        // In pieces, and it failed.
        terminal("b").cwd("/w/sub"),
        terminal("b").command("cat x.rs"),
        terminal("b").command(None::<String>).exit_status(exit(1)),
        terminal("c").command("tee new").exit_status(TerminalExitStatus::new()),
        terminal("d").command("sed -i s/a/b/ /o/x").cwd("/w").exit_status(exit(0)),
    ];
    check_updates(
        all.into_iter().map(SessionUpdate::TerminalUpdate).collect(),
        &expect![[r#"
            s write core/out (Tool)
            s read core/auth.rs (Tool)
            s performed write core/out
            s performed read core/auth.rs
            s read sub/x.rs (Tool)
            s write new (Tool)
            s write /o/x (Tool)
            s performed write /o/x
        "#]],
    );
}

fn state(state: StateUpdate) -> String {
    update(SessionUpdate::StateUpdate(state))
}

const PROMPT: &str =
    r#">{"id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}"#;

fn taken_in() -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "result": PromptResponse::new("m") }).to_string()
}

fn check_turns(lines: &[&str], expected: &Expect) {
    let mut acp = acp();
    let mut observed = observe(&mut acp, lines);
    acp.end("gone", &mut observed);
    expected.assert_eq(&shown(&observed));
}

#[test]
fn a_turn_ends_when_its_session_is_idle() {
    let runs = state(StateUpdate::Running(RunningStateUpdate::new()));
    let waits = state(StateUpdate::RequiresAction(RequiresActionStateUpdate::new()));
    let idle = |reason| state(StateUpdate::Idle(IdleStateUpdate::new().stop_reason(reason)));
    let (done, cancelled) = (idle(StopReason::EndTurn), idle(StopReason::Cancelled));
    let answer = taken_in();
    check_turns(
        &[PROMPT, &answer, &runs, &waits, &runs, &cancelled, &cancelled],
        &expect![[r#"
            s TurnBegan
            s Record(Prompt("[]"))
            s ended cancelled
        "#]],
    );
    // What ended before its prompt was answered, and what a resumed session says of its past.
    check_turns(
        &[PROMPT, &cancelled, &runs, &done, &answer],
        &expect![[r#"
            s TurnBegan
            s Record(Prompt("[]"))
            s ended end_turn
        "#]],
    );
    check_turns(
        &[PROMPT, &cancelled, &answer, &runs],
        &expect![[r#"
            s TurnBegan
            s Record(Prompt("[]"))
            s ended error: gone
        "#]],
    );
    // Two prompts, one piece of work.
    let second = PROMPT.replace("\"id\":1", "\"id\":2");
    let taken_in = answer.replace("\"id\":1", "\"id\":2");
    check_turns(
        &[PROMPT, &answer, &runs, &second, &taken_in, &done],
        &expect![[r#"
            s TurnBegan
            s Record(Prompt("[]"))
            s TurnBegan
            s Record(Prompt("[]"))
            s ended end_turn
            s ended end_turn
        "#]],
    );
    let close = r#">{"id":3,"method":"session/close","params":{"sessionId":"s"}}"#;
    check_turns(
        &[PROMPT, &answer, close, r#"{"id":3,"result":{}}"#],
        &expect![[r#"
            s TurnBegan
            s Record(Prompt("[]"))
            s ended cancelled
            s Closed
        "#]],
    );
}
