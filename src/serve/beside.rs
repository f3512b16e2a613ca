//! Owns the sessions in which agents get questions beside their work.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::{Refused, Team};
use crate::model::{AgentId, SessionId};

/// The sessions for questions to agents beside their work, each of one run of an agent.
#[derive(Clone, Default, Debug)]
pub(super) struct Beside(Arc<Mutex<HashMap<AgentId, SessionOfRun>>>);

/// The process of a run, and its session for questions.
type SessionOfRun = (Option<u32>, SessionId);

impl Beside {
    /// Returns the agent's session for questions; opens one for its run.
    pub(super) async fn session(
        &self,
        team: &dyn Team,
        agent: &AgentId,
    ) -> Result<SessionId, Refused> {
        let status = team.agents().into_iter().find(|status| status.agent == *agent);
        let pid = status.and_then(|status| status.pid);
        let known = self.0.lock().await.get(agent).filter(|(of, _)| *of == pid).cloned();
        if let Some((_, session)) = known {
            return Ok(session);
        }
        let session = team.new_session(agent.clone()).await?;
        self.0.lock().await.insert(agent.clone(), (pid, session.clone()));
        Ok(session)
    }
}
