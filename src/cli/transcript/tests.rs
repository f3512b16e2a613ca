//! Tests of folding session updates into lines.

#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;
use crate::wire::ServerLine;

/// Plays updates of one session, and the end of its turn; returns what is shown.
fn shown(thoughts: bool, updates: &[Value]) -> Vec<String> {
    let (mut fold, now) = (Fold::new(thoughts), Instant::now());
    let mut lines: Vec<_> =
        updates.iter().flat_map(|update| fold.update("ui", "s", update, now)).collect();
    let turn = json!({
        "agent_id": "ui", "session_id": "s", "turn": 3, "stop_reason": "end_turn",
    });
    let turn = TurnLine::deserialize(turn).unwrap();
    lines.extend(fold.turn("ui", "s", &turn));
    assert!(fold.flush().is_empty());
    assert!(lines.iter().all(|(who, _)| who == "ui"), "{lines:?}");
    lines.into_iter().map(|(_, line)| line.text).collect()
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}

fn says(text: &str) -> Value {
    chunk("agent_message_chunk", text)
}

fn thinks(text: &str) -> Value {
    chunk("agent_thought_chunk", text)
}

#[test]
fn chunks_are_joined_into_lines_and_paragraphs() {
    let updates = ["\n\nThe to", "tal", " is\n", "\n\n\nthere.\r\n", "Done"].map(says);
    assert_eq!(
        shown(false, &updates),
        ["The total is", "", "there.", "Done", "4th turn ended: end_turn"]
    );
}

#[test]
fn thoughts_are_folded_unless_asked_for() {
    let updates = [thinks("\nFirst I re"), thinks("ad.\nThen\n\nI write."), says("Now.")];
    assert_eq!(
        shown(false, &updates),
        ["First I read. … (2 more lines)", "Now.", "4th turn ended: end_turn"]
    );
    let whole = ["First I read.", "Then", "", "I write.", "Now.", "4th turn ended: end_turn"];
    assert_eq!(shown(true, &updates), whole);
    assert_eq!(shown(false, &[thinks("One.")]), ["One.", "4th turn ended: end_turn"]);
}

#[test]
fn a_tool_call_is_one_line_with_its_end() {
    let call = |fields: Value| {
        let mut update = json!({ "sessionUpdate": "tool_call_update" });
        update.as_object_mut().into_iter().for_each(|update| {
            update.extend(fields.as_object().cloned().unwrap_or_default());
        });
        update
    };
    let updates = [
        says("I look."),
        call(json!({ "toolCallId": "a", "title": "Read\nsrc/a", "status": "pending" })),
        call(json!({ "toolCallId": 7, "kind": "execute" })),
        call(json!({ "toolCallId": "a", "status": "in_progress" })),
        call(json!({ "toolCallId": "a", "status": "completed" })),
        call(json!({ "toolCallId": 7, "status": "failed",
            "content": [{ "type": "content", "content": { "type": "text", "text": "no such file\nx" } }] })),
        call(json!({ "toolCallId": "b", "title": "Wait" })),
    ];
    assert_eq!(
        shown(false, &updates),
        [
            "I look.",
            "> Read …: done",
            "> execute: failed: no such file …",
            "> Wait: no end was reported",
            "4th turn ended: end_turn"
        ]
    );
}

#[test]
fn of_a_plan_is_shown_what_changed() {
    let plan = |first: &str| {
        json!({ "sessionUpdate": "plan", "entries": [
            { "content": "read", "status": first }, { "content": "write", "status": "pending" },
        ] })
    };
    let updates = [plan("in_progress"), plan("in_progress"), plan("completed")];
    assert_eq!(
        shown(false, &updates),
        ["plan [>] read", "plan [ ] write", "plan [x] read", "4th turn ended: end_turn"]
    );
}

#[test]
fn invalid_updates_are_ignored() {
    let updates = [
        json!(null),
        json!({ "sessionUpdate": 3 }),
        json!({ "sessionUpdate": "of a later version" }),
        json!({ "sessionUpdate": "agent_message_chunk", "content": [] }),
        json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "image" } }),
        json!({ "sessionUpdate": "plan", "entries": { "content": 3 } }),
    ];
    assert_eq!(shown(false, &updates), ["[image]", "4th turn ended: end_turn"]);
}

#[test]
fn a_line_without_end_is_shown_in_parts() {
    let long = "x".repeat(LONGEST_LINE);
    let lines = shown(false, &[says(&long), says("y"), says("z")]);
    assert_eq!(lines, [format!("{long}y").as_str(), "z", "4th turn ended: end_turn"]);
}

#[test]
fn unfinished_lines_and_calls_are_shown_after_a_pause() {
    let (mut fold, now) = (Fold::new(false), Instant::now());
    assert!(fold.update("ui", "s", &says("Wait"), now).is_empty());
    let call = json!({ "sessionUpdate": "tool_call", "toolCallId": "a", "title": "make" });
    let texts = |lines: Vec<(String, ShownLine)>| -> Vec<_> {
        lines.into_iter().map(|(who, line)| format!("{who}: {}", line.text)).collect()
    };
    assert!(fold.overdue(now + PAUSE / 2).is_empty());
    assert_eq!(texts(fold.overdue(now + PAUSE)), ["ui: Wait"]);
    assert!(fold.update("ui", "t", &call, now).is_empty());
    assert_eq!(texts(fold.overdue(now + PAUSE)), ["ui t: > make …"]);
    assert!(fold.overdue(now + PAUSE * 2).is_empty());
}

#[test]
fn a_call_of_which_a_part_was_refused_is_not_done_alone() {
    let (mut fold, now) = (Fold::new(false), Instant::now());
    let call = |status: &str| {
        json!({
            "sessionUpdate": "tool_call", "toolCallId": "1", "title": "git commit", "status": status,
        })
    };
    assert!(fold.update("ui", "s", &call("in_progress"), now).is_empty());
    for (id, status) in [("b1", "denied"), ("b2", "denied"), ("b1", "allowed")] {
        let access = json!({
            "type": "blocked", "id": id, "agent_id": "ui", "session_id": "s", "path": format!(".git/{id}"), "action": "write", "via": "kernel",
            "status": status, "owners": [], "reason": null, "timestamp_ms": 0, "tool_call": "1",
        });
        let access = access.to_string();
        let Ok(ServerLine::Blocked(access)) = ServerLine::read(access.as_bytes()) else { panic!() };
        let lines = fold.blocked(&access, format!("{status} {id}"));
        assert_eq!(lines.last().unwrap().1.text, format!("{status} {id}"));
    }
    let lines = fold.update("ui", "s", &call("completed"), now);
    let [(_, line)] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(line.text, "> git commit: done, but refused: write .git/b2 (b2)");
    assert_eq!(line.kind, LineKind::FailedCall);
}
