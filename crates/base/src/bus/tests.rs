#![allow(clippy::unwrap_used)]

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use tokio::time::timeout;

use super::*;
use crate::model::{
    AgentId, AgentState, AgentStatus, Delta, FileNode, SessionId, SessionKey, SessionMode, Topic,
    Touch,
};
use crate::task;

const WIDE: Backlog = Backlog::of(1000);

fn encode(event: &Event) -> Bytes {
    format!("{event:?}").into()
}

fn key() -> SessionKey {
    SessionKey::new(AgentId::new("a"), SessionId::new("s"))
}

fn update(text: &str) -> Event {
    Event::SessionUpdate { key: key(), mode: SessionMode::SingleAgent, update: text.into() }
}

/// An agent's line that says `text`.
fn agent(text: &str) -> Event {
    Event::Agent(AgentStatus {
        agent: AgentId::new("a"),
        state: AgentState::Error,
        pid: None,
        reason: Some(text.to_owned()),
        restarts: 0,
        candidate: None,
        timestamp_ms: 0,
    })
}

/// Says in a word what was received.
fn text(received: &Received) -> String {
    match received {
        Received::Missed(missed) => format!("missed {missed}"),
        Received::Event(number, event) => match &***event {
            Event::Agent(status) => format!("{number}:{}", status.reason.as_ref().unwrap()),
            Event::SessionUpdate { update, .. } => format!("{number}:update {update}"),
            other => panic!("{other:?}"),
        },
    }
}

fn all(subscriber: &mut Subscriber) -> Vec<String> {
    std::iter::from_fn(|| subscriber.try_recv().as_ref().map(text)).collect()
}

#[test]
fn everybody_gets_the_same_event_encoded_once() {
    let bus = Bus::encoding(WIDE, encode);
    bus.publish(agent("before"));
    let mut both = [bus.subscribe(), bus.subscribe()];
    bus.publish(agent("after"));
    let lines = both.each_mut().map(|subscriber| {
        let Some(Received::Event(1, event)) = subscriber.try_recv() else { panic!("no event") };
        assert_eq!(*event.line(), encode(&event));
        event.line().as_ptr()
    });
    assert_eq!(lines[0], lines[1]);
    assert!(both[0].try_recv().is_none());
    assert_eq!(bus.position(), 2);
}

#[test]
fn a_slow_subscriber_resumes_from_the_middle() {
    let bus = Bus::new(Backlog::of(4));
    let (mut quick, mut late) = (bus.subscribe(), bus.subscribe());
    for number in 0..6 {
        bus.publish(agent(&number.to_string()));
        assert_eq!(all(&mut quick), [format!("{number}:{number}")]);
    }
    assert_eq!(late.waiting(), 6);
    assert_eq!(all(&mut late), ["missed 4", "4:4", "5:5"]);
    assert_eq!(late.waiting(), 0);
}

#[test]
fn large_events_push_out_more() {
    let bus = Bus::encoding(Backlog { events: 1000, bytes: 100_000 }, encode);
    let mut late = bus.subscribe();
    late.want(Topic::SessionUpdate);
    for _ in 0..50 {
        bus.publish(update(&"x".repeat(10_000)));
    }
    let seen = all(&mut late);
    assert_eq!((seen[0].as_str(), seen.len()), ("missed 48", 3));

    // The newest is there whatever its size.
    bus.publish(update(&"x".repeat(1_000_000)));
    assert_eq!(all(&mut late).len(), 1);
    assert_eq!(bus.ring.lock().copy(50, 1, &mut std::collections::VecDeque::new()), Ok(()));
    bus.publish(agent("small"));
    assert_eq!(all(&mut late), ["51:small"]);
    assert_eq!(bus.ring.lock().copy(50, 1, &mut std::collections::VecDeque::new()), Err(51));
}

#[test]
fn nodes_weigh_what_they_are() {
    let bus = Bus::encoding(Backlog { events: 1000, bytes: 1_000_000 }, encode);
    let mut late = bus.subscribe();
    let node = FileNode {
        path: "x".repeat(100).into(),
        heat: 1.0,
        in_context: true,
        last_action: Touch::Read,
        turn_accessed: 0,
        timestamp_ms: 0,
        symbols: None,
        origin: None,
    };
    for seq in 1..=10 {
        bus.publish(Event::Delta(Delta {
            key: key(),
            mode: SessionMode::SingleAgent,
            seq,
            updates: vec![node.clone(); 500],
            removed: vec![node.path.clone(); 500],
        }));
    }
    assert!(matches!(late.try_recv(), Some(Received::Missed(_))));
}

#[test]
fn a_stalled_subscriber_keeps_little_alive() {
    let bus = Bus::encoding(WIDE, encode);
    let mut late = bus.subscribe();
    late.want(Topic::SessionUpdate);
    for _ in 0..100 {
        bus.publish(update(&"x".repeat(10_000)));
    }
    late.try_recv().unwrap();
    assert!(late.taken.len() < 10, "{}", late.taken.len());
    assert_eq!(all(&mut late).len(), 99);
}

#[test]
fn updates_are_for_their_subscribers() {
    let bus = Bus::new(WIDE);
    let demand = bus.demand(Topic::SessionUpdate);
    let (mut without, mut with) = (bus.subscribe(), bus.subscribe());
    assert!(!demand.is_there());
    with.want(Topic::SessionUpdate);
    with.want(Topic::SessionUpdate);
    assert!(demand.is_there());
    bus.publish(update("{}"));
    bus.publish(agent("x"));
    assert_eq!(all(&mut without), ["1:x"]);
    assert_eq!(all(&mut with), ["0:update {}", "1:x"]);
    drop(with);
    assert!(!demand.is_there());
}

#[test]
fn a_busy_subscriber_is_not_woken() {
    let bus = Bus::new(WIDE);
    let mut subscriber = bus.subscribe();
    let wakeup = bus.wakeup.subscribe();
    bus.publish(agent("0"));
    assert!(!wakeup.has_changed().unwrap(), "no subscriber waits yet");
    assert_eq!(all(&mut subscriber), ["0:0"]);
    bus.publish(agent("1"));
    assert!(wakeup.has_changed().unwrap(), "a subscriber found nothing");
}

#[tokio::test]
async fn events_and_the_end_wake_a_waiting_subscriber() {
    let bus = Bus::new(WIDE);
    let mut subscriber = bus.subscribe();
    assert!(subscriber.recv().now_or_never().is_none());
    let waiting = task::spawn(async move {
        let first = subscriber.recv().await.map(|received| text(&received));
        (first, subscriber.recv().await.is_none())
    });
    tokio::task::yield_now().await;
    bus.publish(agent("x"));
    tokio::task::yield_now().await;
    drop(bus);
    let seen = timeout(Duration::from_secs(10), waiting).await.unwrap().unwrap();
    assert_eq!(seen, (Some("0:x".to_owned()), true));
}
