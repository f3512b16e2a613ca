//! The turn that works on a task is found in whatever order the bus tells of both.

use tempfile::TempDir;

use super::{all, following, key, payload, settings};
use crate::model::{
    AgentId, Event, Record, SessionId, SessionMode, Spent, TaskId, TaskReport, TaskState, TurnEnd,
};

fn task(session: bool, state: TaskState, timestamp_ms: u64) -> Event {
    Event::Task(TaskReport {
        id: TaskId::new("t-1"),
        by: AgentId::new("lead"),
        owner: None,
        agent: AgentId::new("a"),
        session: session.then(|| SessionId::new("s")),
        state,
        reason: state.is_ended().then(|| "why".to_owned()),
        timestamp_ms,
    })
}

fn given(at: u64) -> Event {
    task(false, TaskState::Running, at)
}

fn sent(at: u64) -> Event {
    task(true, TaskState::Running, at)
}

fn done(at: u64) -> Event {
    task(true, TaskState::Done, at)
}

fn began(timestamp_ms: u64) -> Event {
    Event::Record { key: key("a/s"), record: Record::TurnBegan, turn: None, timestamp_ms }
}

fn ended(turn: u64) -> Event {
    let (key, mode) = (key("a/s"), SessionMode::SingleAgent);
    Event::Turn(TurnEnd {
        key,
        mode,
        turn,
        stop_reason: "end_turn".into(),
        reason: None,
        spent: Spent::default(),
    })
}

/// The journal's events of tasks: `STATE TURN`, with a dash for no turn.
async fn tasks(events: Vec<Event>) -> Vec<String> {
    let folder = TempDir::new().unwrap();
    let settings = settings(folder.path());
    let path = settings.path.clone();
    let (bus, _journal, followed) = following(settings);
    for event in events {
        bus.publish(event);
    }
    drop(bus);
    followed.await.unwrap();
    let events = all(&path);
    let tasks = events.iter().filter(|event| event.kind == "task");
    let shown = tasks.map(|event| {
        let payload = payload(event);
        assert_eq!((&payload["task"], &payload["by"]), (&"t-1".into(), &"lead".into()));
        assert_eq!(event.agent_id.as_deref(), Some("a"));
        assert_eq!(event.session_id.is_some(), event.turn.is_some());
        let turn = event.turn.map_or("-".to_owned(), |turn| turn.to_string());
        format!("{} {turn}", payload["state"].as_str().unwrap())
    });
    shown.collect()
}

#[tokio::test]
async fn a_task_has_its_turn_and_its_end() {
    let whole = ["running 0", "done -"];
    for events in [
        vec![given(1), sent(5), began(6), ended(0), done(9)],
        vec![given(1), began(5), sent(6), ended(0), done(9)],
        vec![given(1), began(5), ended(0), sent(6), done(9)],
        vec![given(1), began(5), ended(0), done(9)],
    ] {
        assert_eq!(tasks(events.clone()).await, whole, "{events:?}");
    }
}

#[tokio::test]
async fn a_turn_of_another_prompt_is_no_tasks() {
    let second = ["running 1", "done -"];
    for events in [
        // The turn that ran when it was given.
        vec![began(1), given(2), ended(0), sent(5), began(6), ended(1), done(9)],
        vec![began(1), given(2), sent(5), ended(0), began(6), ended(1), done(9)],
        // A prompt that was sent before it.
        vec![given(1), began(2), ended(0), sent(5), began(6), ended(1), done(9)],
        vec![given(1), began(2), sent(5_000), ended(0), began(5_001), ended(1), done(9_000)],
    ] {
        assert_eq!(tasks(events.clone()).await, second, "{events:?}");
    }
    let withdrawn = vec![given(1), began(2), ended(0), task(false, TaskState::Cancelled, 9)];
    assert_eq!(tasks(withdrawn).await, ["cancelled -"]);
}
