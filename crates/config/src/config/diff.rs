//! Compares a changed configuration with a running team: which keys take effect when. Pure.

mod keys;

use super::{Agent, Config, Conflicts, Orchestrator, Team, streams};
use crate::model::AgentId;
use keys::TERMINALS;
#[cfg(test)]
pub(super) use keys::keys;
pub(super) use keys::{AGENT, TEAM};

/// How a running team changes to another configuration.
#[derive(Debug)]
pub struct Plan {
    /// Changes that take effect now.
    pub applied: Vec<ConfigChange>,
    /// Changes that wait for a restart, new and earlier ones.
    pub needs_restart: Vec<ConfigChange>,
    /// The configuration to follow from now on; None: no change.
    pub config: Option<Config>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigChange {
    /// None: a key of the team.
    pub agent: Option<AgentId>,
    /// As in the file: `zone.allowed` for an agent's table, otherwise `team.listen`; `agents` for
    /// an agent that was added or removed.
    pub key: &'static str,
    pub kind: ChangeKind,
    pub takes: Takes,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChangeKind {
    Added,
    Removed,
    Changed,
}

/// When a running team applies a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    AtOnce,
    /// At the agent's next start.
    AtAgentStart,
    /// At the team's next start.
    AtTeamStart,
}

impl Plan {
    /// Compares a team's current configuration with a new one. `running` has, for each running
    /// agent, the settings of its start.
    pub fn new<'a>(
        current: &Config,
        new: &Config,
        running: impl Fn(&AgentId) -> Option<&'a Agent>,
    ) -> Self {
        let mut plan = Self { applied: Vec::new(), needs_restart: Vec::new(), config: None };
        for change in team_changes(current, new) {
            plan.push(change);
        }
        for agent in &new.agents {
            let Some(old) = current.agent(&agent.id) else {
                plan.push(ConfigChange::of(agent, "agents", ChangeKind::Added, Takes::AtOnce));
                continue;
            };
            let waiting = running(&agent.id).map(|running| agent_changes(running, agent));
            let waiting: Vec<_> =
                waiting.unwrap_or_default().into_iter().filter(ConfigChange::waits).collect();
            for change in agent_changes(old, agent) {
                if !waiting.contains(&change) {
                    plan.push(ConfigChange { takes: Takes::AtOnce, ..change });
                }
            }
            plan.needs_restart.extend(waiting);
        }
        for agent in current.agents.iter().filter(|agent| new.agent(&agent.id).is_none()) {
            // The orchestrator stays the same while the team runs.
            let stays = current.orchestrator.agent.as_ref() == Some(&agent.id);
            let takes = if stays { Takes::AtTeamStart } else { Takes::AtOnce };
            plan.push(ConfigChange::of(agent, "agents", ChangeKind::Removed, takes));
        }
        if current.team.workspace != new.team.workspace {
            // Paths and zones mean other files there, so nothing can be applied without the rest.
            let Self { applied, needs_restart, .. } = plan;
            let all = needs_restart.into_iter().chain(applied);
            let needs_restart =
                all.map(|change| ConfigChange { takes: Takes::AtTeamStart, ..change }).collect();
            return Self { applied: Vec::new(), needs_restart, config: None };
        }
        let mut next = taken_in(current, new);
        for agent in &mut next.agents {
            // One that runs stays where it is.
            if let Some(started) = running(&agent.id) {
                agent.worktree.clone_from(&started.worktree);
            }
        }
        plan.config = Some(next);
        plan
    }

    fn push(&mut self, change: ConfigChange) {
        let list = if change.waits() { &mut self.needs_restart } else { &mut self.applied };
        list.push(change);
    }
}

impl ConfigChange {
    fn of(agent: &Agent, key: &'static str, kind: ChangeKind, takes: Takes) -> Self {
        Self { agent: Some(agent.id.clone()), key, kind, takes }
    }

    fn waits(&self) -> bool {
        self.takes != Takes::AtOnce
    }
}

impl Config {
    pub fn agent(&self, id: &AgentId) -> Option<&Agent> {
        self.agents.iter().find(|agent| agent.id == *id)
    }
}

/// Returns the new configuration, with the keys that only take effect at the team's start
/// unchanged.
fn taken_in(current: &Config, new: &Config) -> Config {
    let (team, orchestrator) = (&current.team, &current.orchestrator);
    let mut agents = new.agents.clone();
    let lead = orchestrator.agent.as_ref().filter(|lead| new.agent(lead).is_none());
    agents.extend(lead.and_then(|lead| current.agent(lead)).cloned());
    for agent in &mut agents {
        // What is written stays closed.
        agent.zone.spec.journals.extend(current.journal.path.clone());
        agent.zone.spec.journals.extend(streams::files(&current.streams));
    }
    Config {
        team: Team {
            stop_grace: new.team.stop_grace,
            max_running: new.team.max_running,
            max_memory_mb: new.team.max_memory_mb,
            max_depth: new.team.max_depth,
            max_agents: new.team.max_agents,
            max_spawns: new.team.max_spawns,
            ..team.clone()
        },
        orchestrator: Orchestrator {
            agent: orchestrator.agent.clone(),
            elsewhere: orchestrator.elsewhere.clone(),
            ..new.orchestrator.clone()
        },
        tracker: current.tracker,
        port: current.port,
        zones: new.zones.clone(),
        agents,
        plugins: new.plugins.clone(),
        graph: current.graph,
        journal: current.journal.clone(),
        conflicts: taken_in_conflicts(current, new),
        notify: new.notify.clone(),
        web: current.web.clone(),
        routing: new.routing.clone(),
        budget: new.budget.clone(),
        shared: current.shared.clone(),
        telemetry: current.telemetry.clone(),
        streams: current.streams.clone(),
        gateway: current.gateway.clone(),
    }
}

/// Conflicts are looked for from a team's start on; how they are handled may change.
fn taken_in_conflicts(current: &Config, new: &Config) -> Option<Conflicts> {
    match (&current.conflicts, &new.conflicts) {
        (Some(_), Some(new)) => Some(new.clone()),
        (current, _) => current.clone(),
    }
}

fn team_changes(old: &Config, new: &Config) -> Vec<ConfigChange> {
    let differ = TEAM.iter().filter(|(_, _, differs)| differs(old, new));
    let kind = ChangeKind::Changed;
    differ.map(|&(key, takes, _)| ConfigChange { agent: None, key, kind, takes }).collect()
}

fn agent_changes(old: &Agent, new: &Agent) -> Vec<ConfigChange> {
    let differ = AGENT.iter().filter(|(_, _, differs)| differs(old, new));
    let mut changes: Vec<_> = differ
        .map(|(key, takes, _)| ConfigChange::of(new, key, ChangeKind::Changed, *takes))
        .collect();
    if old.zone.spec.terminals != new.zone.spec.terminals {
        // An agent that started without terminals does not ask for any.
        let takes = if new.zone.spec.terminals { Takes::AtAgentStart } else { Takes::AtOnce };
        changes.push(ConfigChange::of(new, TERMINALS, ChangeKind::Changed, takes));
    }
    changes
}
