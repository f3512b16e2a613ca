//! Helpers of the tracker's tests: scripts in, text out, and a client that follows the events.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::session_input::SessionInput;
use super::{Settings, Symbols, Write};
use crate::bus::Rendered;
use crate::model::{
    Action, ActivityKind, AgentId, Cost, Event, FileNode, Lines, Overlap, SessionId, SessionKey,
    SessionMode, Snapshot, Source, Touch, Usage,
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

/// `VERB [ARGUMENT]`: `opened`, `read PATH[:FIRST-LAST]` (or any other touch), `seen read PATH`,
/// `performed PATH`, `written PATH`, `usage USED/SIZE[ AMOUNT CURRENCY]`, `compacted`, `began`,
/// `ended`, `update JSON`, `closed`.
pub(super) fn activity(line: &str) -> ActivityKind {
    let (verb, argument) = line.split_once(' ').unwrap_or((line, ""));
    match verb {
        "opened" => ActivityKind::Opened { is_new: false },
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
            ActivityKind::Usage { usage: Usage { used, size, cost }, is_past: false }
        }
        "seen" => {
            // By the kernel.
            let (verb, path) = argument.split_once(' ').unwrap();
            let touch = touch(verb).unwrap();
            let (source, lines) = (Source::Kernel, Lines::default());
            ActivityKind::Touched { path: path.into(), touch, source, lines }
        }
        "performed" => ActivityKind::Performed {
            path: argument.into(),
            action: Action::Write,
            by_program: false,
        },
        "written" => ActivityKind::Written { path: argument.into() },
        _ => {
            let touch = touch(verb).unwrap_or_else(|| panic!("no such verb: {verb}"));
            let (path, lines) = argument.split_once(':').unwrap_or((argument, ""));
            let lines = lines.split_once('-').map_or_else(Lines::default, |(first, last)| {
                Lines::range(first.parse().unwrap(), last.parse().unwrap())
            });
            ActivityKind::Touched { path: path.into(), touch, source: Source::Tool, lines }
        }
    }
}

pub(super) fn input(line: &str) -> SessionInput {
    SessionInput::from_activity(activity(line)).unwrap()
}

/// Knows files of nine lines, each of which is a function `f1` … `f9` that the one before it calls.
#[derive(Default, Debug)]
pub(super) struct Functions {
    /// Lines behind the ninth.
    pub(super) more: AtomicU32,
    pub(super) wrote: Mutex<Vec<String>>,
}

impl Symbols for Functions {
    fn covered(&self, path: &str, lines: &Lines) -> Vec<Arc<str>> {
        let within =
            |line: &u32| lines.ranges().iter().any(|range| (range.0..=range.1).contains(line));
        let last = 9 + self.more.load(Ordering::Relaxed);
        (1..=last).rev().filter(within).map(|line| format!("{path}::f{line}").into()).collect()
    }

    fn callers(&self, symbol: &str) -> Vec<Arc<str>> {
        let (path, line) = symbol.split_once("::f").unwrap_or((symbol, "0"));
        let line = line.parse::<u32>().unwrap_or(0);
        (line > 1).then(|| format!("{path}::f{}", line - 1).into()).into_iter().collect()
    }

    fn wrote(&self, write: &Write<'_>) {
        let Write { path, lines, by, timestamp_ms } = write;
        let input =
            format!("{path} {:?} {}/{} @{timestamp_ms}", lines.ranges(), by.agent, by.session);
        self.wrote.lock().unwrap().push(input);
    }
}

/// `PATH HEAT in|out ACTION turn N @TIME[ ORIGIN][ SYMBOLS]`.
pub(super) fn node_text(node: &FileNode) -> String {
    let place = if node.in_context { "in" } else { "out" };
    let FileNode { path, heat, last_action, turn_accessed, timestamp_ms, .. } = node;
    let action = last_action.as_str();
    let origin = node.origin.map_or(String::new(), |origin| format!(" {}", origin.as_str()));
    let symbols = node.symbols.iter().flat_map(|symbols| symbols.iter());
    let symbols: Vec<_> = symbols.flat_map(|symbol| [" ", symbol]).collect();
    let symbols = symbols.concat();
    format!("{path} {heat} {place} {action} turn {turn_accessed} @{timestamp_ms}{origin}{symbols}")
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
            let Some(Usage { used, size, cost }) = &report.usage else { return "spent".to_owned() };
            let cost = cost
                .as_ref()
                .map_or_else(String::new, |cost| format!(" {} {}", cost.amount, cost.currency));
            format!("{} usage {used}/{size}{cost}", head(&report.key, report.mode))
        }
        Event::Graph(_) | Event::GraphDelta(_) => unreachable!("no tracker knows the graph"),
        Event::Budget(_) => unreachable!("no tracker knows budgets"),
        Event::Loop(report) => format!("{} loop {report:?}", head(&report.key, report.mode)),
        Event::Turn(turn) => {
            let head = head(&turn.key, turn.mode);
            format!("{head} turn {} {}", turn.turn, turn.stop_reason)
        }
        Event::SessionUpdate { key, mode, update } => {
            format!("{} update {update}", head(key, *mode))
        }
        Event::Overlap(Overlap { kind, between, symbol, callers, timestamp_ms, .. }) => {
            let [first, second] =
                between.each_ref().map(|key| format!("{}/{}", key.agent, key.session));
            let kind = kind.as_str();
            let mut text = format!("overlap {kind} {first} {second} {symbol} @{timestamp_ms}");
            for (caller, key) in callers {
                write!(text, "\n    {caller} of {}/{}", key.agent, key.session).unwrap();
            }
            text
        }
        Event::Blocked(_)
        | Event::Agent(_)
        | Event::Chosen(_)
        | Event::Conflict(_)
        | Event::Task(_)
        | Event::Report(_)
        | Event::Stream(_)
        | Event::Relayed(_)
        | Event::Record { .. } => {
            unreachable!("the tracker knows none")
        }
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
                    // The origin of a write may change and change back between two flushes.
                    let is_change = known.as_ref() != Some(node) || node.origin.is_some();
                    assert!(is_change, "an update changes something");
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

    /// A snapshot in the stream never holds anything about nodes that the deltas before
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
