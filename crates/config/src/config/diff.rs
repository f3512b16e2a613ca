//! Compares a changed configuration with a running team: which keys take effect when. Pure.

use super::{Agent, Config, Conflicts, Orchestrator, RemoteProtocol, Team, streams};
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

/// Whether both have a field of `[conflicts]`, and differ in it.
macro_rules! conflicts_differ {
    ($field:ident) => {
        |a, b| matches!((&a.conflicts, &b.conflicts), (Some(a), Some(b)) if a.$field != b.$field)
    };
}

/// Whether both have a web server, the page's or the gateway's, and differ in it.
macro_rules! web_differs {
    ($($server:ident).+, $($field:tt)+) => {
        |a, b| {
            let both = (&a.$($server).+, &b.$($server).+);
            matches!(both, (Some(a), Some(b)) if a.$($field)+ != b.$($field)+)
        }
    };
}

macro_rules! tls_differs {
    ($($at:ident).+, $file:ident) => {
        web_differs!($($at).+, tls.as_ref().map(|tls| &tls.$file))
    };
}

/// Whether two configurations differ in a field of a table that may be left out.
macro_rules! table_differs {
    ($($table:ident).+, $($field:tt)+) => {
        |a, b| {
            let field = |config: &Config| config.$($table).+.clone().map(|it| it.$($field)+);
            field(a) != field(b)
        }
    };
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

/// Keys, with when they are taken, and whether two configurations differ in one.
pub(super) type Keys<T> = [(&'static str, Takes, fn(&T, &T) -> bool)];

/// Whether two configurations differ in a field.
macro_rules! differs {
    ($($field:ident).+) => { |a, b| a.$($field).+ != b.$($field).+ };
}

/// Whether two agents have worktrees, and differ in a key of them.
macro_rules! worktree_differs {
    ($($field:ident).+) => {
        |a, b| {
            let both = (&a.worktree, &b.worktree);
            matches!(both, (Some(a), Some(b)) if a.$($field).+ != b.$($field).+)
        }
    };
}

pub(super) const TEAM: &Keys<Config> = &[
    ("team.name", Takes::AtTeamStart, differs!(team.name)),
    ("team.workspace", Takes::AtTeamStart, differs!(team.workspace)),
    ("team.scratch", Takes::AtTeamStart, differs!(team.scratch)),
    ("team.listen", Takes::AtTeamStart, differs!(team.listen)),
    ("team.stop_grace_s", Takes::AtOnce, differs!(team.stop_grace)),
    ("team.max_running", Takes::AtOnce, differs!(team.max_running)),
    ("team.on_loop", Takes::AtTeamStart, differs!(team.on_loop)),
    ("team.max_memory_mb", Takes::AtOnce, differs!(team.max_memory_mb)),
    ("team.max_depth", Takes::AtOnce, differs!(team.max_depth)),
    ("team.max_agents", Takes::AtOnce, differs!(team.max_agents)),
    ("team.max_spawns", Takes::AtOnce, differs!(team.max_spawns)),
    ("team.tools", Takes::AtTeamStart, differs!(team.tools)),
    ("orchestrator.agent", Takes::AtTeamStart, |a, b| {
        let named =
            |it: &Config| (it.orchestrator.agent.clone(), it.orchestrator.elsewhere.clone());
        named(a) != named(b)
    }),
    ("orchestrator.on_block", Takes::AtOnce, differs!(orchestrator.on_block)),
    ("orchestrator.hold_timeout_s", Takes::AtOnce, differs!(orchestrator.hold_timeout)),
    ("orchestrator.may_add", Takes::AtOnce, differs!(orchestrator.may_add)),
    ("tracker.context_turns", Takes::AtTeamStart, differs!(tracker.context_turns)),
    ("tracker.compaction_threshold", Takes::AtTeamStart, |a, b| {
        a.tracker.compaction_threshold.to_bits() != b.tracker.compaction_threshold.to_bits()
    }),
    ("tracker.decay_rate", Takes::AtTeamStart, |a, b| {
        a.tracker.decay_rate.to_bits() != b.tracker.decay_rate.to_bits()
    }),
    ("tracker.tick_ms", Takes::AtTeamStart, differs!(tracker.tick)),
    ("tracker.idle_tick_ms", Takes::AtTeamStart, differs!(tracker.idle_tick)),
    ("port.max_connections", Takes::AtTeamStart, differs!(port.max_connections)),
    ("port.max_line_bytes", Takes::AtTeamStart, differs!(port.max_line_bytes)),
    ("port.backlog", Takes::AtTeamStart, differs!(port.backlog)),
    ("port.backlog_bytes", Takes::AtTeamStart, differs!(port.backlog_bytes)),
    ("port.write_deadline_s", Takes::AtTeamStart, differs!(port.write_deadline)),
    ("zones.build", Takes::AtOnce, differs!(zones.build)),
    ("zones.shared", Takes::AtOnce, differs!(zones.shared)),
    ("zones.denied", Takes::AtOnce, differs!(zones.denied)),
    ("zones.readable", Takes::AtOnce, differs!(zones.readable)),
    ("zones.base", Takes::AtOnce, differs!(zones.base)),
    ("zones.git", Takes::AtOnce, differs!(zones.git)),
    ("zones.secrets", Takes::AtOnce, differs!(zones.secrets)),
    ("notify", Takes::AtOnce, differs!(notify)),
    ("streams", Takes::AtTeamStart, differs!(streams)),
    ("hub.nats", Takes::AtTeamStart, table_differs!(shared.hub, access.url)),
    ("hub.host", Takes::AtTeamStart, table_differs!(shared.hub, host)),
    ("hub.token", Takes::AtTeamStart, table_differs!(shared.hub, access.token)),
    ("hub.credentials", Takes::AtTeamStart, table_differs!(shared.hub, access.credentials)),
    ("gateway.default", Takes::AtTeamStart, differs!(gateway.default)),
    // The presence of the key, too.
    ("gateway.listen", Takes::AtTeamStart, |a, b| {
        let listen = |it: &Config| it.gateway.served.as_ref().map(|it| it.listen);
        listen(a) != listen(b)
    }),
    ("gateway.origin", Takes::AtTeamStart, web_differs!(gateway.served, origin)),
    ("gateway.cert", Takes::AtTeamStart, tls_differs!(gateway.served, cert)),
    ("gateway.key", Takes::AtTeamStart, tls_differs!(gateway.served, key)),
    ("gateway.trusted_proxy", Takes::AtTeamStart, web_differs!(gateway.served, trusted_proxy)),
    // The presence of the table.
    ("web", Takes::AtTeamStart, |a, b| a.web.is_some() != b.web.is_some()),
    ("web.listen", Takes::AtTeamStart, web_differs!(web, listen)),
    ("web.origin", Takes::AtTeamStart, web_differs!(web, origin)),
    ("web.cert", Takes::AtTeamStart, tls_differs!(web, cert)),
    ("web.key", Takes::AtTeamStart, tls_differs!(web, key)),
    ("web.trusted_proxy", Takes::AtTeamStart, web_differs!(web, trusted_proxy)),
    ("routing", Takes::AtOnce, differs!(routing)),
    ("budget.tokens", Takes::AtOnce, differs!(budget.limits.tokens)),
    ("budget.cost", Takes::AtOnce, differs!(budget.limits.cost)),
    ("budget.currency", Takes::AtOnce, differs!(budget.currency)),
    ("budget.turns", Takes::AtOnce, differs!(budget.limits.turns)),
    ("budget.minutes", Takes::AtOnce, differs!(budget.limits.minutes)),
    ("budget.window_s", Takes::AtOnce, differs!(budget.window)),
    ("budget.warn_at", Takes::AtOnce, |a, b| {
        a.budget.warn_at.to_bits() != b.budget.warn_at.to_bits()
    }),
    ("budget.on_exceed", Takes::AtOnce, differs!(budget.on_exceed)),
    ("prices", Takes::AtTeamStart, |a, b| a.shared.prices != b.shared.prices),
    ("graph.enabled", Takes::AtTeamStart, differs!(graph)),
    // The presence of the table.
    ("conflicts", Takes::AtTeamStart, |a, b| a.conflicts.is_some() != b.conflicts.is_some()),
    ("conflicts.strategy", Takes::AtOnce, conflicts_differ!(strategy)),
    ("conflicts.lock_s", Takes::AtOnce, conflicts_differ!(lock)),
    ("journal.enabled", Takes::AtTeamStart, differs!(journal.enabled)),
    ("journal.path", Takes::AtTeamStart, differs!(journal.path)),
    ("journal.keep_days", Takes::AtTeamStart, differs!(journal.keep_days)),
    ("journal.max_mb", Takes::AtTeamStart, differs!(journal.max_mb)),
    ("journal.on_full", Takes::AtTeamStart, differs!(journal.on_full)),
    ("journal.content", Takes::AtTeamStart, differs!(journal.content)),
    ("journal.outside", Takes::AtTeamStart, differs!(journal.outside)),
    ("telemetry.otlp", Takes::AtTeamStart, table_differs!(telemetry, otlp)),
    ("telemetry.contents", Takes::AtTeamStart, table_differs!(telemetry, contents)),
    ("telemetry.headers", Takes::AtTeamStart, table_differs!(telemetry, headers)),
];

const TERMINALS: &str = "zone.terminals";

/// All keys except [`TERMINALS`].
pub(super) const AGENT: &Keys<Agent> = &[
    ("parent", Takes::AtAgentStart, differs!(parent)),
    ("owner", Takes::AtOnce, differs!(owner)),
    ("protocol", Takes::AtAgentStart, differs!(plugin)),
    ("command", Takes::AtAgentStart, |a, b| {
        a.remote.is_none() && b.remote.is_none() && a.command != b.command
    }),
    ("url", Takes::AtAgentStart, |a, b| {
        a.address(RemoteProtocol::Acp) != b.address(RemoteProtocol::Acp)
    }),
    ("base_url", Takes::AtAgentStart, |a, b| {
        a.address(RemoteProtocol::OpenCode) != b.address(RemoteProtocol::OpenCode)
    }),
    ("headers", Takes::AtAgentStart, |a, b| {
        a.remote.as_ref().map(|it| &it.headers) != b.remote.as_ref().map(|it| &it.headers)
    }),
    // Only a difference that command and environment do not show.
    ("profile", Takes::AtAgentStart, |a, b| {
        a.command == b.command && a.env == b.env && a.profile != b.profile
    }),
    ("cwd", Takes::AtAgentStart, differs!(cwd)),
    ("worktree.enabled", Takes::AtTeamStart, |a, b| a.worktree.is_some() != b.worktree.is_some()),
    ("worktree.branch", Takes::AtTeamStart, worktree_differs!(branch)),
    ("worktree.base", Takes::AtTeamStart, worktree_differs!(settings.base)),
    ("worktree.path", Takes::AtTeamStart, worktree_differs!(settings.path)),
    ("worktree.setup", Takes::AtTeamStart, worktree_differs!(settings.setup)),
    ("worktree.copy", Takes::AtTeamStart, worktree_differs!(settings.copy)),
    ("worktree.link", Takes::AtTeamStart, worktree_differs!(settings.link)),
    ("worktree.sparse", Takes::AtTeamStart, worktree_differs!(settings.sparse)),
    ("env", Takes::AtAgentStart, differs!(env)),
    // Only matters at the team's next start.
    ("autostart", Takes::AtOnce, differs!(autostart)),
    ("session", Takes::AtAgentStart, differs!(session)),
    ("prompt", Takes::AtAgentStart, differs!(prompt)),
    ("model", Takes::AtAgentStart, differs!(model)),
    ("tier", Takes::AtAgentStart, differs!(tier)),
    ("thinking", Takes::AtAgentStart, differs!(thinking)),
    ("mode", Takes::AtAgentStart, differs!(mode)),
    ("auth_method", Takes::AtAgentStart, differs!(auth_method)),
    ("mcp_servers", Takes::AtAgentStart, differs!(mcp_servers)),
    ("tools", Takes::AtAgentStart, differs!(tools)),
    ("permissions", Takes::AtOnce, differs!(permissions)),
    ("unattended", Takes::AtAgentStart, differs!(unattended)),
    ("on_violation", Takes::AtOnce, differs!(on_violation)),
    ("on_loop", Takes::AtAgentStart, differs!(on_loop)),
    ("on_block", Takes::AtOnce, differs!(on_block)),
    // Only matters at the agent's next start; a running one waits for nothing.
    ("depends_on", Takes::AtOnce, differs!(depends_on)),
    ("initialize_timeout_s", Takes::AtAgentStart, differs!(initialize_timeout)),
    ("stall_after_s", Takes::AtAgentStart, differs!(stall_after)),
    // The presence of the table: without it the agent owns nothing.
    ("zone", Takes::AtOnce, differs!(zone.own)),
    ("zone.allowed", Takes::AtOnce, differs!(zone.spec.allowed)),
    ("zone.denied", Takes::AtOnce, differs!(zone.denied)),
    ("zone.readable", Takes::AtOnce, differs!(zone.readable)),
    ("zone.enforce", Takes::AtAgentStart, differs!(zone.enforce)),
    ("zone.confine", Takes::AtAgentStart, differs!(zone.confine)),
    // The doorbell uses the current zone; the wall stays as it was built.
    ("zone.sockets", Takes::AtOnce, differs!(zone.sockets)),
    ("zone.observe_files", Takes::AtAgentStart, differs!(zone.observe_files)),
    ("restart.policy", Takes::AtOnce, differs!(restart.policy)),
    ("restart.max_restarts", Takes::AtOnce, differs!(restart.max_restarts)),
    ("restart.within_s", Takes::AtOnce, differs!(restart.within)),
    ("restart.backoff_ms", Takes::AtOnce, differs!(restart.backoff)),
    ("limits.memory_mb", Takes::AtAgentStart, differs!(memory_mb)),
    ("limits.processes", Takes::AtAgentStart, differs!(processes)),
    ("budget.tokens", Takes::AtOnce, differs!(budget.limits.tokens)),
    ("budget.cost", Takes::AtOnce, differs!(budget.limits.cost)),
    ("budget.currency", Takes::AtOnce, differs!(budget.currency)),
    ("budget.turns", Takes::AtOnce, differs!(budget.limits.turns)),
    ("budget.minutes", Takes::AtOnce, differs!(budget.limits.minutes)),
    ("budget.window_s", Takes::AtOnce, differs!(budget.window)),
    ("budget.warn_at", Takes::AtOnce, |a, b| {
        a.budget.warn_at.to_bits() != b.budget.warn_at.to_bits()
    }),
    ("budget.on_exceed", Takes::AtOnce, differs!(budget.on_exceed)),
];

/// Every key that is compared, as in the file's tables.
#[cfg(test)]
pub(super) fn keys() -> impl Iterator<Item = String> {
    let of_agents = AGENT.iter().map(|(key, ..)| *key).filter(|key| *key != "zone");
    let of_agents = of_agents.chain([TERMINALS]).map(|key| format!("agents.{key}"));
    let of_team =
        TEAM.iter().map(|(key, ..)| *key).filter(|key| !["conflicts", "web"].contains(key));
    of_team.map(str::to_owned).chain(of_agents)
}
