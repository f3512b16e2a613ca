//! Owns the questions that agents get beside their work, in sessions of their own.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use serde_json::json;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

use super::{Prompt, Refused, Team};
use crate::client_host::Said;
use crate::model::{AgentId, DecidedBy, SessionId};

/// The sessions in which agents are asked beside their work: one for each pair of an agent that is
/// asked and an asker, so that no asker learns what another one asked. Each is of one run.
#[derive(Clone, Default, Debug)]
pub(super) struct SideSessions(Arc<std::sync::Mutex<HashMap<AskedAndAsker, AskedSession>>>);

/// An agent that is asked, and its asker.
type AskedAndAsker = (AgentId, AgentId);

/// Held while the session is opened.
type AskedSession = Arc<Mutex<Option<SessionOfRun>>>;

/// The process of a run, and its session for questions.
type SessionOfRun = (Option<u32>, SessionId);

impl SideSessions {
    /// Returns the session for questions of `asker`; opens one for the agent's run.
    pub(super) async fn session(
        &self,
        team: &dyn Team,
        agent: &AgentId,
        asker: &AgentId,
    ) -> Result<SessionId, Refused> {
        let place = self.place(agent, asker);
        let mut place = place.lock().await;
        let status = team.agents().into_iter().find(|status| status.agent == *agent);
        let pid = status.and_then(|status| status.pid);
        if let Some((_, session)) = place.as_ref().filter(|(of, _)| *of == pid) {
            return Ok(session.clone());
        }
        let session = team.session_beside(agent.clone()).await?;
        *place = Some((pid, session.clone()));
        Ok(session)
    }

    /// Forgets a session that failed: the next question gets another one.
    pub(super) async fn forget(&self, agent: &AgentId, asker: &AgentId, failed: &SessionId) {
        let place = self.place(agent, asker);
        let mut place = place.lock().await;
        if place.as_ref().is_some_and(|(_, session)| session == failed) {
            *place = None;
        }
    }

    fn place(&self, agent: &AgentId, asker: &AgentId) -> AskedSession {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(places.entry((agent.clone(), asker.clone())).or_default())
    }
}

/// Asks an agent in its session for the asker's questions; returns its answer, or why there is none.
pub(super) async fn ask(
    team: &dyn Team,
    beside: &SideSessions,
    agent: &AgentId,
    asker: &AgentId,
    session: SessionId,
    prompt: String,
    withdrawn: CancellationToken,
) -> Result<String, String> {
    let (said, saying) = watch::channel(Said::default());
    let blocks = vec![json!({ "type": "text", "text": prompt })];
    let of = Some(session.clone());
    let by = Some(DecidedBy::Agent(asker.clone()));
    let prompt =
        Prompt { agent: agent.clone(), session: of, blocks, by_orchestrator: false, by, said };
    let turn = team.prompt(prompt);
    // A prompt that was not sent is withdrawn as its future is dropped.
    let Some(outcome) = withdrawn.run_until_cancelled_owned(turn).await else {
        if saying.borrow().session.is_some() {
            // Its turn may have ended in the same moment.
            let _ = team.cancel(agent.clone(), Some(session), false).await;
        }
        return Err("it was withdrawn, since no call waited for the answer".to_owned());
    };
    if outcome.is_err() {
        beside.forget(agent, asker, &session).await;
    }
    match outcome {
        Ok(outcome) if outcome.stop_reason == "end_turn" && outcome.reason.is_none() => {
            Ok(outcome.text.trim().to_owned())
        }
        Ok(outcome) => {
            let why = outcome.reason.map(|reason| reason.to_string());
            Err(format!("its turn ended: {}", why.unwrap_or(outcome.stop_reason)))
        }
        Err(refused) => Err(refused.message),
    }
}
