//! What one client has been shown, and with it which events of the bus are news to it: joins,
//! snapshots on request and resynchronisation leave neither gap nor repetition. Pure.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;

use super::filter::Filter;
use crate::model::{AgentId, BlockedId, Event, SessionKey, SessionMode, Snapshot};

/// Whether an event is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Delivery {
    Send,
    /// The client knows it already.
    Drop,
    /// The event doesn't follow what the client was shown: it needs fresh snapshots.
    Resync,
}

/// The state of one client. It grows with the sessions that live while the client is connected.
#[derive(Debug, Default)]
pub(super) struct ClientView {
    /// What the client was shown last of each session; of one that its filter keeps from it by
    /// now, that may be long ago.
    sessions: HashMap<SessionKey, Shown>,
    graph: ShownGraph,
    /// Number of the first event that the last whole set of snapshots did not contain.
    as_of: u64,
    /// Number of the first event that cannot repeat a line which was sent out of line.
    doubtful_until: u64,
    /// Lines last sent about a subject, while events are doubtful.
    last: HashMap<EventSubject, Bytes>,
}

/// The code graph as the client knows it.
#[derive(Clone, Copy, Default, Debug)]
struct ShownGraph {
    /// None: it was never shown.
    seq: Option<u64>,
    as_of: u64,
}

#[derive(Clone, Copy, Debug)]
struct Shown {
    seq: u64,
    mode: SessionMode,
    /// Number of the first event that the snapshot did not contain.
    as_of: u64,
}

/// What a line that stands for itself speaks of.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum EventSubject {
    Agent(AgentId),
    Usage(SessionKey),
    Blocked(BlockedId),
}

impl ClientView {
    /// Notes that the client is shown a snapshot that contains all events before number `as_of`.
    pub(super) fn show(&mut self, snapshot: &Snapshot, as_of: u64) {
        let shown = Shown { seq: snapshot.seq, mode: snapshot.mode, as_of };
        self.sessions.insert(snapshot.key.clone(), shown);
    }

    /// Notes that the client is shown the code graph.
    pub(super) fn show_graph(&mut self, seq: u64, as_of: u64) {
        self.graph = ShownGraph { seq: Some(seq), as_of };
    }

    /// Notes that the client was shown every session which lived then and that its filter covers.
    pub(super) fn show_all(&mut self, as_of: u64) {
        self.as_of = as_of;
    }

    /// Forgets the sessions that `filter` covers, but for those of `live`; returns the forgotten
    /// as empty snapshots, so that the client can forget them too.
    pub(super) fn retain<'a>(
        &mut self,
        filter: &Filter,
        live: impl Iterator<Item = &'a SessionKey>,
    ) -> Vec<Snapshot> {
        let live: HashSet<_> = live.collect();
        let forgotten = self
            .sessions
            .extract_if(|key, shown| filter.covers(key, shown.mode) && !live.contains(key))
            // What stands for a session that is not there yet has nothing to be forgotten.
            .filter(|(key, shown)| !key.session.as_str().is_empty() || shown.seq > 0)
            .map(|(key, shown)| Snapshot {
                key,
                mode: shown.mode,
                seq: shown.seq,
                nodes: Vec::new(),
                omitted: 0,
            })
            .collect();
        // What is kept from the client may have been in another mode since, which is covered.
        for shown in self.sessions.values_mut() {
            shown.as_of = shown.as_of.max(self.as_of);
        }
        forgotten
    }

    /// Notes a line about `subject` that the client is sent out of line.
    pub(super) fn record(&mut self, subject: EventSubject, line: Bytes) {
        self.last.insert(subject, line);
    }

    /// Notes that events before number `until` may tell what the client was just told.
    pub(super) fn doubt(&mut self, until: u64) {
        self.doubtful_until = until;
    }

    /// Judges the event with that number, which encodes as `line`.
    pub(super) fn judge(&mut self, number: u64, event: &Event, line: &Bytes) -> Delivery {
        if number >= self.doubtful_until && !self.last.is_empty() {
            self.last.clear();
        }
        match event {
            Event::Snapshot(snapshot) => self.judge_snapshot(number, snapshot),
            Event::Delta(delta) => self.judge_delta(number, &delta.key, delta.seq),
            Event::Agent(status) => {
                self.judge_line(number, EventSubject::Agent(status.agent.clone()), line)
            }
            Event::Usage(report) => {
                self.judge_line(number, EventSubject::Usage(report.key.clone()), line)
            }
            Event::Blocked(access) => {
                self.judge_line(number, EventSubject::Blocked(access.id.clone()), line)
            }
            Event::Graph(_) | Event::GraphDelta(_) if number < self.graph.as_of => Delivery::Drop,
            Event::Graph(graph) => {
                self.graph.seq = Some(graph.seq);
                Delivery::Send
            }
            Event::GraphDelta(delta) => self.judge_graph(delta.seq),
            // What the agent said was no JSON, and has no line.
            Event::SessionUpdate { .. } if line.is_empty() => Delivery::Drop,
            Event::Turn(_) | Event::Overlap(_) | Event::SessionUpdate { .. } => Delivery::Send,
        }
    }

    fn judge_snapshot(&mut self, number: u64, snapshot: &Snapshot) -> Delivery {
        let as_of = self.sessions.get(&snapshot.key).map_or(self.as_of, |shown| shown.as_of);
        if number < as_of {
            return Delivery::Drop;
        }
        self.show(snapshot, as_of);
        Delivery::Send
    }

    fn judge_delta(&mut self, number: u64, key: &SessionKey, seq: u64) -> Delivery {
        match self.sessions.get_mut(key) {
            Some(shown) if number < shown.as_of => Delivery::Drop,
            Some(shown) if shown.seq.checked_add(1) == Some(seq) => {
                shown.seq = seq;
                Delivery::Send
            }
            // A session that was not live any more when the snapshots were taken.
            None if number < self.as_of => Delivery::Drop,
            _ => Delivery::Resync,
        }
    }

    fn judge_graph(&mut self, seq: u64) -> Delivery {
        if self.graph.seq.and_then(|shown| shown.checked_add(1)) != Some(seq) {
            return Delivery::Resync;
        }
        self.graph.seq = Some(seq);
        Delivery::Send
    }

    fn judge_line(&mut self, number: u64, subject: EventSubject, line: &Bytes) -> Delivery {
        if number >= self.doubtful_until {
            return Delivery::Send;
        }
        if self.last.get(&subject) == Some(line) {
            return Delivery::Drop;
        }
        self.last.insert(subject, line.clone());
        Delivery::Send
    }
}

#[cfg(test)]
mod tests;
