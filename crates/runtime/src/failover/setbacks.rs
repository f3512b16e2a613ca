//! The set-backs of an agent that has a tier, since it worked: when another candidate takes over. Starts nothing.

use std::time::Duration;

use crate::failover::told::{Failed, none_left};
use crate::failover::wait_of;
use crate::model::{AgentState, AgentStatus, TimestampMs, now_ms};
use crate::tiers::Setback;

/// Where it was set back.
#[derive(Clone, Debug)]
pub(crate) enum SetBackAt {
    /// In a turn: the session, and the edition of the run's settings.
    Turn { session: Option<String>, edition: u64 },
    /// At its start: when it came to rest.
    Start(TimestampMs),
}

/// The outcome of a set-back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Move {
    /// Another candidate would do no better.
    Stays,
    /// Its vendor says to wait for so short that this is waited out.
    Waits(TimestampMs),
    /// Another candidate takes over.
    Moved,
    /// No candidate is left, and why.
    Exhausted(String),
}

/// The set-backs of an agent since it worked.
#[derive(Default)]
pub(crate) struct Setbacks {
    /// Since this edition it has its candidate.
    since: u64,
    /// A hint to wait that is waited out.
    waits_until: Option<TimestampMs>,
    /// Each is tried once.
    failed: Vec<Failed>,
    /// Why none can work.
    exhausted: Option<String>,
}

impl Setbacks {
    /// The outcome of a set-back after which the agent keeps its candidate; None: another one is to take over.
    pub(crate) fn stays(
        &mut self,
        at: &SetBackAt,
        status: &AgentStatus,
        setback: &Setback,
        patience: Duration,
    ) -> Option<Move> {
        match at {
            // It was another candidate's, of which was heard before.
            SetBackAt::Turn { edition, .. } if *edition < self.since => Some(Move::Moved),
            SetBackAt::Turn { .. } => {
                if let Some(why) = &self.exhausted
                    && status.state != AgentState::Ready
                {
                    return Some(Move::Exhausted(why.clone()));
                }
                let until = waits(self.waits_until, setback, patience, now_ms())?;
                self.waits_until = Some(until);
                Some(Move::Waits(until))
            }
            SetBackAt::Start(at) => {
                let is_over = status.state != AgentState::Error || status.timestamp_ms != *at;
                is_over.then_some(Move::Stays)
            }
        }
    }

    /// Its candidate could not work.
    pub(crate) fn fell_back(&mut self, failed: Failed) {
        (self.waits_until, self.exhausted) = (None, None);
        self.failed.push(failed);
    }

    /// The candidates that were tried.
    pub(crate) fn tried(&self) -> &[Failed] {
        &self.failed
    }

    /// No candidate can work; returns why. All may be tried anew.
    pub(crate) fn exhaust(&mut self, tier: &str, skipped: &[Failed]) -> String {
        let failed = std::mem::take(&mut self.failed);
        let why = none_left(tier, &failed.iter().chain(skipped).collect::<Vec<_>>());
        self.exhausted = Some(why.clone());
        why
    }

    /// The agent works: its candidates may be tried anew.
    pub(crate) fn works(&mut self) {
        *self = Self { since: self.since, ..Self::default() };
    }

    /// The agent has another candidate, since this edition.
    pub(crate) fn moved(&mut self, edition: u64) {
        self.since = edition;
    }
}

/// Until when a short hint to wait is waited out: once, before the next candidate is taken.
fn waits(
    known: Option<TimestampMs>,
    setback: &Setback,
    patience: Duration,
    now: TimestampMs,
) -> Option<TimestampMs> {
    match known {
        // Another session heard of it, too.
        Some(until) if now < until => Some(until),
        // It was waited for, and did not help.
        Some(_) => None,
        None => setback.wait(now, patience).map(|wait| now + wait_of(wait)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_hint_is_waited_out_once() {
        let (now, patience) = (1_760_000_000_000, Duration::from_secs(60));
        let of = |reason| Setback::of(reason, now).unwrap_or_else(Setback::not_installed);
        let short = of("429 Too Many Requests, retry after 20 s");
        let until = now + 20_000;
        assert_eq!(waits(None, &short, patience, now), Some(until));
        assert_eq!(waits(Some(until), &short, patience, now + 1), Some(until));
        assert_eq!(waits(Some(until), &short, patience, until), None);
        assert_eq!(waits(None, &of("429, retry after 61 s"), patience, now), None);
        assert_eq!(waits(None, &of("insufficient credit"), patience, now), None);
    }
}
