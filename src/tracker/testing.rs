//! What the tracker's tests share: scripts in, text out, and a client that follows the events.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use super::Settings;
use super::told::Told;
use crate::bus::Rendered;
use crate::model::{
    ActivityKind, AgentId, Cost, Event, FileNode, SessionId, SessionKey, SessionMode, Snapshot,
    Source, Touch, Usage,
};

pub(super) const SETTINGS: Settings = Settings {
    context_turns: 3,
    compaction_threshold: 0.5,
    decay_rate: 0.5,
    tick: Duration::from_millis(100),
    idle_tick: Duration::from_millis(500),
};

/// `AGENT/SESSION`.
pub(super) fn key(name: &str) -> SessionKey {
    let (agent, session) = name.split_once('/').unwrap();
    SessionKey::new(AgentId::new(agent), SessionId::new(session))
}

pub(super) fn touch(verb: &str) -> Option<Touch> {
    let all = [
        Touch::UserProvided,
        Touch::UserReferenced,
        Touch::Read,
        Touch::Write,
        Touch::Search,
        Touch::Blocked,
    ];
    all.into_iter().find(|touch| touch.as_str() == verb)
}

/// `VERB [ARGUMENT]`: `opened`, `read PATH` (or any other touch), `seen read PATH`, `usage USED/SIZE[ AMOUNT
/// CURRENCY]`, `compacted`, `began`, `ended`, `update JSON`, `closed`.
pub(super) fn activity(line: &str) -> ActivityKind {
    let (verb, argument) = line.split_once(' ').unwrap_or((line, ""));
    match verb {
        "opened" => ActivityKind::Opened,
        "closed" => ActivityKind::Closed,
        "compacted" => ActivityKind::Compacted,
        "began" => ActivityKind::TurnBegan,
        "ended" => ActivityKind::TurnEnded { stop_reason: "end_turn".into(), reason: None },
        "update" => ActivityKind::Update(argument.into()),
        "usage" => {
            let mut words = argument.split(['/', ' ']);
            let mut number = || words.next().unwrap().parse().unwrap();
            let (used, size) = (number(), number());
            let amount = words.next().map(|amount| amount.parse().unwrap());
            let cost = amount.map(|amount| Cost { amount, currency: words.next().unwrap().into() });
            ActivityKind::Usage(Usage { used, size, cost })
        }
        "seen" => {
            // By the kernel.
            let (verb, path) = argument.split_once(' ').unwrap();
            let touch = touch(verb).unwrap();
            ActivityKind::Touched { path: path.into(), touch, source: Source::Kernel }
        }
        _ => {
            let touch = touch(verb).unwrap_or_else(|| panic!("no such verb: {verb}"));
            ActivityKind::Touched { path: argument.into(), touch, source: Source::Tool }
        }
    }
}

pub(super) fn told(line: &str) -> Told {
    Told::from_activity(activity(line)).unwrap()
}

/// `PATH HEAT in|out ACTION turn N @TIME`.
pub(super) fn node_text(node: &FileNode) -> String {
    let place = if node.in_context { "in" } else { "out" };
    let FileNode { path, heat, last_action, turn_accessed, timestamp_ms, .. } = node;
    let action = last_action.as_str();
    format!("{path} {heat} {place} {action} turn {turn_accessed} @{timestamp_ms}")
}

pub(super) fn event_text(event: &Event) -> String {
    let head = |key: &SessionKey, mode: SessionMode| {
        let orchestrator = if mode == SessionMode::Orchestrator { " (orchestrator)" } else { "" };
        format!("{}/{}{orchestrator}", key.agent, key.session)
    };
    match event {
        Event::Snapshot(snapshot) => {
            let mut text =
                format!("{} snapshot {}", head(&snapshot.key, snapshot.mode), snapshot.seq);
            for node in &snapshot.nodes {
                write!(text, "\n    {}", node_text(node)).unwrap();
            }
            text
        }
        Event::Delta(delta) => {
            let mut text = format!("{} delta {}", head(&delta.key, delta.mode), delta.seq);
            for node in &delta.updates {
                write!(text, "\n    {}", node_text(node)).unwrap();
            }
            for path in &delta.removed {
                write!(text, "\n    {path} removed").unwrap();
            }
            text
        }
        Event::Usage(report) => {
            let Usage { used, size, cost } = &report.usage;
            let cost = cost
                .as_ref()
                .map_or_else(String::new, |cost| format!(" {} {}", cost.amount, cost.currency));
            format!("{} usage {used}/{size}{cost}", head(&report.key, report.mode))
        }
        Event::Turn(turn) => {
            let head = head(&turn.key, turn.mode);
            format!("{head} turn {} {}", turn.turn, turn.stop_reason)
        }
        Event::SessionUpdate { key, mode, update } => {
            format!("{} update {update}", head(key, *mode))
        }
        Event::Blocked(_) | Event::Agent(_) => unreachable!("the tracker knows none"),
    }
}

/// Follows the events as a client does, and panics where they break the rules of the wire.
#[derive(Default)]
pub(super) struct Client {
    sessions: BTreeMap<SessionKey, Followed>,
}

struct Followed {
    mode: SessionMode,
    seq: u64,
    nodes: BTreeMap<String, FileNode>,
}

impl Client {
    pub(super) fn follow(&mut self, event: &Event) {
        match event {
            Event::Snapshot(snapshot) => self.take(snapshot),
            Event::Delta(delta) => {
                let session = self.sessions.get_mut(&delta.key).expect("announced before");
                session.seq += 1;
                assert_eq!(delta.seq, session.seq, "each delta counts one more");
                assert_eq!(delta.mode, session.mode);
                let mut named = HashSet::new();
                let updated = delta.updates.iter().map(|node| &node.path);
                assert!(updated.chain(&delta.removed).all(|path| named.insert(path)));
                assert!(!named.is_empty(), "a delta says something");
                for node in &delta.updates {
                    let known = session.nodes.insert(node.path.to_string(), node.clone());
                    assert_ne!(known.as_ref(), Some(node), "an update is news");
                }
                for path in &delta.removed {
                    session.nodes.remove(&**path).expect("known before");
                }
            }
            Event::Turn(turn) => {
                assert!(self.sessions.contains_key(&turn.key), "announced before");
            }
            _ => {}
        }
    }

    /// A snapshot in the stream never tells a client anything about nodes that the deltas before
    /// and after do not.
    fn take(&mut self, snapshot: &Snapshot) {
        let Snapshot { mode, seq, .. } = *snapshot;
        assert!(snapshot.nodes.is_empty());
        if let Some(known) = self.sessions.get(&snapshot.key) {
            assert!(known.nodes.is_empty());
            assert!(seq == known.seq || seq == 0, "goes on, or begins anew");
        }
        let followed = Followed { mode, seq, nodes: BTreeMap::new() };
        self.sessions.insert(snapshot.key.clone(), followed);
    }

    /// Panics if the client sees anything else than `server`.
    pub(super) fn compare(&self, server: &[Arc<Rendered<Snapshot>>]) {
        for snapshot in server {
            let Some(session) = self.sessions.get(&snapshot.key) else {
                assert_eq!(
                    (snapshot.seq, snapshot.nodes.len()),
                    (0, 0),
                    "stands for no session yet"
                );
                continue;
            };
            assert_eq!((session.mode, session.seq), (snapshot.mode, snapshot.seq));
            assert!(session.nodes.values().eq(&snapshot.nodes), "{:?}", snapshot.key);
        }
        let live: HashSet<_> = server.iter().map(|snapshot| &snapshot.key).collect();
        assert_eq!(live.len(), server.len(), "each session once");
        for (key, session) in &self.sessions {
            assert!(live.contains(key) || session.nodes.is_empty(), "{key:?} has ended");
        }
    }
}
