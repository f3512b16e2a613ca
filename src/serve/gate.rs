//! What one client has been shown, and with it which events of the bus are news to it: joins,
//! snapshots on request and resynchronisation leave neither gap nor repetition. Pure.

use std::collections::HashMap;

use bytes::Bytes;

use crate::model::{AgentId, BlockedId, Event, SessionKey, SessionMode, Snapshot};

/// Whether an event is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Send,
    /// The client knows it already.
    Drop,
    /// The event doesn't follow what the client was shown: it needs fresh snapshots.
    Resync,
}

/// The state of one client. It grows with the sessions that live while the client is connected.
#[derive(Debug, Default)]
pub(super) struct Gate {
    sessions: HashMap<SessionKey, Shown>,
    /// Events to come that may be older than what was shown out of line: snapshots are taken while
    /// the bus goes on, and what it carried meanwhile is still to be received.
    doubtful: usize,
    /// Lines last sent about a subject, while events are doubtful.
    last: HashMap<Subject, Bytes>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shown {
    seq: u64,
    mode: SessionMode,
}

/// What a line that stands for itself speaks of.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Subject {
    Agent(AgentId),
    Usage(SessionKey),
    Blocked(BlockedId),
}

impl Gate {
    /// Notes that the client is shown `snapshot`. It was taken after every event that the client
    /// received so far, so it is never older than these.
    pub(super) fn show(&mut self, snapshot: &Snapshot) {
        let shown = Shown { seq: snapshot.seq, mode: snapshot.mode };
        self.sessions.insert(snapshot.key.clone(), shown);
    }

    /// Notes a line about `subject` that the client is sent out of line.
    pub(super) fn tell(&mut self, subject: Subject, line: Bytes) {
        self.last.insert(subject, line);
    }

    /// Notes that the next `waiting` events were published before or while the client was shown
    /// what it was last shown.
    pub(super) fn doubt(&mut self, waiting: usize) {
        self.doubtful = waiting;
        if waiting == 0 {
            self.last.clear();
        }
    }

    /// Forgets every session but those of `live`; returns the forgotten as empty snapshots, so that
    /// the client can forget them too.
    pub(super) fn retain(&mut self, live: &[Snapshot]) -> Vec<Snapshot> {
        let is_live = |key: &SessionKey| live.iter().any(|snapshot| snapshot.key == *key);
        self.sessions
            .extract_if(|key, _| !is_live(key))
            .filter(|(key, _)| !key.session.as_str().is_empty())
            .map(|(key, shown)| Snapshot {
                key,
                mode: shown.mode,
                seq: shown.seq,
                nodes: Vec::new(),
            })
            .collect()
    }

    /// Judges the next event of the bus, which encodes as `line`.
    pub(super) fn judge(&mut self, event: &Event, line: &Bytes) -> Verdict {
        let doubtful = self.doubtful > 0;
        self.doubtful = self.doubtful.saturating_sub(1);
        let verdict = match event {
            Event::Snapshot(snapshot) => self.judge_snapshot(snapshot, doubtful),
            Event::Delta(delta) => self.judge_delta(&delta.key, delta.seq, doubtful),
            Event::Agent(status) => {
                self.judge_line(Subject::Agent(status.agent.clone()), line, doubtful)
            }
            Event::Usage(report) => {
                self.judge_line(Subject::Usage(report.key.clone()), line, doubtful)
            }
            Event::Blocked(access) => {
                self.judge_line(Subject::Blocked(access.id.clone()), line, doubtful)
            }
            Event::Turn(_) => Verdict::Send,
            Event::SessionUpdate { .. } => Verdict::Drop,
        };
        if self.doubtful == 0 {
            self.last.clear();
        }
        verdict
    }

    fn judge_snapshot(&mut self, snapshot: &Snapshot, doubtful: bool) -> Verdict {
        let new = Shown { seq: snapshot.seq, mode: snapshot.mode };
        match self.sessions.get(&snapshot.key) {
            Some(shown) if doubtful && (new.seq < shown.seq || new == *shown) => Verdict::Drop,
            _ => {
                self.sessions.insert(snapshot.key.clone(), new);
                Verdict::Send
            }
        }
    }

    fn judge_delta(&mut self, key: &SessionKey, seq: u64, doubtful: bool) -> Verdict {
        match self.sessions.get_mut(key) {
            Some(shown) if shown.seq.checked_add(1) == Some(seq) => {
                shown.seq = seq;
                Verdict::Send
            }
            // A session that was not live any more when the snapshots were taken.
            None if doubtful => Verdict::Drop,
            Some(shown) if doubtful && seq <= shown.seq => Verdict::Drop,
            _ => Verdict::Resync,
        }
    }

    fn judge_line(&mut self, subject: Subject, line: &Bytes, doubtful: bool) -> Verdict {
        if !doubtful {
            return Verdict::Send;
        }
        if self.last.get(&subject) == Some(line) {
            return Verdict::Drop;
        }
        self.last.insert(subject, line.clone());
        Verdict::Send
    }
}

#[cfg(test)]
mod tests;
