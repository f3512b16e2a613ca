//! Owns what passes the filter by which a client chooses its part of the stream. Pure.

use crate::model::{BlockedAccess, Event, Overlap, Relayed, SessionKey, SessionMode};
use crate::wire::request::Filter;

impl Filter {
    pub(super) fn passes(&self, event: &Event) -> bool {
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
    pub(super) fn covers(&self, key: &SessionKey, mode: SessionMode) -> bool {
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

    pub(super) fn covers_relayed(&self, relayed: &Relayed) -> bool {
        relayed.session.as_ref().is_none_or(|(key, mode)| self.covers(key, *mode))
    }

    /// A blocked access concerns the session that tried it and the orchestrator, which receives all
    /// even while its session is closed.
    pub(super) fn covers_blocked(&self, access: &BlockedAccess) -> bool {
        let decides = |key: &SessionKey| self.covers(key, SessionMode::Orchestrator);
        self.covers(&access.key, access.mode)
            || access.orchestrator.as_ref().is_some_and(decides)
            || *self == Self::Mode(SessionMode::Orchestrator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BlockedStatus, SessionId, UsageReport};
    use crate::serve::tests::samples::{self, key};

    fn session(name: &str) -> Filter {
        Filter::Session(SessionId::new(name))
    }

    #[test]
    fn each_kind_has_its_own_rule() {
        let (single, orchestrator) =
            (Filter::Mode(SessionMode::SingleAgent), Filter::Mode(SessionMode::Orchestrator));
        let lead = UsageReport {
            key: key("lead", "s-lead"),
            mode: SessionMode::Orchestrator,
            ..samples::usage()
        };
        let (ui, s_lead, other) = (session("s-ui"), session("s-lead"), session("s-x"));
        let filters = [&Filter::All, &ui, &s_lead, &other, &single, &orchestrator];
        let unrouted =
            BlockedAccess { orchestrator: None, ..samples::blocked(BlockedStatus::Denied) };
        for (event, passes) in [
            (Event::Snapshot(samples::snapshot()), "10100 1"),
            (Event::Delta(samples::delta()), "1100 10"),
            (Event::Usage(samples::usage()), "1100 10"),
            (Event::Usage(lead), "10100 1"),
            (Event::Turn(samples::turn(None)), "1100 10"),
            (Event::Loop(samples::looped()), "1100 10"),
            (samples::update(), "1100 10"),
            (Event::Overlap(samples::overlap()), "1100 11"),
            (Event::Blocked(samples::blocked(BlockedStatus::Pending)), "1110 11"),
            (Event::Blocked(unrouted), "1100 11"),
            (Event::Agent(samples::agent("ui")), "1111 11"),
            (Event::Budget(samples::budget()), "1111 11"),
        ] {
            let passed = filters.map(|filter| if filter.passes(&event) { '1' } else { '0' });
            assert_eq!(passed.iter().collect::<String>(), passes.replace(' ', ""), "{event:?}");
        }
    }
}
