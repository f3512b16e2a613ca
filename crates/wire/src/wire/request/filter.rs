//! Owns what passes the filter by which a client chooses its part of the stream. Pure.

use super::Filter;
use crate::model::{BlockedAccess, Event, Overlap, Relayed, SessionKey, SessionMode};

impl Filter {
    pub fn passes(&self, event: &Event) -> bool {
        match event {
            Event::Snapshot(snapshot) => self.covers(&snapshot.key, snapshot.mode),
            Event::Delta(delta) => self.covers(&delta.key, delta.mode),
            Event::Usage(report) => self.covers(&report.key, report.mode),
            Event::Loop(report) => self.covers(&report.key, report.mode),
            Event::Turn(turn) => self.covers(&turn.key, turn.mode),
            Event::SessionUpdate { key, mode, .. } => self.covers(key, *mode),
            Event::Overlap(overlap) => self.covers_overlap(overlap),
            Event::Blocked(access) => self.covers_blocked(access),
            Event::Agent(_)
            | Event::Chosen(_)
            | Event::Budget(_)
            | Event::Conflict(_)
            | Event::Graph(_)
            | Event::GraphDelta(_)
            | Event::Task(_)
            | Event::Report(_)
            | Event::Stream(_) => true,
            Event::Relayed(relayed) => self.covers_relayed(relayed),
            Event::Record { .. } => false,
        }
    }

    /// Whether a session in `mode` passes.
    pub fn covers(&self, key: &SessionKey, mode: SessionMode) -> bool {
        match self {
            Self::All => true,
            Self::Session(session) => *session == key.session,
            Self::Mode(wanted) => *wanted == mode,
        }
    }

    /// An overlap concerns both sessions, whose modes may differ.
    fn covers_overlap(&self, overlap: &Overlap) -> bool {
        match self {
            Self::All | Self::Mode(_) => true,
            Self::Session(session) => overlap.between.iter().any(|key| key.session == *session),
        }
    }

    pub fn covers_relayed(&self, relayed: &Relayed) -> bool {
        relayed.session.as_ref().is_none_or(|(key, mode)| self.covers(key, *mode))
    }

    /// A blocked access concerns the session that tried it and the orchestrator, which receives all
    /// even while its session is closed.
    pub fn covers_blocked(&self, access: &BlockedAccess) -> bool {
        let decides = |key: &SessionKey| self.covers(key, SessionMode::Orchestrator);
        self.covers(&access.key, access.mode)
            || access.orchestrator.as_ref().is_some_and(decides)
            || *self == Self::Mode(SessionMode::Orchestrator)
    }
}
