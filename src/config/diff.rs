//! Compares a changed configuration with a running team: which keys take effect at once, and which
//! need a restart. Pure.

use super::{Agent, Config, Orchestrator, Team};
use crate::model::AgentId;

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
        plan.config = Some(taken_in(current, new));
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
        // The journal that is written stays closed.
        agent.zone.spec.journals.extend(current.journal.path.clone());
    }
    Config {
        team: Team {
            stop_grace: new.team.stop_grace,
            max_running: new.team.max_running,
            max_memory_mb: new.team.max_memory_mb,
            ..team.clone()
        },
        orchestrator: Orchestrator {
            agent: orchestrator.agent.clone(),
            ..new.orchestrator.clone()
        },
        tracker: current.tracker,
        port: current.port,
        zones: new.zones.clone(),
        agents,
        plugins: new.plugins.clone(),
        graph: current.graph,
        journal: current.journal.clone(),
        notify: new.notify.clone(),
    }
}

fn team_changes(old: &Config, new: &Config) -> Vec<ConfigChange> {
    TEAM.iter()
        .filter(|(_, _, differs)| differs(old, new))
        .map(|(key, takes, _)| ConfigChange {
            agent: None,
            key,
            kind: ChangeKind::Changed,
            takes: *takes,
        })
        .collect()
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

type Keys<T> = [(&'static str, Takes, fn(&T, &T) -> bool)];

const TEAM: &Keys<Config> = &[
    ("team.name", Takes::AtTeamStart, |a, b| a.team.name != b.team.name),
    ("team.workspace", Takes::AtTeamStart, |a, b| a.team.workspace != b.team.workspace),
    ("team.scratch", Takes::AtTeamStart, |a, b| a.team.scratch != b.team.scratch),
    ("team.listen", Takes::AtTeamStart, |a, b| a.team.listen != b.team.listen),
    ("team.stop_grace_s", Takes::AtOnce, |a, b| a.team.stop_grace != b.team.stop_grace),
    ("team.max_running", Takes::AtOnce, |a, b| a.team.max_running != b.team.max_running),
    ("team.max_memory_mb", Takes::AtOnce, |a, b| a.team.max_memory_mb != b.team.max_memory_mb),
    ("orchestrator.agent", Takes::AtTeamStart, |a, b| a.orchestrator.agent != b.orchestrator.agent),
    ("orchestrator.on_block", Takes::AtOnce, |a, b| {
        a.orchestrator.on_block != b.orchestrator.on_block
    }),
    ("orchestrator.hold_timeout_s", Takes::AtOnce, |a, b| {
        a.orchestrator.hold_timeout != b.orchestrator.hold_timeout
    }),
    ("tracker.context_turns", Takes::AtTeamStart, |a, b| {
        a.tracker.context_turns != b.tracker.context_turns
    }),
    ("tracker.compaction_threshold", Takes::AtTeamStart, |a, b| {
        a.tracker.compaction_threshold.to_bits() != b.tracker.compaction_threshold.to_bits()
    }),
    ("tracker.decay_rate", Takes::AtTeamStart, |a, b| {
        a.tracker.decay_rate.to_bits() != b.tracker.decay_rate.to_bits()
    }),
    ("tracker.tick_ms", Takes::AtTeamStart, |a, b| a.tracker.tick != b.tracker.tick),
    ("tracker.idle_tick_ms", Takes::AtTeamStart, |a, b| a.tracker.idle_tick != b.tracker.idle_tick),
    ("port.max_connections", Takes::AtTeamStart, |a, b| {
        a.port.max_connections != b.port.max_connections
    }),
    ("port.max_line_bytes", Takes::AtTeamStart, |a, b| {
        a.port.max_line_bytes != b.port.max_line_bytes
    }),
    ("port.backlog", Takes::AtTeamStart, |a, b| a.port.backlog != b.port.backlog),
    ("port.backlog_bytes", Takes::AtTeamStart, |a, b| a.port.backlog_bytes != b.port.backlog_bytes),
    ("port.write_deadline_s", Takes::AtTeamStart, |a, b| {
        a.port.write_deadline != b.port.write_deadline
    }),
    ("zones.build", Takes::AtOnce, |a, b| a.zones.build != b.zones.build),
    ("zones.shared", Takes::AtOnce, |a, b| a.zones.shared != b.zones.shared),
    ("zones.denied", Takes::AtOnce, |a, b| a.zones.denied != b.zones.denied),
    ("zones.readable", Takes::AtOnce, |a, b| a.zones.readable != b.zones.readable),
    ("zones.base", Takes::AtOnce, |a, b| a.zones.base != b.zones.base),
    ("zones.git", Takes::AtOnce, |a, b| a.zones.git != b.zones.git),
    ("notify", Takes::AtOnce, |a, b| a.notify != b.notify),
    ("graph.enabled", Takes::AtTeamStart, |a, b| a.graph != b.graph),
    ("journal.enabled", Takes::AtTeamStart, |a, b| a.journal.enabled != b.journal.enabled),
    ("journal.path", Takes::AtTeamStart, |a, b| a.journal.path != b.journal.path),
    ("journal.keep_days", Takes::AtTeamStart, |a, b| a.journal.keep_days != b.journal.keep_days),
    ("journal.max_mb", Takes::AtTeamStart, |a, b| a.journal.max_mb != b.journal.max_mb),
    ("journal.content", Takes::AtTeamStart, |a, b| a.journal.content != b.journal.content),
];

const TERMINALS: &str = "zone.terminals";

/// All keys except [`TERMINALS`].
const AGENT: &Keys<Agent> = &[
    ("protocol", Takes::AtAgentStart, |a, b| a.plugin != b.plugin),
    ("command", Takes::AtAgentStart, |a, b| a.command != b.command),
    // Only a difference that command and environment do not show.
    ("profile", Takes::AtAgentStart, |a, b| {
        a.command == b.command && a.env == b.env && a.profile != b.profile
    }),
    ("cwd", Takes::AtAgentStart, |a, b| a.cwd != b.cwd),
    ("env", Takes::AtAgentStart, |a, b| a.env != b.env),
    // Only matters at the team's next start.
    ("autostart", Takes::AtOnce, |a, b| a.autostart != b.autostart),
    ("session", Takes::AtAgentStart, |a, b| a.session != b.session),
    ("prompt", Takes::AtAgentStart, |a, b| a.prompt != b.prompt),
    ("model", Takes::AtAgentStart, |a, b| a.model != b.model),
    ("mode", Takes::AtAgentStart, |a, b| a.mode != b.mode),
    ("auth_method", Takes::AtAgentStart, |a, b| a.auth_method != b.auth_method),
    ("mcp_servers", Takes::AtAgentStart, |a, b| a.mcp_servers != b.mcp_servers),
    ("permissions", Takes::AtOnce, |a, b| a.permissions != b.permissions),
    ("unattended", Takes::AtAgentStart, |a, b| a.unattended != b.unattended),
    ("on_violation", Takes::AtOnce, |a, b| a.on_violation != b.on_violation),
    ("on_block", Takes::AtOnce, |a, b| a.on_block != b.on_block),
    // Only matters at the agent's next start; a running one waits for nothing.
    ("depends_on", Takes::AtOnce, |a, b| a.depends_on != b.depends_on),
    ("initialize_timeout_s", Takes::AtAgentStart, |a, b| {
        a.initialize_timeout != b.initialize_timeout
    }),
    ("stall_after_s", Takes::AtAgentStart, |a, b| a.stall_after != b.stall_after),
    // The presence of the table: without it the agent owns nothing.
    ("zone", Takes::AtOnce, |a, b| a.zone.own != b.zone.own),
    ("zone.allowed", Takes::AtOnce, |a, b| a.zone.spec.allowed != b.zone.spec.allowed),
    ("zone.denied", Takes::AtOnce, |a, b| a.zone.denied != b.zone.denied),
    ("zone.readable", Takes::AtOnce, |a, b| a.zone.readable != b.zone.readable),
    ("zone.enforce", Takes::AtAgentStart, |a, b| a.zone.enforce != b.zone.enforce),
    ("zone.confine", Takes::AtAgentStart, |a, b| a.zone.confine != b.zone.confine),
    // The doorbell uses the current zone; the wall stays as it was built.
    ("zone.sockets", Takes::AtOnce, |a, b| a.zone.sockets != b.zone.sockets),
    ("zone.observe_files", Takes::AtAgentStart, |a, b| {
        a.zone.observe_files != b.zone.observe_files
    }),
    ("restart.policy", Takes::AtOnce, |a, b| a.restart.policy != b.restart.policy),
    ("restart.max_restarts", Takes::AtOnce, |a, b| {
        a.restart.max_restarts != b.restart.max_restarts
    }),
    ("restart.within_s", Takes::AtOnce, |a, b| a.restart.within != b.restart.within),
    ("restart.backoff_ms", Takes::AtOnce, |a, b| a.restart.backoff != b.restart.backoff),
    ("limits.memory_mb", Takes::AtAgentStart, |a, b| a.memory_mb != b.memory_mb),
    ("limits.processes", Takes::AtAgentStart, |a, b| a.processes != b.processes),
];

/// Every key that is compared, as in the file's tables.
#[cfg(test)]
pub(super) fn keys() -> impl Iterator<Item = String> {
    let of_agents = AGENT.iter().map(|(key, ..)| *key).filter(|key| *key != "zone");
    let of_agents = of_agents.chain([TERMINALS]).map(|key| format!("agents.{key}"));
    TEAM.iter().map(|(key, ..)| (*key).to_owned()).chain(of_agents)
}
