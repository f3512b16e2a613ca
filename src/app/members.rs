use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;

use super::environment::TeamEnvironment;
use crate::agent::{AgentSettings, Policy, Restarts};
use crate::client_host::{HostSettings, PermissionPolicy};
use crate::config::{self, Config, Permissions, RestartPolicy};
use crate::model::AgentId;
use crate::process::{Command, Limits};
use crate::routing;
use crate::supervisor::Member;
use crate::zone::Zone;

/// What all agents have in common for as long as the team is up, whatever its configuration.
pub(super) struct Conditions {
    pub(super) environment: TeamEnvironment,
    /// The token of the orchestrator agent.
    pub(super) orchestrator_token: String,
    pub(super) eisen_dir: PathBuf,
    /// The temporary copy of the workspace, if the team works on one.
    pub(super) scratch: Option<PathBuf>,
}

impl Conditions {
    /// Returns the members of a team that works by an edition of the configuration, in its order,
    /// and what routing needs to know of them. Reads the disk.
    pub(super) fn members(
        &self,
        config: &Config,
        edition: u64,
    ) -> anyhow::Result<(Vec<Member>, routing::Rules)> {
        let mut config = config.clone();
        if let Some(scratch) = &self.scratch {
            config.move_workspace(scratch);
        }
        let zones = compile_zones(&config)?;
        let rules = routing::Rules {
            hold: config.orchestrator.on_block == config::OnBlock::Hold,
            hold_timeout: config.orchestrator.hold_timeout,
            owners: owners(&config, &zones),
        };
        let member = |(agent, zone)| self.member(&config, agent, zone, edition);
        Ok((config.agents.iter().zip(zones).map(member).collect(), rules))
    }

    fn member(
        &self,
        config: &Config,
        agent: &config::Agent,
        zone: Arc<Zone>,
        edition: u64,
    ) -> Member {
        let is_orchestrator = config.orchestrator.agent.as_ref() == Some(&agent.id);
        let environment = self.environment(agent, is_orchestrator);
        let settings = AgentSettings {
            id: agent.id.clone(),
            edition,
            command: Command {
                program: agent.command[0].clone().into(),
                args: agent.command[1..].iter().map(Into::into).collect(),
                cwd: agent.cwd.clone(),
                env: environment.clone(),
            },
            log: log(&self.eisen_dir, &config.team.name, &agent.id),
            zone,
            bounds: None,
            host: HostSettings {
                cwd: agent.cwd.clone(),
                permissions: match agent.permissions {
                    Permissions::Deny => PermissionPolicy::Deny,
                    Permissions::Allow | Permissions::Orchestrator => PermissionPolicy::Allow,
                },
                terminals: agent.zone.spec.terminals,
                mcp_servers: agent.mcp_servers.clone(),
                auth_method: agent.auth_method.clone(),
                model: agent.model.clone(),
                mode: agent.mode.clone(),
                env: environment,
                initialize_timeout: agent.initialize_timeout,
            },
            session: agent.session,
            prompt: agent.prompt.clone(),
            orchestrator_permits: agent.permissions == Permissions::Orchestrator,
            is_orchestrator,
            restarts: restarts(agent.restart),
            limits: limits(agent),
            stop_grace: config.team.stop_grace,
        };
        Member { settings, depends_on: agent.depends_on.clone(), autostart: agent.autostart }
    }

    fn environment(
        &self,
        agent: &config::Agent,
        is_orchestrator: bool,
    ) -> std::collections::BTreeMap<String, String> {
        // What the team says of itself is not an agent's to change.
        let mut environment = agent.env.clone();
        environment.extend(if is_orchestrator {
            let path = agent.env.get("PATH");
            self.environment.of_orchestrator(&agent.id, &self.orchestrator_token, path)
        } else {
            self.environment.of(&agent.id)
        });
        environment
    }
}

/// Says what `enforce = "auto"` comes down to.
pub(super) fn warn_of_tier<'a>(agents: impl Iterator<Item = &'a config::Agent>) {
    let auto = agents.filter(|agent| agent.zone.enforce == config::Enforce::Auto);
    let agents: Vec<_> = auto.map(|agent| agent.id.as_str()).collect();
    if !agents.is_empty() {
        tracing::warn!(
            agents = agents.join(", "),
            "zones bind on the protocol only: this version cannot enforce them in the kernel, and \
             an agent with a shell can get past them; `enforce = \"protocol\"` says that this is \
             meant"
        );
    }
}

fn compile_zones(config: &Config) -> anyhow::Result<Vec<Arc<Zone>>> {
    let compile = |agent: &config::Agent| {
        let zone = Zone::compile(&agent.zone.spec);
        zone.map(Arc::new).with_context(|| format!("the zone of agent `{}`", agent.id))
    };
    config.agents.iter().map(compile).collect()
}

fn owners(config: &Config, zones: &[Arc<Zone>]) -> Vec<(AgentId, Arc<Zone>)> {
    let owning = config.agents.iter().zip(zones).filter(|(agent, _)| agent.zone.own);
    owning.map(|(agent, zone)| (agent.id.clone(), zone.clone())).collect()
}

/// What the agent and its terminals may use.
pub(super) fn limits(agent: &config::Agent) -> Limits {
    Limits { memory_mb: agent.memory_mb, processes: agent.processes }
}

fn restarts(restart: config::Restart) -> Restarts {
    Restarts {
        policy: match restart.policy {
            RestartPolicy::Never => Policy::Never,
            RestartPolicy::OnFailure => Policy::OnFailure,
            RestartPolicy::Always => Policy::Always,
        },
        max: restart.max_restarts,
        within: restart.within,
        backoff: restart.backoff,
    }
}

fn log(eisen_dir: &Path, team: &str, agent: &AgentId) -> PathBuf {
    eisen_dir.join("logs").join(team).join(format!("{agent}.log"))
}
