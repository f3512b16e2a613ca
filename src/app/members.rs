use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;

use super::environment::TeamEnvironment;
use crate::agent::{AgentSettings, Policy, Restarts};
use crate::client_host::{HostSettings, PermissionPolicy};
use crate::config::{self, Config, Permissions, RestartPolicy};
use crate::confine::Support;
use crate::model::AgentId;
use crate::process::{Command, Limits};
use crate::routing;
use crate::supervisor::Member;
use crate::zone::{Bounds, Confine, Reach, Zone};

/// What all agents have in common for as long as the team is up, whatever its configuration.
pub(super) struct Conditions {
    pub(super) environment: TeamEnvironment,
    /// The token of the orchestrator agent.
    pub(super) orchestrator_token: String,
    pub(super) eisen_dir: PathBuf,
    /// The temporary copy of the workspace, if the team works on one.
    pub(super) scratch: Option<PathBuf>,
    /// Where agents have their private temporary folders.
    pub(super) private: PathBuf,
    /// What the kernel was seen to enforce, or why it cannot be had.
    pub(super) kernel: Result<Support, String>,
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
        let members = config.agents.iter().zip(zones).map(member).collect::<anyhow::Result<_>>()?;
        Ok((members, rules))
    }

    fn member(
        &self,
        config: &Config,
        agent: &config::Agent,
        zone: Arc<Zone>,
        edition: u64,
    ) -> anyhow::Result<Member> {
        let is_orchestrator = config.orchestrator.agent.as_ref() == Some(&agent.id);
        let bounds = self.bounds(agent, &zone)?;
        let mut environment = self.environment(agent, is_orchestrator);
        if let Some(bounds) = &bounds {
            let private = bounds.reach().private.to_string_lossy();
            environment
                .extend(["TMPDIR", "TMP", "TEMP"].map(|key| (key.into(), private.clone().into())));
        }
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
            bounds,
            observe_files: agent.zone.observe_files,
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
        let (depends_on, autostart) = (agent.depends_on.clone(), agent.autostart);
        Ok(Member { settings, depends_on, autostart })
    }

    /// What the kernel is to hold an agent to; None if it is not to, or cannot.
    fn bounds(
        &self,
        agent: &config::Agent,
        zone: &Arc<Zone>,
    ) -> anyhow::Result<Option<Arc<Bounds>>> {
        match (agent.zone.enforce, &self.kernel) {
            (config::Enforce::Protocol, _) | (config::Enforce::Auto, Err(_)) => return Ok(None),
            (config::Enforce::Kernel, kernel) => {
                if let Some(why) = falls_short(kernel) {
                    anyhow::bail!(
                        "agent `{}` is to be held by the kernel (`enforce = \"kernel\"`), and cannot \
                         be: {why}; write \"auto\" to have as much as there is, or \"protocol\"",
                        agent.id
                    );
                }
            }
            (config::Enforce::Auto, Ok(_)) => {}
        }
        // It must be there for its real path to be found.
        let private = self.private.join(agent.id.as_str());
        std::fs::create_dir_all(&private)
            .with_context(|| format!("cannot make {}", private.display()))?;
        let bounds = Bounds::new(zone.clone(), reach(agent, private));
        let bounds = bounds.with_context(|| format!("the zone of agent `{}`", agent.id))?;
        Ok(Some(Arc::new(bounds)))
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
pub(super) fn warn_of_tier<'a>(
    agents: impl Iterator<Item = &'a config::Agent>,
    kernel: &Result<Support, String>,
) {
    let auto = agents.filter(|agent| agent.zone.enforce == config::Enforce::Auto);
    let agents: Vec<_> = auto.map(|agent| agent.id.as_str()).collect();
    let Some(why) = falls_short(kernel).filter(|_| !agents.is_empty()) else { return };
    let agents = agents.join(", ");
    if kernel.is_ok() {
        tracing::warn!(agents, missing = why, "the kernel enforces zones with gaps");
    } else {
        tracing::warn!(
            agents,
            why,
            "zones bind on the protocol only: the kernel cannot enforce them, and an agent with a \
             shell can get past them; `enforce = \"protocol\"` says that this is meant"
        );
    }
}

/// What the kernel does not enforce, in words; None if it enforces all.
fn falls_short(kernel: &Result<Support, String>) -> Option<String> {
    match kernel {
        Ok(support) => Some(support.missing().join("; ")).filter(|missing| !missing.is_empty()),
        Err(why) => Some(why.clone()),
    }
}

/// What an agent may reach beside its zone.
fn reach(agent: &config::Agent, private: PathBuf) -> Reach {
    Reach {
        confine: match agent.zone.confine {
            config::Confine::Workspace => Confine::Workspace,
            config::Confine::Strict => Confine::Strict,
        },
        private,
        readable: Vec::new(),
        writable: Vec::new(),
        sockets: Vec::new(),
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
