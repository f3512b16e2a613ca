//! The hint with the next command to type, shown once all agents have settled. Pure.

use std::collections::HashMap;

use crate::config::Config;
use crate::model::{AgentId, AgentState};

/// Waits until each autostarted agent is ready, has ended the turn of its configured prompt, or has
/// failed.
pub(super) struct Next {
    /// Agents that have not settled, and whether a turn is expected of them.
    waiting: HashMap<AgentId, bool>,
    /// Agents for the example prompt, the best first, and whether each was ready.
    examples: Vec<(AgentId, bool)>,
    detached: bool,
    shown: bool,
}

impl Next {
    pub(super) fn new(config: &Config, detached: bool) -> Self {
        let agents = || config.agents.iter().filter(|agent| agent.autostart);
        let waiting = agents().map(|agent| (agent.id.clone(), agent.prompt.is_some())).collect();
        let mut examples: Vec<_> = agents().map(|agent| (agent.id.clone(), false)).collect();
        // The orchestrator is the last choice for a prompt.
        examples.sort_by_key(|(id, _)| config.orchestrator.agent.as_ref() == Some(id));
        Self { waiting, examples, detached, shown: false }
    }

    /// Adds a state; returns the agent to name in the hint, if it is due.
    pub(super) fn agent(&mut self, agent: &AgentId, state: AgentState) -> Option<AgentId> {
        let settled = match state {
            AgentState::Ready => {
                self.examples.iter_mut().filter(|(id, _)| id == agent).for_each(|it| it.1 = true);
                self.waiting.get(agent) == Some(&false)
            }
            AgentState::Error | AgentState::Stopped => true,
            _ => false,
        };
        if settled {
            self.waiting.remove(agent);
        }
        self.due()
    }

    /// Adds the end of a turn, which may arrive before its agent's state `ready`.
    pub(super) fn turn(&mut self, agent: &AgentId) -> Option<AgentId> {
        self.waiting.remove(agent);
        self.due()
    }

    pub(super) fn text(&self, program: &str, agent: &AgentId) -> String {
        let stop = if self.detached { "down" } else { "Ctrl-C" };
        format!(
            "next: {program} agent watch, or ps, inbox, prompt {agent} \"…\"; {stop} stops the team"
        )
    }

    /// The agent to name in the hint, once: when all have settled and one is ready.
    fn due(&mut self) -> Option<AgentId> {
        let ready = self.examples.iter().position(|(_, ready)| *ready)?;
        if self.shown || !self.waiting.is_empty() {
            return None;
        }
        self.shown = true;
        Some(self.examples[ready].0.clone())
    }
}
