//! The candidates of a tier that were not tried, as they can be taken now.

use std::io;
use std::time::Duration;

use crate::config::{AgentTier, SharedConfig, TierCandidate};
use crate::failover::told::Failed;
use crate::model::now_ms;
use crate::tiers::{CandidateStanding, Cooldowns, standings};

pub(crate) struct Untried {
    /// Candidates that can be taken now, in order.
    free: Vec<CandidateStanding>,
    /// Candidates before the first of them that can't.
    skipped: Vec<Failed>,
    /// Why not all cool-downs count.
    pub(crate) trouble: Option<io::Error>,
}

impl Untried {
    pub(crate) fn look(
        shared: &SharedConfig,
        tier: &AgentTier,
        kept: &Cooldowns,
        tried: &[Failed],
    ) -> Self {
        let variable = |name: &str| std::env::var(name).ok();
        let (all, trouble) = standings(shared, tier, kept, &variable, now_ms());
        let (mut free, mut skipped) = (Vec::new(), Vec::new());
        let is_new =
            |it: &CandidateStanding| tried.iter().all(|failed| failed.candidate != it.candidate);
        for standing in all.into_iter().filter(is_new) {
            match &standing.hindrance {
                None => free.push(standing),
                Some(_) if !free.is_empty() => {}
                Some(it) => skipped.push(Failed {
                    what: it.what.clone(),
                    again_at: it.until,
                    candidate: standing.candidate,
                }),
            }
        }
        Self { free, skipped, trouble }
    }

    /// The candidate that is taken now, and those before it that can't be.
    pub(crate) fn next(self) -> (Option<CandidateStanding>, Vec<Failed>) {
        (self.free.into_iter().next(), self.skipped)
    }

    /// How long `own` may show no progress before another candidate takes over; None: for ever, as none could.
    pub(crate) fn silence(&self, own: &TierCandidate, longest: Duration) -> Option<Duration> {
        let could = self.free.iter().any(|standing| standing.candidate != *own);
        (could && !longest.is_zero()).then_some(longest)
    }
}
