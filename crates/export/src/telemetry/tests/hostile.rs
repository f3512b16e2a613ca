//! Harmful input from agents, and events that were missed: bounded, and never a panic.

use prost::Message;

use super::{fold, key, record, text, turn_end, update};
use crate::model::{
    AgentId, BlockedAccess, BlockedStatus, Event, Record, SessionId, SessionKey, TaskId,
    TaskReport, TaskState,
};
use crate::otlp::Span;
use crate::telemetry::outbox::Outbox;
use crate::telemetry::span::LONGEST_CONTENT;

fn is_incomplete(span: &Span) -> bool {
    span.attributes.iter().any(|attribute| attribute.key == "eisen.incomplete")
}

#[test]
fn open_calls_are_bounded() {
    let mut fold = fold(false, None);
    fold.event(&record("ui", Record::TurnBegan, 2_000), 2_000);
    for call in 0..600 {
        let call = format!(r#"{{"sessionUpdate":"tool_call","toolCallId":"{call}"}}"#);
        fold.event(&update("ui", &call, 2_100), 2_100);
    }
    let ended = fold.take();
    assert_eq!(ended.len(), 600 - 512);
    assert!(ended.iter().all(is_incomplete));
}

#[test]
fn late_updates_of_thousands_of_calls_begin_no_other_span() {
    let mut fold = fold(false, None);
    fold.event(&record("ui", Record::TurnBegan, 2_000), 2_000);
    let call = |id: usize| {
        let call =
            format!(r#"{{"sessionUpdate":"tool_call","toolCallId":"{id}","status":"completed"}}"#);
        update("ui", &call, 2_100)
    };
    (0..10_000).for_each(|id| fold.event(&call(id), 2_100));
    assert_eq!(fold.take().len(), 10_000);
    (10_000 - 4_096..10_000).for_each(|id| fold.event(&call(id), 2_200));
    assert_eq!(fold.take().len(), 0);
}

#[test]
fn contents_of_open_calls_are_bounded_whoever_has_them() {
    let mut fold = fold(true, None);
    let long = "x".repeat(LONGEST_CONTENT);
    let mut bytes = 0;
    for agent in 0..50 {
        let agent = format!("a{agent}");
        fold.event(&record(&agent, Record::TurnBegan, 2_000), 2_000);
        for call in 0..100 {
            let call = format!(
                r#"{{"sessionUpdate":"tool_call","toolCallId":"{call}","rawInput":"{long}"}}"#
            );
            fold.event(&update(&agent, &call, 2_100), 2_100);
        }
    }
    assert!(fold.take().is_empty());
    fold.end(3_000);
    let ended = fold.take();
    for span in &ended {
        let arguments = span.attributes.iter().find(|it| it.key == "gen_ai.tool.call.arguments");
        bytes += arguments.map_or(0, Message::encoded_len);
    }
    assert!(bytes > 60 << 20 && bytes < 70 << 20, "{bytes}");
    // There is room again.
    fold.event(&record("ui", Record::TurnBegan, 4_000), 4_000);
    let call = format!(
        r#"{{"sessionUpdate":"tool_call","toolCallId":"c","rawInput":"{long}","status":"completed"}}"#
    );
    fold.event(&update("ui", &call, 4_100), 4_100);
    let spans = fold.take();
    assert!(spans[0].encoded_len() > LONGEST_CONTENT && !is_incomplete(&spans[0]), "{spans:?}");
}

#[test]
fn a_turn_goes_on_while_thousands_of_sessions_come_and_go() {
    let mut fold = fold(false, None);
    fold.event(&record("lead", Record::TurnBegan, 2_000), 2_000);
    for session in 0..5_000 {
        let key = SessionKey::new(AgentId::new("ui"), SessionId::new(format!("s{session}")));
        let of =
            |record| Event::Record { key: key.clone(), record, turn: None, timestamp_ms: 2_000 };
        fold.event(&of(Record::Replays(true)), 2_000);
    }
    assert!(fold.take().is_empty(), "the turn of the lead was given up");
    fold.event(&turn_end("lead", "end_turn", None), 3_000);
    assert!(!fold.take().iter().any(is_incomplete));
}

#[test]
fn open_turns_waits_and_tasks_are_bounded() {
    let mut fold = fold(false, None);
    for at in 0..5_000 {
        let key = SessionKey::new(AgentId::new("ui"), SessionId::new(format!("s{at}")));
        let began = Event::Record {
            key: key.clone(),
            record: Record::TurnBegan,
            turn: None,
            timestamp_ms: at,
        };
        fold.event(&began, at);
        let id = format!("b{at}");
        let access = BlockedAccess {
            timestamp_ms: 1,
            ..eisen_testing::blocked_access(&id, key, BlockedStatus::Pending)
        };
        fold.event(&Event::Blocked(access), at);
        fold.event(
            &Event::Task(TaskReport {
                id: TaskId::new(format!("t{at}")),
                by: AgentId::new("orchestrator"),
                owner: None,
                agent: AgentId::new("api"),
                session: None,
                state: TaskState::Running,
                reason: None,
                timestamp_ms: at,
            }),
            at,
        );
    }
    let ended = fold.take();
    let named = |name: &str| ended.iter().filter(|span| span.name.starts_with(name)).count();
    assert_eq!(named("invoke_agent"), 5_000 - 4_096);
    assert_eq!(named("access"), 5_000 - 1_024);
    // Those of turns, too.
    assert_eq!(named("invoke_workflow"), (5_000 - 4_096) + (5_000 - 1_024));
    assert!(ended.iter().all(is_incomplete));
}

#[test]
fn texts_are_bounded() {
    let mut fold = fold(true, None);
    let long = "ä".repeat(1 << 20);
    fold.event(&record("ui", Record::TurnBegan, 2_000), 2_000);
    let prompt = format!(r#"[{{"type":"text","text":"{long}"}}]"#);
    fold.event(&record("ui", Record::Prompt(prompt.into()), 2_000), 2_000);
    let call = format!(
        r#"{{"sessionUpdate":"tool_call","toolCallId":"{long}","title":"{long}","kind":"{long}",
            "status":"failed","rawInput":"{long}","rawOutput":["{long}"],"_meta":{{"toolName":"{long}"}}}}"#
    );
    fold.event(&update("ui", &call, 2_100), 2_100);
    for _ in 0..20 {
        let chunk = format!(
            r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{long}"}}}}"#
        );
        fold.event(&update("ui", &chunk, 2_200), 2_200);
    }
    fold.event(&turn_end("ui", &long, Some(&long)), 2_300);
    let spans = fold.take();
    assert_eq!(spans.len(), 3);
    for span in spans {
        assert!(span.encoded_len() < 4 * LONGEST_CONTENT, "{} bytes", span.encoded_len());
    }
}

#[test]
fn malformed_messages_do_no_harm() {
    let mut fold = fold(true, None);
    fold.event(&record("ui", Record::TurnBegan, 2_000), 2_000);
    for bad in [
        "",
        "null",
        "[]",
        "{",
        r#"{"sessionUpdate":7}"#,
        r#"{"sessionUpdate":"tool_call"}"#,
        r#"{"sessionUpdate":"tool_call","toolCallId":null,"status":"completed"}"#,
        r#"{"sessionUpdate":"tool_call","toolCallId":{"x":[]},"title":5}"#,
        r#"{"sessionUpdate":"tool_call","toolCallId":"a","kind":"../../etc","_meta":[1],"status":"failed"}"#,
        r#"{"sessionUpdate":"tool_call","toolCallId":"b","_meta":{"toolName":"rm -r /"},"status":"failed"}"#,
        r#"{"sessionUpdate":"agent_message_chunk","content":[]}"#,
    ] {
        fold.event(&update("ui", bad, 2_100), 2_100);
        fold.event(&record("ui", Record::Prompt(bad.into()), 2_100), 2_100);
        let (id, params) = (text("1"), text(bad));
        fold.event(&record("ui", Record::PermissionAsked { id, params }, 2_100), 2_100);
        let (id, result) = (text("1"), Some(text(bad)));
        fold.event(&record("ui", Record::PermissionAnswered { id, result }, 2_100), 2_100);
    }
    fold.event(&turn_end("ui", "end_turn", None), 2_300);
    let spans = fold.take();
    let named = |name: &str| spans.iter().filter(|span| span.name == name).count();
    assert_eq!((named("execute_tool other"), named("invoke_agent ui")), (3, 1));
}

#[test]
fn a_turn_whose_end_was_missed_does_not_stay_open() {
    let mut fold = fold(false, None);
    fold.event(&record("ui", Record::TurnBegan, 2_000), 2_000);
    fold.missed();
    assert!(fold.take().is_empty());
    fold.event(&record("ui", Record::TurnBegan, 3_000), 3_000);
    let ended = fold.take();
    assert_eq!(ended.len(), 2);
    assert!(ended.iter().all(is_incomplete));
    fold.event(&turn_end("ui", "end_turn", None), 3_100);
    assert!(!fold.take().iter().any(is_incomplete));
    // What goes on over a gap says so.
    fold.event(&record("ui", Record::TurnBegan, 4_000), 4_000);
    fold.missed();
    fold.event(&turn_end("ui", "end_turn", None), 4_100);
    assert!(fold.take().iter().all(is_incomplete));
    assert_eq!(key("ui").agent.as_str(), "ui");
}

#[test]
fn spans_that_wait_are_bounded_and_the_oldest_go() {
    let span = |name: String| Span { name, ..Span::default() };
    let mut outbox = Outbox::default();
    outbox.add((0..9_000).map(|at| span(format!("s{at}"))).collect());
    assert_eq!((outbox.len(), outbox.take_dropped()), (8_192, 9_000 - 8_192));
    let batch = outbox.take();
    assert_eq!((batch.len(), &*batch[0].name), (512, "s808"));
    outbox.put_back(batch);
    assert_eq!((outbox.len(), &*outbox.take()[0].name), (8_192, "s808"));
    // By their bytes, too.
    let mut outbox = Outbox::default();
    outbox.add((0..100).map(|_| span("x".repeat(1 << 20))).collect());
    assert!(outbox.len() < 17, "{}", outbox.len());
    assert_eq!(outbox.take().len(), 2);
}
