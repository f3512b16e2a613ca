//! The one turn of a run: prompts its agent, and turns the end of the turn into that of the run.

mod background;
pub(crate) mod command;
pub(crate) mod details;
pub(crate) mod nested;
pub(crate) mod progress;
pub(crate) mod request;
pub(crate) mod retries;
pub(crate) mod schema;

use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use self::background::Processes;
pub use self::progress::RunProgress;
use self::progress::follow;
use self::request::RunRequest;
use crate::agent::{AgentError, AgentHandle, Silence};
use crate::client_host::{PromptOutcome, Said};
use crate::failover::moves_on;
use crate::model::{AgentId, AgentState, SessionId, TokenKind, now_ms};
use crate::program::{Failure, StopSignal};
use crate::runs::{RefusedAccess, RunFolder, RunState, RunStatus};
use crate::supervisor::Roster;
use crate::tiers::Setback;
use crate::tracker::TrackerHandle;
use crate::turn::retries::{CANCEL_PATIENCE, reason_of};

/// Bytes of a reason, and of the id of a session, in the state of a run: they are the agent's words.
const LONGEST_WORD: usize = 4096;

/// Exit codes beside those of `prompt`.
pub(crate) const FAILED: u8 = 1;
/// With `--strict-exit`: the turn ended well, and something that the agent meant to do was refused.
pub(crate) const REFUSED: u8 = 7;
pub(crate) const TIMED_OUT: u8 = 124;
pub(crate) const NOT_STARTED: u8 = 125;
pub(crate) const INTERRUPTED: u8 = 130;
pub(crate) const KILLED: u8 = 137;

/// The end of the turn.
pub(crate) struct WorkEnd {
    pub(crate) status: RunStatus,
    pub(crate) exit_code: u8,
    pub(crate) stop_reason: Option<String>,
    pub(crate) reason: Option<String>,
    /// The processes that its agent left behind.
    pub(crate) background: Vec<String>,
    pub(crate) session: Option<String>,
    pub(crate) answer: String,
    pub(crate) used: Used,
    /// Its prompt was sent.
    pub(crate) began: bool,
    /// The accesses that were refused in its turn.
    pub(crate) refused: Vec<RefusedAccess>,
}

/// The agent's usage.
#[derive(Default)]
pub(crate) struct Used {
    pub(crate) tokens: Option<u64>,
    /// `tokens` is estimated, at least in part.
    pub(crate) tokens_estimated: bool,
    pub(crate) cost: BTreeMap<String, f64>,
    pub(crate) peak_memory_bytes: Option<u64>,
}

/// Why a turn is cut off.
enum CutOff {
    Late,
    Silent(Silence),
}

/// Prompts the agent once it is ready. The turn is cut off at its deadline, and after a silence that is
/// longer than is allowed.
pub(crate) async fn one_turn(
    handle: &AgentHandle,
    request: &RunRequest,
    session: Option<SessionId>,
    text: &str,
    sender: watch::Sender<Said>,
    deadline: Option<Instant>,
    silence: Option<Duration>,
) -> WorkEnd {
    let before = OnceLock::new();
    let said = sender.subscribe();
    let turn = async {
        ready(handle).await?;
        tokio::select! {
            outcome = request.take(handle, session, text, sender, &before) => outcome,
            never = follow(said.clone(), &request.progress) => match never {},
        }
    };
    let (outcome, silent) = tokio::select! {
        biased;
        outcome = turn => (outcome, None),
        why = cut_off(handle, deadline, silence) => {
            let _ = timeout(CANCEL_PATIENCE, handle.cancel(None, true)).await;
            let silent = match why {
                CutOff::Late => None,
                CutOff::Silent(silence) => Some(reason_of(&silence)),
            };
            (Ok(Err(AgentError::Stopping)), silent)
        }
    };
    let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let said = said.borrow().clone();
    let began = said.session.is_some();
    let end = match outcome {
        Err(why) => WorkEnd::not_started(why),
        Ok(_) if is_late => WorkEnd::late(said),
        Ok(Err(error)) => WorkEnd::broken(said, silent.unwrap_or_else(|| error.to_string())),
        Ok(Ok(outcome)) => WorkEnd::of(&outcome),
    };
    let background = match before.into_inner() {
        Some(before) => Processes::left_behind(before, handle).await,
        None => Vec::new(),
    };
    WorkEnd { background, began, ..end }
}

/// Returns when and why the turn is to be cut off.
async fn cut_off(
    handle: &AgentHandle,
    deadline: Option<Instant>,
    silence: Option<Duration>,
) -> CutOff {
    let late = async {
        match deadline {
            Some(deadline) => sleep_until(deadline).await,
            None => pending().await,
        }
    };
    let silent = async {
        let Some(after) = silence else { return pending().await };
        if ready(handle).await.is_err() {
            return pending().await;
        }
        CutOff::Silent(handle.silent_for(after).await)
    };
    tokio::select! {
        () = late => CutOff::Late,
        why = silent => why,
    }
}

/// Waits until an agent is ready; an error says why it does not become so.
async fn ready(agent: &AgentHandle) -> Result<(), String> {
    let mut status = agent.watch();
    let settled = status.wait_for(|status| {
        status.state == AgentState::Ready || (status.state.is_at_rest() && !moves_on(status))
    });
    match settled.await.map(|status| status.clone()) {
        Ok(status) if status.state == AgentState::Ready => Ok(()),
        Ok(status) => Err(status.reason.unwrap_or_else(|| "the agent ended".to_owned())),
        Err(_) => Err("the agent is gone".to_owned()),
    }
}

impl Used {
    /// Adds what another agent used before or after.
    pub(crate) fn add(&mut self, other: Self) {
        self.tokens = self.tokens.into_iter().chain(other.tokens).reduce(u64::saturating_add);
        self.tokens_estimated |= other.tokens_estimated;
        self.peak_memory_bytes = self.peak_memory_bytes.max(other.peak_memory_bytes);
        for (currency, cost) in other.cost {
            *self.cost.entry(currency).or_default() += cost;
        }
    }
}

/// The turn of a helper.
pub(crate) async fn helper_turn(
    roster: &Roster,
    tracker: &TrackerHandle,
    agent: &AgentId,
    request: &RunRequest,
    prompt: &str,
    deadline: Option<Instant>,
) -> WorkEnd {
    let Some(handle) = roster.get(agent) else {
        return WorkEnd::not_started("the agent is gone".to_owned());
    };
    let said = watch::Sender::default();
    let mut end = one_turn(&handle, request, None, prompt, said, deadline, None).await;
    end.used = used(roster, tracker, agent).await;
    end
}

pub(crate) async fn used(roster: &Roster, tracker: &TrackerHandle, agent: &AgentId) -> Used {
    let details = details::of_supervised(roster.handles(), tracker).await;
    let Some(own) = details.iter().find(|it| it.status.agent == *agent) else {
        return Used::default();
    };
    let mut used = Used { peak_memory_bytes: own.peak_memory_bytes, ..Used::default() };
    for session in &own.sessions {
        let total = session.spent.tokens.get(TokenKind::Total);
        used.tokens = used.tokens.into_iter().chain(total.known).reduce(u64::saturating_add);
        used.tokens_estimated |= total.is_estimated;
        for (currency, cost) in &session.spent.cost {
            *used.cost.entry(currency.to_string()).or_default() += cost;
        }
    }
    used
}

impl WorkEnd {
    pub(crate) fn new(status: RunStatus, exit_code: u8) -> Self {
        Self {
            status,
            exit_code,
            stop_reason: None,
            reason: None,
            background: Vec::new(),
            session: None,
            answer: String::new(),
            used: Used::default(),
            began: false,
            refused: Vec::new(),
        }
    }

    /// Why another agent might do better.
    pub(crate) fn setback(&self) -> Option<Setback> {
        let reason = self.reason.as_ref().filter(|_| self.status == RunStatus::Failed);
        Setback::of(reason?, now_ms())
    }

    /// The end of a turn by the agent's own answer.
    fn of(outcome: &PromptOutcome) -> Self {
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
            refused: RefusedAccess::of_turn(&outcome.refused),
            answer: answer.to_owned(),
            stop_reason: Some(outcome.stop_reason.clone()),
            ..Self::new(status, exit_code)
        }
    }

    pub(crate) fn not_started(why: String) -> Self {
        Self { reason: Some(why), ..Self::new(RunStatus::Failed, NOT_STARTED) }
    }

    /// The end of a run that was ended for a reason, unless its turn came to its own end before.
    pub(crate) fn ended_by(self, reason: String) -> Self {
        let is_cut_off = self.stop_reason.as_deref().is_none_or(|reason| reason == "cancelled");
        if !is_cut_off || self.status == RunStatus::TimedOut {
            return self;
        }
        Self { status: RunStatus::Killed, exit_code: KILLED, reason: Some(reason), ..self }
    }

    pub(crate) fn late(said: Said) -> Self {
        let reason = Some("its time is up".to_owned());
        Self { reason, ..Self::new(RunStatus::TimedOut, TIMED_OUT) }.with(said)
    }

    fn broken(said: Said, why: String) -> Self {
        Self { reason: Some(why), ..Self::new(RunStatus::Failed, FAILED) }.with(said)
    }

    pub(crate) fn stopped(signal: StopSignal) -> Self {
        let (exit_code, reason) = match signal {
            StopSignal::Interrupt => (INTERRUPTED, "it was interrupted"),
            StopSignal::End => (KILLED, "it was ended by a signal"),
        };
        Self { reason: Some(reason.to_owned()), ..Self::new(RunStatus::Killed, exit_code) }
    }

    /// Adds what the agent said before its turn was cut off.
    pub(crate) fn with(self, said: Said) -> Self {
        let answer = said.text.get(said.last_message_at..).unwrap_or_default().trim().to_owned();
        Self { session: said.session.map(|session| session.to_string()), answer, ..self }
    }
}

/// Keeps the final state of a run, whose answer was kept. Returns the answer and the reason of the stop.
pub(crate) fn settle(
    folder: &RunFolder,
    state: &mut RunState,
    mut end: WorkEnd,
    answer_kept: io::Result<()>,
) -> Result<(String, Option<String>), Failure> {
    if let Err(error) = answer_kept {
        end.status = RunStatus::Failed;
        end.exit_code = FAILED;
        end.reason = Some(format!("the answer can't be kept: {error}"));
    }
    let is_short = state.strict_exit && end.refused.iter().any(|access| access.stops_work);
    if is_short && end.status == RunStatus::Succeeded {
        end.exit_code = REFUSED;
    }
    state.status = end.status;
    state.exit_code = Some(end.exit_code);
    state.reason = end.reason.map(clipped);
    state.background = end.background;
    state.blocked = end.refused;
    state.waits_for = None;
    state.session_id = end.session.map(clipped);
    state.ended_at_ms = Some(now_ms());
    state.peak_memory_bytes = end.used.peak_memory_bytes;
    state.tokens = end.used.tokens;
    state.tokens_estimated = end.used.tokens_estimated;
    state.cost = end.used.cost;
    keep(folder, state)?;
    Ok((end.answer, end.stop_reason))
}

/// Cuts what an agent says of itself.
pub(crate) fn clipped(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(LONGEST_WORD));
    text
}

pub(crate) fn keep(folder: &RunFolder, state: &RunState) -> Result<(), Failure> {
    folder.keep(state).context("cannot keep the state of the run").map_err(Failure::Run)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::SessionId;

    fn end(stop_reason: &str, text: &str, reason: Option<&str>) -> WorkEnd {
        WorkEnd::of(&PromptOutcome {
            session: SessionId::new("s"),
            stop_reason: stop_reason.to_owned(),
            reason: reason.map(Arc::from),
            text: text.to_owned(),
            last_message_at: 0,
            blocked: Vec::new(),
            refused: Vec::new(),
        })
    }

    #[test]
    fn who_is_ended_by_somebody_is_killed_unless_it_had_ended_by_itself() {
        let ended = |end: WorkEnd| {
            let end = end.ended_by("it was ended".to_owned());
            (end.status, end.exit_code)
        };
        let killed = (RunStatus::Killed, KILLED);
        assert_eq!(ended(end("end_turn", "done", None)), (RunStatus::Succeeded, 0));
        assert_eq!(ended(end("end_turn", " ", None)), (RunStatus::Failed, FAILED));
        assert_eq!(ended(end("refusal", "no", None)), (RunStatus::Failed, 5));
        assert_eq!(ended(end("cancelled", "so far", None)), killed);
        assert_eq!(ended(WorkEnd::not_started("it was stopped".to_owned())), killed);
        let said = || Said { text: "so far".to_owned(), ..Said::default() };
        assert_eq!(ended(WorkEnd::broken(said(), "it is gone".to_owned())), killed);
        assert_eq!(ended(WorkEnd::late(said())), (RunStatus::TimedOut, TIMED_OUT));
        let cut_off = WorkEnd::broken(said(), "it is gone".to_owned()).ended_by("why".to_owned());
        assert_eq!((cut_off.reason.as_deref(), &*cut_off.answer), (Some("why"), "so far"));
    }
}
