//! Owns the state that one client has been shown, and decides which events are new to it, so that
//! joins, snapshots and resyncs leave no gap and repeat nothing. Pure.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::model::{AgentId, BlockedId, ConflictId, Event, SessionKey, SessionMode, Snapshot};
use crate::wire::request::Filter;

/// Whether an event is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Delivery {
    Send,
    /// The client has it already.
    Drop,
    /// The event does not follow the client's state: it needs fresh snapshots.
    Resync,
}

/// A client's state. It grows with the sessions that live while the client is connected.
#[derive(Debug, Default)]
pub(super) struct ClientView {
    /// The last state sent of each session; out of date where the filter now excludes it.
    sessions: HashMap<SessionKey, Shown>,
    graph: ShownGraph,
    /// The first event after the last complete set of snapshots.
    as_of: u64,
    /// The first event that can't repeat a line which was sent outside the event order.
    doubtful_until: u64,
    /// The last lines about each subject, kept while events may repeat them.
    last: HashMap<EventSubject, Bytes>,
}

/// The code graph as the client has it.
#[derive(Clone, Copy, Default, Debug)]
struct ShownGraph {
    /// None: never sent.
    seq: Option<u64>,
    as_of: u64,
}

#[derive(Clone, Copy, Debug)]
struct Shown {
    seq: u64,
    mode: SessionMode,
    /// The first event after the snapshot.
    as_of: u64,
}

/// The subject of a line that replaces the one before.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum EventSubject {
    Agent(AgentId),
    Usage(SessionKey),
    Blocked(BlockedId),
    /// None: the team's.
    Budget(Option<AgentId>),
    Conflict(ConflictId),
    Relayed(Arc<str>),
}

impl ClientView {
    /// Records that the client gets a snapshot with all events before number `as_of`.
    pub(super) fn show(&mut self, snapshot: &Snapshot, as_of: u64) {
        let shown = Shown { seq: snapshot.seq, mode: snapshot.mode, as_of };
        self.sessions.insert(snapshot.key.clone(), shown);
    }

    /// Records that the client gets the code graph.
    pub(super) fn show_graph(&mut self, seq: u64, as_of: u64) {
        self.graph = ShownGraph { seq: Some(seq), as_of };
    }

    /// Records that the client got all sessions that its filter covers.
    pub(super) fn show_all(&mut self, as_of: u64) {
        self.as_of = as_of;
    }

    /// Forgets the sessions that `filter` covers and that are not in `live`. Returns them as empty
    /// snapshots, by which the client forgets them too.
    pub(super) fn retain<'a>(
        &mut self,
        filter: &Filter,
        live: impl Iterator<Item = &'a SessionKey>,
    ) -> Vec<Snapshot> {
        let live: HashSet<_> = live.collect();
        let forgotten = self
            .sessions
            .extract_if(|key, shown| filter.covers(key, shown.mode) && !live.contains(key))
            // A placeholder of a missing session leaves nothing to forget.
            .filter(|(key, shown)| !key.session.as_str().is_empty() || shown.seq > 0)
            .map(|(key, shown)| Snapshot {
                key,
                mode: shown.mode,
                seq: shown.seq,
                nodes: Vec::new(),
                omitted: 0,
            })
            .collect();
        // A session that is filtered out may have changed its mode to one that is covered.
        for shown in self.sessions.values_mut() {
            shown.as_of = shown.as_of.max(self.as_of);
        }
        forgotten
    }

    /// Records a line about `subject` that is sent outside the event order.
    pub(super) fn record(&mut self, subject: EventSubject, line: Bytes) {
        self.last.insert(subject, line);
    }

    /// Marks events before number `until` as possible repetitions of recorded lines.
    pub(super) fn doubt(&mut self, until: u64) {
        self.doubtful_until = until;
    }

    /// Decides on the event with that number, which is encoded as `line`.
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
            Event::Budget(report) => {
                self.judge_line(number, EventSubject::Budget(report.agent.clone()), line)
            }
            Event::Conflict(conflict) => {
                self.judge_line(number, EventSubject::Conflict(conflict.id.clone()), line)
            }
            Event::Graph(_) | Event::GraphDelta(_) if number < self.graph.as_of => Delivery::Drop,
            Event::Graph(graph) => {
                self.graph.seq = Some(graph.seq);
                Delivery::Send
            }
            Event::GraphDelta(delta) => self.judge_graph(delta.seq),
            // An update that was not JSON has no line.
            Event::SessionUpdate { .. } if line.is_empty() => Delivery::Drop,
            Event::Record { .. } => Delivery::Drop,
            Event::Relayed(relayed) => match &relayed.subject {
                Some(subject) => {
                    self.judge_line(number, EventSubject::Relayed(Arc::clone(subject)), line)
                }
                None => Delivery::Send,
            },
            Event::Turn(_)
            | Event::Chosen(_)
            | Event::Loop(_)
            | Event::Overlap(_)
            | Event::Task(_)
            | Event::Report(_)
            | Event::Stream(_)
            | Event::SessionUpdate { .. } => Delivery::Send,
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
            // The session ended before the snapshots were taken.
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
