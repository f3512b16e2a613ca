//! A prompt of the team's own to an agent that has a tier: where a candidate can't work, or is silent for too
//! long, the prompt goes to the next one.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::agent::{AgentError, AgentHandle, Prompt, Silence};
use crate::client_host::{HostError, PromptOutcome};
use crate::failover::moves_on;
use crate::failover::setbacks::{Move, SetBackAt};
use crate::model::{AgentState, AgentStatus, now_ms};
use crate::tiers::Setback;
use crate::turn::command::{SetBack, TeamCommand, request};

/// How often a prompt is sent: to 32 candidates, and to each once more after a hint to wait.
const MOST_ATTEMPTS: usize = 64;

/// How long an agent may take to end its turn after its time is up.
pub(crate) const CANCEL_PATIENCE: Duration = Duration::from_secs(2);

/// Sends a prompt, and again where a candidate could not work.
pub(crate) async fn prompt(
    agent: &AgentHandle,
    changes: &mpsc::Sender<TeamCommand>,
    prompt: Prompt,
) -> Result<PromptOutcome, AgentError> {
    let Prompt { mut session, draft, by_orchestrator, said } = prompt;
    let mut attempts = 1;
    loop {
        let (edition, before) = (agent.edition(), agent.status().candidate);
        let again = Prompt {
            session: session.clone(),
            draft: draft.clone(),
            by_orchestrator,
            said: said.clone(),
        };
        let (turn, silence) = unless_silent(agent, changes, again).await;
        // It was queued when another one took over.
        let is_unsent = said.borrow().session.is_none() && agent.status().candidate != before;
        if is_unsent && matches!(turn, Err(AgentError::Host(HostError::Gone(_)))) {
            session = None;
            ready(agent).await;
            continue;
        }
        let Some((reason, of)) = failure(&turn, silence).filter(|_| attempts < MOST_ATTEMPTS)
        else {
            return turn;
        };
        attempts += 1;
        let status = agent.status();
        let is_setback = Setback::of(&reason, now_ms()).is_some();
        let (Some(edition), Some(_), true) = (edition, &status.candidate, is_setback) else {
            return turn;
        };
        let in_session = of.or_else(|| said.borrow().session.as_ref().map(ToString::to_string));
        let of = SetBackAt::Turn { session: in_session, edition };
        let setback = SetBack { agent: status.agent.clone(), reason, of };
        let change = |reply| TeamCommand::SetBack(Box::new(setback), Some(reply));
        match request(changes, change).await {
            Ok(Move::Moved) => {
                // Those of the one before are gone.
                session = None;
                ready(agent).await;
            }
            Ok(Move::Waits(until)) => {
                let wait = Duration::from_millis(until.saturating_sub(now_ms()));
                tokio::time::sleep(wait).await;
            }
            Ok(Move::Exhausted(why)) => {
                let (agent, state) = (status.agent, AgentState::Error);
                return Err(AgentError::NotReady { agent, state, reason: Some(why) });
            }
            Ok(Move::Stays) | Err(_) => return turn,
        }
    }
}

/// Sends a prompt. Cancels its turn where the agent is silent for so long that another one is to take over;
/// this is returned, too.
async fn unless_silent(
    agent: &AgentHandle,
    changes: &mpsc::Sender<TeamCommand>,
    prompt: Prompt,
) -> (Result<PromptOutcome, AgentError>, Option<String>) {
    let AgentStatus { agent: id, candidate, .. } = agent.status();
    let longest = match candidate {
        Some(_) => request(changes, |reply| TeamCommand::Patience(id, reply)).await,
        None => Ok(None),
    };
    let Ok(Some(longest)) = longest else { return (agent.prompt(prompt).await, None) };
    let said = prompt.said.subscribe();
    let mut turn = pin!(agent.prompt(prompt));
    let silence = tokio::select! {
        biased;
        turn = &mut turn => return (turn, None),
        silence = agent.silent_for(longest) => silence,
    };
    let session = said.borrow().session.clone();
    let end = async {
        let _ = agent.cancel(session, false).await;
        turn.await
    };
    let ended = timeout(CANCEL_PATIENCE, end).await.unwrap_or(Err(AgentError::Stopping));
    // It may have ended by itself meanwhile.
    let is_cut = ended.as_ref().map_or(true, |outcome| outcome.stop_reason == "cancelled");
    (ended, is_cut.then(|| reason_of(&silence)))
}

/// The reason of a turn that was cut after a silence.
pub(crate) fn reason_of(silence: &Silence) -> String {
    match silence {
        Silence::Refused(why) => why.to_string(),
        Silence::Lasted { since_prompt, trouble, time } => {
            Setback::silence(*since_prompt, trouble.as_deref(), *time)
        }
    }
}

/// Why a turn failed, and the session of it, if it is known.
fn failure(
    turn: &Result<PromptOutcome, AgentError>,
    silence: Option<String>,
) -> Option<(String, Option<String>)> {
    if let Some(silence) = silence {
        let session = turn.as_ref().ok().map(|outcome| outcome.session.to_string());
        return Some((silence, session));
    }
    match turn {
        Ok(outcome) => {
            Some((outcome.reason.as_ref()?.to_string(), Some(outcome.session.to_string())))
        }
        // It may say when it may go on, which is no failure.
        Err(AgentError::Host(HostError::Withdrawn | HostError::Budget(_))) => None,
        Err(AgentError::Host(error)) => Some((error.to_string(), None)),
        Err(_) => None,
    }
}

/// Waits until the next candidate is ready. If none becomes so, its prompt says why.
async fn ready(agent: &AgentHandle) {
    let mut status = agent.watch();
    let settled = status.wait_for(|it| match it.state {
        AgentState::Ready | AgentState::Stopped => true,
        AgentState::Error => !moves_on(it),
        _ => false,
    });
    let _ = settled.await;
}
