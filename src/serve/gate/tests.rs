#![allow(clippy::expect_used)]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::model::{AgentState, AgentStatus, Delta, FileNode, SessionId, Touch};

const BACKLOG: usize = 6;

type Map = BTreeMap<String, u64>;

#[derive(Clone, PartialEq, Debug)]
struct Session {
    seq: u64,
    mode: SessionMode,
    live: bool,
    files: Map,
}

/// A tracker and its bus.
#[derive(Default)]
struct Server {
    sessions: BTreeMap<u8, Session>,
    published: Vec<Event>,
}

#[derive(Clone, Debug)]
enum Happening {
    Open(u8),
    Touch(u8, u8),
    Mode(u8),
    End(u8),
}

impl Server {
    fn happen(&mut self, what: &Happening) {
        match *what {
            Happening::Open(id) => {
                let session = self.sessions.entry(id).or_insert(Session {
                    seq: 0,
                    mode: SessionMode::SingleAgent,
                    live: false,
                    files: Map::new(),
                });
                if !session.live {
                    session.live = true;
                    let event = Event::Snapshot(snapshot(id, session));
                    self.published.push(event);
                }
            }
            Happening::Touch(id, file) => {
                let time = self.published.len() as u64;
                if let Some(session) = self.sessions.get_mut(&id).filter(|session| session.live) {
                    session.seq += 1;
                    let path = format!("{file}.rs");
                    session.files.insert(path.clone(), time);
                    self.published.push(Event::Delta(Delta {
                        key: key(id),
                        mode: session.mode,
                        seq: session.seq,
                        updates: vec![node(&path, time)],
                        removed: Vec::new(),
                    }));
                }
            }
            Happening::Mode(id) => {
                if let Some(session) = self.sessions.get_mut(&id).filter(|session| session.live) {
                    session.mode = match session.mode {
                        SessionMode::SingleAgent => SessionMode::Orchestrator,
                        SessionMode::Orchestrator => SessionMode::SingleAgent,
                    };
                    self.published.push(Event::Snapshot(snapshot(id, session)));
                }
            }
            Happening::End(id) => {
                if let Some(session) = self.sessions.get_mut(&id).filter(|session| session.live) {
                    session.live = false;
                    session.seq += 1;
                    let removed = std::mem::take(&mut session.files).into_keys();
                    self.published.push(Event::Delta(Delta {
                        key: key(id),
                        mode: session.mode,
                        seq: session.seq,
                        updates: Vec::new(),
                        removed: removed.map(Into::into).collect(),
                    }));
                }
            }
        }
    }

    fn snapshots(&self) -> Vec<Snapshot> {
        let live = self.sessions.iter().filter(|(_, session)| session.live);
        live.map(|(id, session)| snapshot(*id, session)).collect()
    }
}

/// A client behind its gate, which does to its map what it is sent.
#[derive(Default)]
struct Client {
    gate: Gate,
    received: usize,
    sessions: BTreeMap<SessionKey, Session>,
}

impl Client {
    fn show_all(&mut self, server: &mut Server, meanwhile: &[Happening]) {
        let snapshots = server.snapshots();
        let gone = self.gate.retain(&snapshots);
        for snapshot in &snapshots {
            self.gate.show(snapshot);
            self.apply_snapshot(snapshot);
        }
        for snapshot in &gone {
            self.apply_snapshot(snapshot);
        }
        self.settle(server, meanwhile);
    }

    fn show_some(&mut self, server: &mut Server, id: Option<u8>, meanwhile: &[Happening]) {
        for snapshot in server.snapshots() {
            if id.is_none_or(|id| snapshot.key == key(id)) {
                self.gate.show(&snapshot);
                self.apply_snapshot(&snapshot);
            }
        }
        self.settle(server, meanwhile);
    }

    fn settle(&mut self, server: &mut Server, meanwhile: &[Happening]) {
        for what in meanwhile {
            server.happen(what);
        }
        self.gate.doubt(server.published.len() - self.received);
    }

    fn receive(&mut self, server: &mut Server) {
        let waiting = server.published.len() - self.received;
        if waiting > BACKLOG {
            self.received += waiting - BACKLOG;
            self.show_all(server, &[]);
            return;
        }
        let Some(event) = server.published.get(self.received) else { return };
        self.received += 1;
        match (self.gate.judge(event, &Bytes::new()), event) {
            (Verdict::Send, Event::Snapshot(snapshot)) => self.apply_snapshot(snapshot),
            (Verdict::Send, Event::Delta(delta)) => {
                let session = self.sessions.get_mut(&delta.key).expect("a snapshot before a delta");
                assert_eq!(delta.seq, session.seq + 1);
                session.seq = delta.seq;
                for node in &delta.updates {
                    session.files.insert(node.path.to_string(), node.timestamp_ms);
                }
                for path in &delta.removed {
                    session.files.remove(&**path);
                }
            }
            (Verdict::Drop, _) => {}
            (verdict, event) => panic!("{verdict:?} for {event:?}"),
        }
    }

    fn apply_snapshot(&mut self, snapshot: &Snapshot) {
        let files = snapshot.nodes.iter().map(|node| (node.path.to_string(), node.timestamp_ms));
        let session =
            Session { seq: snapshot.seq, mode: snapshot.mode, live: true, files: files.collect() };
        self.sessions.insert(snapshot.key.clone(), session);
    }
}

fn key(id: u8) -> SessionKey {
    SessionKey::new(AgentId::new("a"), SessionId::new(id.to_string()))
}

fn node(path: &str, time: u64) -> FileNode {
    FileNode {
        path: path.into(),
        heat: 1.0,
        in_context: true,
        last_action: Touch::Read,
        turn_accessed: 0,
        timestamp_ms: time,
    }
}

fn snapshot(id: u8, session: &Session) -> Snapshot {
    let nodes = session.files.iter().map(|(path, time)| node(path, *time)).collect();
    Snapshot { key: key(id), mode: session.mode, seq: session.seq, nodes }
}

#[derive(Clone, Debug)]
enum Step {
    Happen(Happening),
    Receive(u8),
    Request(Option<u8>, Vec<Happening>),
}

fn happening() -> impl Strategy<Value = Happening> {
    let id = 0..3u8;
    prop_oneof![
        2 => id.clone().prop_map(Happening::Open),
        6 => (id.clone(), 0..4u8).prop_map(|(id, file)| Happening::Touch(id, file)),
        1 => id.clone().prop_map(Happening::Mode),
        1 => id.prop_map(Happening::End),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let meanwhile = proptest::collection::vec(happening(), 0..4);
    prop_oneof![
        4 => happening().prop_map(Step::Happen),
        3 => (1..5u8).prop_map(Step::Receive),
        1 => (proptest::option::of(0..3u8), meanwhile).prop_map(|(id, all)| Step::Request(id, all)),
    ]
}

proptest! {
    #[test]
    fn a_client_that_applies_what_it_is_sent_equals_the_server(
        before in proptest::collection::vec(happening(), 0..12),
        unreceived in proptest::collection::vec(happening(), 0..6),
        meanwhile in proptest::collection::vec(happening(), 0..6),
        steps in proptest::collection::vec(step(), 0..60),
    ) {
        let mut server = Server::default();
        for what in &before {
            server.happen(what);
        }
        let mut client = Client { received: server.published.len(), ..Client::default() };
        for what in &unreceived {
            server.happen(what);
        }
        client.show_all(&mut server, &meanwhile);
        for step in &steps {
            match step {
                Step::Happen(what) => server.happen(what),
                Step::Receive(count) => (0..*count).for_each(|_| client.receive(&mut server)),
                Step::Request(id, meanwhile) => client.show_some(&mut server, *id, meanwhile),
            }
        }
        while client.received < server.published.len() {
            client.receive(&mut server);
        }
        for (id, session) in &server.sessions {
            match client.sessions.get(&key(*id)) {
                Some(shown) if session.live => prop_assert_eq!(shown, session),
                Some(shown) => prop_assert_eq!(&shown.files, &Map::new()),
                None => prop_assert!(!session.live, "session {} was never shown", id),
            }
        }
    }
}

#[test]
fn a_gap_asks_for_fresh_snapshots() {
    let mut gate = Gate::default();
    let session = Session { seq: 3, mode: SessionMode::SingleAgent, live: true, files: Map::new() };
    gate.show(&snapshot(0, &session));
    let delta = |id, seq| {
        let (key, mode) = (key(id), SessionMode::SingleAgent);
        Event::Delta(Delta { key, mode, seq, updates: Vec::new(), removed: Vec::new() })
    };
    let none = Bytes::new();
    assert_eq!(gate.judge(&delta(0, 5), &none), Verdict::Resync);
    assert_eq!(gate.judge(&delta(0, 4), &none), Verdict::Send);
    // Nothing is older than what was shown any more: the session began anew.
    assert_eq!(gate.judge(&delta(0, 4), &none), Verdict::Resync);
    assert_eq!(gate.judge(&delta(1, 1), &none), Verdict::Resync);
    let anew = Session { seq: 0, ..session };
    assert_eq!(gate.judge(&Event::Snapshot(snapshot(0, &anew)), &none), Verdict::Send);
    assert_eq!(gate.judge(&delta(0, 1), &none), Verdict::Send);
}

#[test]
fn only_doubtful_repeats_are_dropped() {
    let mut gate = Gate::default();
    let agent = |state| {
        Event::Agent(AgentStatus {
            agent: AgentId::new("a"),
            state,
            pid: None,
            reason: None,
            restarts: 0,
            timestamp_ms: 0,
        })
    };
    let (ready, stopped) = (Bytes::from_static(b"ready"), Bytes::from_static(b"stopped"));
    gate.tell(Subject::Agent(AgentId::new("a")), ready.clone());
    gate.doubt(4);
    assert_eq!(gate.judge(&agent(AgentState::Ready), &ready), Verdict::Drop);
    assert_eq!(gate.judge(&agent(AgentState::Stopped), &stopped), Verdict::Send);
    assert_eq!(gate.judge(&agent(AgentState::Ready), &ready), Verdict::Send);
    assert_eq!(gate.judge(&agent(AgentState::Ready), &ready), Verdict::Drop);
    assert_eq!(gate.judge(&agent(AgentState::Ready), &ready), Verdict::Send);
}
