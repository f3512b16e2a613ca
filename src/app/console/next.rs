//! What a user may type once the agents have done what they were configured to. Pure.

use std::collections::HashMap;

use crate::config::Config;
use crate::model::{AgentId, AgentState};

/// Waits until each agent that starts by itself is ready, or has ended the turn of its configured
/// prompt, or can't come to either.
pub(in crate::app) struct Next {
    /// Those that are waited for, and whether for a turn.
    waiting: HashMap<AgentId, bool>,
    /// Whom an example may prompt, the best first, and whether that agent was ready.
    examples: Vec<(AgentId, bool)>,
    detached: bool,
    said: bool,
}

impl Next {
    pub(super) fn new(config: &Config, detached: bool) -> Self {
        let agents = || config.agents.iter().filter(|agent| agent.autostart);
        let waiting = agents().map(|agent| (agent.id.clone(), agent.prompt.is_some())).collect();
        let mut examples: Vec<_> = agents().map(|agent| (agent.id.clone(), false)).collect();
        // Who decides is rarely whom one wants to prompt.
        examples.sort_by_key(|(id, _)| config.orchestrator.agent.as_ref() == Some(id));
        Self { waiting, examples, detached, said: false }
    }

    /// Takes in a state; returns whom the hint is to name if it is due.
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

    /// Takes in the end of a turn, which may come before the word that its agent is ready.
    pub(super) fn turn(&mut self, agent: &AgentId) -> Option<AgentId> {
        self.waiting.remove(agent);
        self.due()
    }

    pub(super) fn text(&self, program: &str, agent: &AgentId) -> String {
        let stop = if self.detached { "down" } else { "Ctrl-C" };
        format!(
            "next: {program} watch, or ps, blocked, prompt {agent} \"…\"; {stop} stops the team"
        )
    }

    /// Whom the hint names, once: when nobody is waited for, and one is ready.
    fn due(&mut self) -> Option<AgentId> {
        // Without one that is ready there is nobody to prompt.
        let ready = self.examples.iter().position(|(_, ready)| *ready)?;
        if self.said || !self.waiting.is_empty() {
            return None;
        }
        self.said = true;
        Some(self.examples[ready].0.clone())
    }
}
