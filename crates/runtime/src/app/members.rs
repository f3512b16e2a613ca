//! Turns the configuration into team members: settings, zones, bounds and environment of each
//! agent.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::sync::mpsc;

use crate::access::routes;
use crate::agent::{AgentSettings, Policy, Restarts, SlotWish};
use crate::app::places;
use crate::branches::TeamTrees;
use crate::budget::Budgets;
use crate::client_host::{Answers, HostSettings, PermissionPolicy, TurnAnswer};
use crate::config::check::Kernel;
use crate::config::{
    self, Config, Enforce, Permissions, RestartPolicy, SharedConfig, TrustedPlaces, UsageCount,
};
use crate::conflicts::{self, Conflicts};
use crate::helpers::lineage;
use crate::home::environment;
use crate::home::environment::TeamEnvironment;
use crate::home::journals;
use crate::journal::Journal;
use crate::kept::make_folder;
use crate::model::{AgentId, SessionId, SessionKey, UsageScope};
use crate::process::{Command, Limits};
use crate::providers::{LedAgent, TeamProviders};
use crate::remote;
use crate::routing::{self, Orchestrator};
use crate::runs::TeamRuns;
use crate::slots::Slots;
use crate::supervisor::Member;
use crate::team_file::mode::TeamMode;
use crate::team_file::plugins;
use crate::team_state::agent_owners::AgentOwners;
use crate::tracker::OrchestratorView;
use crate::wire::Audience;
use crate::zone::{Bounds, GrantedPlace, Zone};

/// Variables that name the folder for temporary files; tmux has its own, for its socket.
const TEMPORARY: [&str; 4] = ["TMPDIR", "TMP", "TEMP", "TMUX_TMPDIR"];

/// Settings that all agents share, and that no reload changes.
pub(crate) struct Conditions {
    pub(crate) environment: TeamEnvironment,
    pub(crate) eisen_dir: PathBuf,
    /// The temporary copy of the workspace, with `scratch = true`.
    pub(crate) scratch: Option<PathBuf>,
    /// The parent of the agents' private temporary folders.
    pub(crate) private: PathBuf,
    /// The result of the kernel's probe.
    pub(crate) kernel: Kernel,
    /// Sends the last line of each answer to the console.
    pub(crate) answers: mpsc::Sender<TurnAnswer>,
    /// None: switched off.
    pub(crate) journal: Option<Journal>,
    pub(crate) budgets: Budgets,
    pub(crate) providers: TeamProviders,
    pub(crate) owners: AgentOwners,
    /// None: not looked for.
    pub(crate) conflicts: Option<Conflicts>,
    pub(crate) runs: TeamRuns,
    pub(crate) slots: TeamSlots,
    pub(crate) mode: TeamMode,
    pub(crate) trees: TeamTrees,
}

/// The slots that agents of a team take.
#[derive(Debug)]
pub(crate) struct TeamSlots {
    pub(crate) slots: Slots,
    /// For the team of a run, which has the slot of its agent: the files that its configuration comes
    /// from. That one has no bases of profiles.
    pub(crate) of_run: Option<SharedConfig>,
}

impl Conditions {
    /// Returns the members of a team in the configuration's order, and the rules for routing. Reads
    /// the disk.
    pub(crate) fn members(
        &self,
        config: &Config,
        edition: u64,
    ) -> anyhow::Result<(Vec<Member>, routing::Rules)> {
        let mut config = config.clone();
        if let Some(scratch) = &self.scratch {
            config.move_workspace(scratch);
        }
        self.trees.place(&mut config)?;
        places::make_for_builds(&config);
        TrustedPlaces::keep(&self.eisen_dir, config.agents.iter())?;
        let zones = compile_zones(&config, &|agent| self.observes(agent))?;
        let rules = routing::Rules {
            hold: config.orchestrator.on_block == config::OnBlock::Hold,
            hold_timeout: config.orchestrator.holds_for(),
            hold_of: hold_of(&config),
            routing: routes::rules_of_run(&config, &|agent| self.observes(agent))?,
            unattended: self.mode.unattended,
            owners: owners(&config, &zones),
            zones: ids(&config).zip(zones.iter().cloned()).collect(),
        };
        let member = |(agent, zone)| self.member(&config, agent, zone, edition);
        let members = config.agents.iter().zip(zones).map(member).collect::<anyhow::Result<_>>()?;
        Ok((members, rules))
    }

    /// Whether an agent is observed and not stopped.
    pub(crate) fn observes(&self, agent: &config::Agent) -> bool {
        self.mode.observe || agent.zone.enforce == Enforce::Observe
    }

    fn member(
        &self,
        config: &Config,
        agent: &config::Agent,
        zone: Arc<Zone>,
        edition: u64,
    ) -> anyhow::Result<Member> {
        let is_orchestrator = config.orchestrator.agent.as_ref() == Some(&agent.id);
        let led = self.providers.lead(agent)?;
        let bounds = self.bounds(agent, &zone, led.as_ref())?;
        let (command, own) = agent.launch(bounds.is_some());
        let mut environment = self.environment(agent, own, is_orchestrator);
        environment.extend(self.genealogy(config, agent));
        let withheld = self.providers.withheld(led.as_ref()).into_iter();
        environment.extend(withheld.map(|name| (name, String::new())));
        let is_confined = bounds.is_some();
        if let Some(bounds) = &bounds {
            let private = bounds.reach().private.to_string_lossy();
            environment.extend(TEMPORARY.map(|key| (key.into(), private.clone().into())));
        }
        let has_tools = agent.has_tools(&config.team);
        let audience = if is_orchestrator { Audience::Lead } else { Audience::Member };
        let settings = AgentSettings {
            id: agent.id.clone(),
            edition,
            command: Command {
                program: command[0].clone().into(),
                args: command[1..].iter().chain(args_of(led.as_ref())).map(Into::into).collect(),
                cwd: agent.cwd.clone(),
                env: for_itself(agent, led.as_ref(), environment.clone()),
            },
            log: log(&self.eisen_dir, &config.team.name, &agent.id),
            zone,
            bounds,
            kernel_lacks: match agent.zone.enforce {
                Enforce::Protocol => Arc::default(),
                _ => self.kernel.missing.as_slice().into(),
            },
            observe_files: agent.zone.observe_files,
            patience: agent.profile.patience_s.map(Duration::from_secs),
            plugin: agent
                .plugin
                .as_ref()
                .map(|plugin| plugins::prepared(agent, plugin, &self.eisen_dir))
                .transpose()?,
            host: HostSettings {
                cwd: agent.cwd.clone(),
                permissions: match agent.permissions {
                    Permissions::Deny => PermissionPolicy::Deny,
                    Permissions::Allow => PermissionPolicy::Allow,
                    Permissions::Orchestrator => PermissionPolicy::Orchestrator,
                },
                terminals: agent.zone.spec.terminals,
                files: !is_confined || agent.profile.confined_client_fs != Some(false),
                mcp_servers: agent.mcp_servers.clone(),
                tools: has_tools.then(|| self.environment.tools(agent, audience)),
                auth_method: agent.auth_method.clone(),
                model: agent.session_model().filter(|_| agent.plugin.is_none()).map(str::to_owned),
                model_there: config.model_there(agent).map(str::to_owned),
                thinking: agent.thinking.clone().filter(|_| agent.plugin.is_none()),
                mode: agent.session_mode().map(str::to_owned),
                asking_mode: agent.asking_mode().map(str::to_owned),
                compress: Some(agent.profile.compact.clone()).filter(|it| !it.is_empty()),
                env: environment,
                initialize_timeout: agent.initialize_timeout,
                answers: Some(Answers { agent: agent.id.clone(), sender: self.answers.clone() }),
            },
            usage: usage_scope(agent),
            uncounted_mode: Some(agent.profile.uncounted_mode.clone()).filter(|it| !it.is_empty()),
            account: self.budgets.account(&agent.id, agent.model.as_deref().map(Into::into)),
            model_calls: led.map(|led| led.calls),
            session: agent.session,
            prompt: agent.prompt.clone(),
            orchestrator_permits: agent.permissions == Permissions::Orchestrator,
            on_violation: agent.on_violation,
            on_loop: agent.on_loop.unwrap_or(config.team.on_loop),
            is_orchestrator,
            restarts: restarts(agent),
            stall_after: agent.stall_after,
            limits: limits(agent),
            ends_on_eof: agent.ends_on_eof(),
            stop_grace: config.team.stop_grace,
            slot: self.slots.of(config, agent),
            candidate: agent.taken_candidate(),
        };
        let (depends_on, autostart) = (agent.depends_on.clone(), agent.autostart);
        Ok(Member { settings, depends_on, autostart })
    }

    /// The bounds that the kernel enforces for an agent; None if it is not configured, or the
    /// kernel can't.
    fn bounds(
        &self,
        agent: &config::Agent,
        zone: &Arc<Zone>,
        led: Option<&LedAgent>,
    ) -> anyhow::Result<Option<Arc<Bounds>>> {
        let kernel = &self.kernel;
        match agent.zone.enforce {
            Enforce::Protocol => return Ok(None),
            Enforce::Observe if agent.remote.is_some() => return Ok(None),
            Enforce::Auto | Enforce::Observe if !kernel.holds => return Ok(None),
            Enforce::Kernel if !(kernel.holds && kernel.missing.is_empty()) => {
                let lacks = match &kernel.missing[..] {
                    [] => "this system has no kernel support".to_owned(),
                    missing => format!("this kernel lacks {}", missing.join(", ")),
                };
                anyhow::bail!(
                    "agent `{}` does not start: it requires a zone enforced by the kernel (`enforce \
                     = \"kernel\"`), and {lacks}; use \"auto\" for as much as this kernel supports, \
                     or \"protocol\"",
                    agent.id
                );
            }
            Enforce::Auto | Enforce::Kernel | Enforce::Observe => {}
        }
        // It must exist before its real path can be resolved.
        let private = self.private.join(agent.id.as_str());
        make_folder(&private).with_context(|| format!("cannot create {}", private.display()))?;
        let mut reach = agent.reach(&private, Some(&self.private));
        // Its client starts this program for the tools of the team.
        reach.readable.extend(GrantedPlace::now(&environment::program()));
        reach.readable.extend(led.and_then(|led| GrantedPlace::now(led.folder.as_ref()?)));
        let bounds = Bounds::new(zone.clone(), reach);
        let bounds = bounds.with_context(|| format!("the zone of agent `{}`", agent.id))?;
        match bounds.held_alone() {
            Some(alone) if agent.zone.enforce == Enforce::Kernel => anyhow::bail!(
                "agent `{}` does not start: the kernel must hold its zone (`enforce = \"kernel\"`), and {alone}",
                agent.id
            ),
            Some(alone) => tracing::warn!(agent = %agent.id, "{alone}"),
            None => {}
        }
        Ok(Some(Arc::new(bounds)))
    }

    /// The variables that name an agent's run, and what started that. They inform: who asks for a run
    /// is known by the token.
    fn genealogy(&self, config: &Config, agent: &config::Agent) -> BTreeMap<String, String> {
        // Empty ones hide those of a run that this team itself is in.
        let inherited = ["EISEN_RUN", "EISEN_PARENT"].into_iter();
        let inherited = inherited.filter(|name| std::env::var_os(name).is_some());
        let own = self.runs.variables(&lineage(config, &agent.id));
        let all = inherited.map(|name| (name, String::new())).chain(own);
        all.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn environment(
        &self,
        agent: &config::Agent,
        own: BTreeMap<String, String>,
        is_orchestrator: bool,
    ) -> BTreeMap<String, String> {
        let path = own.get("PATH").cloned();
        // An agent's `env` can't override the team's variables.
        let mut environment = own;
        environment.extend(if is_orchestrator {
            self.environment.of_orchestrator(&agent.id, agent.depth, path.as_ref())
        } else {
            self.environment.of(&agent.id, agent.depth)
        });
        environment
    }
}

impl TeamSlots {
    /// The slot that an agent takes; None if its profile has no limit.
    fn of(&self, config: &Config, agent: &config::Agent) -> Option<SlotWish> {
        let base = agent.profile.base.as_str();
        let base = match &self.of_run {
            Some(_) if agent.parent.is_none() => return None,
            Some(shared) => shared.base_of(base),
            None => base,
        };
        Some(SlotWish {
            slots: self.slots.clone(),
            base: base.to_owned(),
            limit: *config.shared.slots.get(base)?,
            team: config.team.name.clone(),
            above: lineage(config, &agent.id).split_off(1),
        })
    }
}

fn compile_zones(
    config: &Config,
    observes: &dyn Fn(&config::Agent) -> bool,
) -> anyhow::Result<Vec<Arc<Zone>>> {
    let compile = |agent: &config::Agent| {
        let spec = &agent.zone.spec;
        let drafts = journals::drafts(&spec.eisen_dir, &config.team.name);
        let zone = if observes(agent) {
            Zone::observed(spec, &config::Secrets::Ask.asked(), drafts)
        } else {
            Zone::compile(spec).map(|zone| zone.with_drafts_in(drafts))
        };
        zone.map(Arc::new).with_context(|| format!("the zone of agent `{}`", agent.id))
    };
    config.agents.iter().map(compile).collect()
}

fn hold_of(config: &Config) -> HashMap<AgentId, bool> {
    let own = config.agents.iter().filter_map(|agent| Some((agent.id.clone(), agent.on_block?)));
    own.map(|(id, on_block)| (id, on_block == config::OnBlock::Hold)).collect()
}

/// How long a write waits for the lock of another agent, unless the configuration says.
const LOCK_PATIENCE: Duration = Duration::from_mins(2);

/// How conflicts of writes are handled; None: they are not looked for.
pub(crate) fn conflicts(config: &Config, unattended: bool) -> Option<conflicts::ConflictRules> {
    let config::Conflicts { strategy, lock } = config.conflicts.clone()?;
    let asks = !unattended || config.orchestrator.named().is_some();
    Some(conflicts::ConflictRules {
        strategy,
        lock,
        hold: asks && config.orchestrator.on_block == config::OnBlock::Hold,
        hold_of: if asks { hold_of(config) } else { HashMap::new() },
        hold_timeout: config.orchestrator.holds_for().unwrap_or(LOCK_PATIENCE),
    })
}

fn ids(config: &Config) -> impl Iterator<Item = AgentId> {
    config.agents.iter().map(|agent| agent.id.clone())
}

fn owners(config: &Config, zones: &[Arc<Zone>]) -> Vec<(AgentId, Arc<Zone>)> {
    let owning = config.agents.iter().zip(zones).filter(|(agent, _)| agent.zone.own);
    owning.map(|(agent, zone)| (agent.id.clone(), zone.clone())).collect()
}

/// The resource limits of an agent with its terminals.
pub(crate) fn limits(agent: &config::Agent) -> Limits {
    Limits { memory_mb: agent.memory_mb, processes: agent.processes }
}

fn usage_scope(agent: &config::Agent) -> UsageScope {
    match agent.profile.usage.unwrap_or_default() {
        UsageCount::Turn => UsageScope::Turn,
        UsageCount::Session => UsageScope::Session,
        UsageCount::Call => UsageScope::Call,
        UsageCount::Context => UsageScope::Context,
        UsageCount::Nothing => UsageScope::Nothing,
    }
}

/// The environment of an agent's own process. What it starts does not get the headers of one that runs
/// elsewhere, and its terminals not the token of its provider.
fn for_itself(
    agent: &config::Agent,
    led: Option<&LedAgent>,
    mut env: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    env.extend(led.into_iter().flat_map(|led| led.launch.env.clone()));
    if let Some(remote) = &agent.remote {
        let headers = remote.headers.iter().map(|(name, value)| (name.as_str(), value.reveal()));
        let headers: serde_json::Map<_, _> =
            headers.map(|(name, value)| (name.to_owned(), value.into())).collect();
        env.insert(remote::HEADERS.to_owned(), serde_json::Value::Object(headers).to_string());
    }
    env
}

fn args_of(led: Option<&LedAgent>) -> &[String] {
    led.map_or(&[], |led| &led.launch.args)
}

fn restarts(agent: &config::Agent) -> Restarts {
    let restart = &agent.restart;
    Restarts {
        policy: match restart.policy {
            RestartPolicy::Never => Policy::Never,
            RestartPolicy::OnFailure => Policy::OnFailure,
            RestartPolicy::Always => Policy::Always,
        },
        max: restart.max_restarts,
        within: restart.within,
        backoff: restart.backoff,
        with_health: agent.remote.is_some(),
    }
}

fn log(eisen_dir: &Path, team: &str, agent: &AgentId) -> PathBuf {
    eisen_dir.join("logs").join(team).join(format!("{agent}.log"))
}

/// Returns the orchestrator, for the tracker and for routing.
pub(crate) fn orchestrator(config: &Config) -> (OrchestratorView, Orchestrator) {
    let session = SessionId::new(format!("team-{}", config.team.name));
    let key = SessionKey::new(AgentId::new("orchestrator"), session);
    let host = config.shared.hub.as_ref().and_then(|hub| hub.host.clone());
    if let Some((agent, host)) = config.orchestrator.elsewhere.clone().zip(host) {
        return (OrchestratorView::External(key), Orchestrator::Elsewhere { agent, host });
    }
    if let Some(agent) = config.orchestrator.agent.clone() {
        return (OrchestratorView::Agent(agent.clone()), Orchestrator::Agent(agent));
    }
    (OrchestratorView::External(key.clone()), Orchestrator::External(key))
}
