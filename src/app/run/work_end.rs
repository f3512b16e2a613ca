//! How the turn of a run's agent ended, and which status and exit code that is.

use super::used::Used;
use crate::app::StopSignal;
use crate::client_host::{PromptOutcome, Said};
use crate::runs::RunStatus;

/// Exit codes beside those of `prompt`.
pub(super) const FAILED: u8 = 1;
pub(super) const TIMED_OUT: u8 = 124;
pub(super) const NOT_STARTED: u8 = 125;
pub(super) const INTERRUPTED: u8 = 130;
pub(super) const KILLED: u8 = 137;

/// The end of the turn.
pub(super) struct WorkEnd {
    pub(super) status: RunStatus,
    pub(super) exit_code: u8,
    pub(super) stop_reason: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) background: Vec<String>,
    pub(super) session: Option<String>,
    pub(super) answer: String,
    pub(super) used: Used,
}

impl WorkEnd {
    pub(super) fn new(status: RunStatus, exit_code: u8) -> Self {
        Self {
            status,
            exit_code,
            stop_reason: None,
            reason: None,
            background: Vec::new(),
            session: None,
            answer: String::new(),
            used: Used::default(),
        }
    }

    /// The end of a turn by the agent's own answer.
    pub(super) fn of(outcome: &PromptOutcome) -> Self {
        let answer = outcome.last_message();
        let (status, exit_code, reason) = match &*outcome.stop_reason {
            "end_turn" if outcome.reason.is_some() => (RunStatus::Failed, FAILED, None),
            "end_turn" if answer.is_empty() => {
                (RunStatus::Failed, FAILED, Some("the agent ended its turn without an answer"))
            }
            "end_turn" => (RunStatus::Succeeded, 0, None),
            "max_tokens" => (RunStatus::Failed, 3, None),
            "max_turn_requests" => (RunStatus::Failed, 4, None),
            "refusal" => (RunStatus::Failed, 5, None),
            "cancelled" => (RunStatus::Killed, INTERRUPTED, None),
            _ => (RunStatus::Failed, 6, None),
        };
        let told = outcome.reason.as_deref().or(reason).map(str::to_owned);
        let named = || format!("the turn ended by `{}`", outcome.stop_reason);
        Self {
            reason: told.or_else(|| (status != RunStatus::Succeeded).then(named)),
            session: Some(outcome.session.to_string()),
            answer: answer.to_owned(),
            stop_reason: Some(outcome.stop_reason.clone()),
            ..Self::new(status, exit_code)
        }
    }

    pub(super) fn not_started(why: String) -> Self {
        Self { reason: Some(why), ..Self::new(RunStatus::Failed, NOT_STARTED) }
    }

    pub(super) fn late(said: Said) -> Self {
        let reason = Some("its time is up".to_owned());
        Self { reason, ..Self::new(RunStatus::TimedOut, TIMED_OUT) }.with(said)
    }

    pub(super) fn broken(said: Said, why: String) -> Self {
        Self { reason: Some(why), ..Self::new(RunStatus::Failed, FAILED) }.with(said)
    }

    pub(super) fn stopped(signal: StopSignal) -> Self {
        let (exit_code, reason) = match signal {
            StopSignal::Interrupt => (INTERRUPTED, "it was interrupted"),
            StopSignal::End => (KILLED, "it was ended by a signal"),
        };
        Self { reason: Some(reason.to_owned()), ..Self::new(RunStatus::Killed, exit_code) }
    }

    /// Adds what the agent said before its turn was cut off.
    pub(super) fn with(self, said: Said) -> Self {
        let answer = said.text.get(said.last_message_at..).unwrap_or_default().trim().to_owned();
        Self { session: said.session.map(|session| session.to_string()), answer, ..self }
    }
}
