//! Owns the sessions in which agents get questions beside their work.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use tokio::sync::Mutex;

use super::{Refused, Team};
use crate::model::{AgentId, SessionId};

/// The sessions in which agents are asked beside their work: one for each pair of an agent that is
/// asked and an asker, so that no asker learns what another one asked. Each is of one run.
#[derive(Clone, Default, Debug)]
pub(super) struct Beside(Arc<std::sync::Mutex<HashMap<AskedAndAsker, AskedSession>>>);

/// An agent that is asked, and its asker.
type AskedAndAsker = (AgentId, AgentId);

/// Held while the session is opened.
type AskedSession = Arc<Mutex<Option<SessionOfRun>>>;

/// The process of a run, and its session for questions.
type SessionOfRun = (Option<u32>, SessionId);

impl Beside {
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
