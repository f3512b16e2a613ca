//! The use of the tools by agents' clients: whether they connected, listed tools, called one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use crate::model::AgentId;

/// The use of the tools by an agent's client, since the first of its connections that are open, or
/// were open last.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ToolUse {
    /// Connections that are open.
    pub connections: usize,
    /// Whether the tools were listed.
    pub listed: bool,
    pub calls: u64,
}

/// The use of the tools by all agents of a team; cheap to clone.
#[derive(Clone, Default, Debug)]
pub struct ToolUses(Arc<Uses>);

#[derive(Default, Debug)]
struct Uses {
    /// The agents are those that had a token.
    agents: Mutex<HashMap<AgentId, [ToolUse; 2]>>,
    changed: Notify,
}

/// Records the use on one connection. Dropping it records the connection's end.
#[derive(Debug)]
pub struct ToolConnection {
    uses: ToolUses,
    /// None: a client that is no agent.
    agent: Option<AgentId>,
}

/// The places of the use now, and since the start of the team.
const NOW: usize = 0;
const IN_RUN: usize = 1;

impl ToolUses {
    pub fn of(&self, agent: &AgentId) -> ToolUse {
        self.all(|all| all.get(agent).map(|of| of[NOW]).unwrap_or_default())
    }

    /// The use since the start of the team, with all connections that there were.
    pub fn in_run(&self) -> Vec<(AgentId, ToolUse)> {
        self.all(|all| all.iter().map(|(agent, of)| (agent.clone(), of[IN_RUN])).collect())
    }

    /// Waits until there was a use that the last call has not told.
    pub async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Records a new connection.
    pub fn connect(&self, agent: Option<AgentId>) -> ToolConnection {
        if let Some(agent) = &agent {
            self.all(|all| {
                let [now, in_run] = all.entry(agent.clone()).or_default();
                if now.connections == 0 {
                    *now = ToolUse::default();
                }
                now.connections += 1;
                in_run.connections += 1;
            });
            self.0.changed.notify_one();
        }
        ToolConnection { uses: self.clone(), agent }
    }

    fn all<T>(&self, change: impl FnOnce(&mut HashMap<AgentId, [ToolUse; 2]>) -> T) -> T {
        change(&mut self.0.agents.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ToolConnection {
    pub(super) fn listed(&self) {
        self.change(|of| of.iter_mut().for_each(|used| used.listed = true));
    }

    pub(super) fn called(&self) {
        self.change(|of| of.iter_mut().for_each(|used| used.calls += 1));
    }

    fn change(&self, change: impl FnOnce(&mut [ToolUse; 2])) {
        if let Some(agent) = &self.agent {
            self.uses.all(|all| all.get_mut(agent).map(change));
            self.uses.0.changed.notify_one();
        }
    }
}

impl Drop for ToolConnection {
    fn drop(&mut self) {
        self.change(|[now, _]| now.connections = now.connections.saturating_sub(1));
    }
}
