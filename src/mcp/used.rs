//! The use of the tools by agents' clients: whether they connected, listed tools, called one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

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
pub struct ToolUses(Arc<Mutex<HashMap<AgentId, ToolUse>>>);

/// Records the use on one connection. Dropping it records the connection's end.
#[derive(Debug)]
pub struct ToolConnection {
    uses: ToolUses,
    /// None: a client that is no agent.
    agent: Option<AgentId>,
}

impl ToolUses {
    pub fn of(&self, agent: &AgentId) -> ToolUse {
        self.all(|all| all.get(agent).copied().unwrap_or_default())
    }

    /// Records a new connection.
    pub fn connect(&self, agent: Option<AgentId>) -> ToolConnection {
        if let Some(agent) = &agent {
            self.all(|all| {
                let used = all.entry(agent.clone()).or_default();
                if used.connections == 0 {
                    *used = ToolUse::default();
                }
                used.connections += 1;
            });
        }
        ToolConnection { uses: self.clone(), agent }
    }

    fn all<T>(&self, change: impl FnOnce(&mut HashMap<AgentId, ToolUse>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ToolConnection {
    pub(super) fn listed(&self) {
        self.change(|used| used.listed = true);
    }

    pub(super) fn called(&self) {
        self.change(|used| used.calls += 1);
    }

    fn change(&self, change: impl FnOnce(&mut ToolUse)) {
        if let Some(agent) = &self.agent {
            self.uses.all(|all| all.get_mut(agent).map(change));
        }
    }
}

impl Drop for ToolConnection {
    fn drop(&mut self) {
        self.change(|used| used.connections = used.connections.saturating_sub(1));
    }
}
