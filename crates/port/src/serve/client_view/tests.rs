//! Small cases; `serve/tests/equality.rs` has all of them.

use super::*;
use crate::model::{AgentState, AgentStatus, Delta, SessionId};

const NONE: Bytes = Bytes::new();

fn key(id: u8) -> SessionKey {
    SessionKey::new(AgentId::new("a"), SessionId::new(id.to_string()))
}

fn snapshot(id: u8, seq: u64) -> Snapshot {
    Snapshot { key: key(id), mode: SessionMode::SingleAgent, seq, nodes: Vec::new(), omitted: 0 }
}

fn delta(id: u8, seq: u64) -> Event {
    let (key, mode) = (key(id), SessionMode::SingleAgent);
    Event::Delta(Delta { key, mode, seq, updates: Vec::new(), removed: Vec::new() })
}

#[test]
fn a_gap_asks_for_fresh_snapshots() {
    let mut gate = ClientView::default();
    gate.show(&snapshot(0, 3), 10);
    gate.show_all(10);
    // Contained, though their numbers don't show it: the session began anew meanwhile.
    assert_eq!(gate.judge(8, &delta(0, 9), &NONE), Delivery::Drop);
    assert_eq!(gate.judge(9, &delta(1, 9), &NONE), Delivery::Drop);
    assert_eq!(gate.judge(10, &delta(0, 5), &NONE), Delivery::Resync);
    assert_eq!(gate.judge(11, &delta(0, 4), &NONE), Delivery::Send);
    assert_eq!(gate.judge(12, &delta(0, 4), &NONE), Delivery::Resync);
    assert_eq!(gate.judge(13, &delta(1, 1), &NONE), Delivery::Resync);
    assert_eq!(gate.judge(14, &Event::Snapshot(snapshot(0, 0)), &NONE), Delivery::Send);
    assert_eq!(gate.judge(15, &delta(0, 1), &NONE), Delivery::Send);
}

#[test]
fn removed_sessions_are_sent_to_clients_that_had_them() {
    let mut gate = ClientView::default();
    for id in 0..3 {
        gate.show(&snapshot(id, 1), 0);
    }
    let lead = |seq| Snapshot {
        key: SessionKey::new(AgentId::new("lead"), SessionId::new("")),
        mode: SessionMode::Orchestrator,
        ..snapshot(0, seq)
    };
    gate.show(&lead(0), 0);
    let only = Filter::Session(SessionId::new("1"));
    assert_eq!(gate.retain(&only, [].into_iter()), [snapshot(1, 1)]);
    assert_eq!(gate.retain(&Filter::All, [key(2)].iter()), [snapshot(0, 1)]);
    // The place of a session to come has something to be forgotten once it showed something.
    gate.show(&lead(4), 0);
    assert_eq!(gate.retain(&Filter::All, [key(2)].iter()), [lead(4)]);
}

#[test]
fn only_doubtful_repeats_are_dropped() {
    let mut gate = ClientView::default();
    let agent = |state| {
        Event::Agent(AgentStatus {
            agent: AgentId::new("a"),
            state,
            pid: None,
            reason: None,
            restarts: 0,
            candidate: None,
            timestamp_ms: 0,
        })
    };
    let (ready, stopped) = (Bytes::from_static(b"ready"), Bytes::from_static(b"stopped"));
    gate.record(EventSubject::Agent(AgentId::new("a")), ready.clone());
    gate.doubt(4);
    assert_eq!(gate.judge(0, &agent(AgentState::Ready), &ready), Delivery::Drop);
    assert_eq!(gate.judge(1, &agent(AgentState::Stopped), &stopped), Delivery::Send);
    assert_eq!(gate.judge(2, &agent(AgentState::Ready), &ready), Delivery::Send);
    assert_eq!(gate.judge(3, &agent(AgentState::Ready), &ready), Delivery::Drop);
    assert_eq!(gate.judge(4, &agent(AgentState::Ready), &ready), Delivery::Send);
}
