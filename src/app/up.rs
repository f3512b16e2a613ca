use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::environment::{self, TeamEnvironment};
use super::team::Supervised;
use super::{
    Failure, StopSignals, announce_port, backlog, console, drained, limits, recorder, scratch,
    tracker_settings,
};
use crate::agent::{AgentSettings, Policy, Restarts, Surroundings};
use crate::bus::Bus;
use crate::client_host::{HostSettings, PermissionPolicy};
use crate::config::{self, Config, Permissions, RestartPolicy};
use crate::extract::DiskWorkspace;
use crate::model::{AgentId, SessionId, SessionKey};
use crate::process::{Command, Launcher};
use crate::routing::{self, Orchestrator, RoutingHandle};
use crate::serve::{self, Handles, RunFile, Server, Tokens};
use crate::session::RegistryHandle;
use crate::supervisor::{Member, Supervisor};
use crate::tracker::{OrchestratorView, TrackerHandle};
use crate::zone::Zone;

/// What is added to both graces of an orderly stop before agents are called late.
const STOP_MARGIN: Duration = Duration::from_secs(3);

/// How long clients on the port may take to receive what waits for them at the end.
const LAST_LINES: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct UpOptions {
    pub config: PathBuf,
    /// In place of the configuration's.
    pub port: Option<u16>,
}

/// Runs a team until it is asked to stop.
pub async fn up(options: UpOptions) -> Result<(), Failure> {
    let usage = |error: anyhow::Error| Failure::Usage(error);
    let depth = environment::depth().map_err(|error| usage(error.into()))?;
    let eisen_dir = environment::eisen_dir().map_err(usage)?;
    let mut config =
        config::Config::load(&options.config, &eisen_dir).map_err(super::config_errors)?;
    if let Some(port) = options.port {
        config.team.listen.set_port(port);
    }
    run(config, eisen_dir, depth).await.map_err(Failure::Run)
}

async fn run(mut config: Config, eisen_dir: PathBuf, depth: u32) -> anyhow::Result<()> {
    let mut stop = StopSignals::listen()?;
    let listener = serve::bind(config.team.listen, &eisen_dir).await?;
    let address = listener.local_addr()?;
    let tokens = Tokens::generate()?;
    let run_file = RunFile::create(&eisen_dir, &config.team.name, address, tokens.owner())?;
    announce_port(address.port());

    let scratch = if config.team.scratch {
        let scratch = scratch::copy(&config.team.workspace)?;
        config.move_workspace(scratch.path());
        tracing::info!(folder = %scratch.path().display(), "the team works on a copy");
        Some(scratch)
    } else {
        None
    };
    crate::process::become_subreaper().context("cannot adopt what agents leave behind")?;

    let cancel = CancellationToken::new();
    let mut rooms = JoinSet::new();
    let bus = Bus::new(backlog(config.port));
    let events = bus.subscribe();
    let console = tokio::task::spawn_blocking(move || console::show(events, address));

    let (view, orchestrator) = orchestrator(&config);
    let (tracker, tracking) =
        TrackerHandle::spawn(tracker_settings(config.tracker), view, bus.clone(), cancel.clone());
    rooms.spawn(tracking);

    let (registry, keeping) = RegistryHandle::spawn(&eisen_dir, cancel.clone());
    rooms.spawn(keeping);
    let (recorder, recording) = recorder::start(tracker.clone(), registry.clone(), cancel.clone());
    rooms.spawn(recording);

    let zones = compile_zones(&config)?;
    let settings = routing::Settings {
        orchestrator,
        hold: config.orchestrator.on_block == config::OnBlock::Hold,
        hold_timeout: config.orchestrator.hold_timeout,
        owners: owners(&config, &zones),
    };
    let (routing, deciding) =
        RoutingHandle::spawn(settings, bus.clone(), tracker.clone(), cancel.clone());
    rooms.spawn(deciding);

    let environment = TeamEnvironment { team: config.team.name.clone(), address, depth };
    let surroundings = Surroundings {
        launcher: Launcher::this_program()?,
        bus: bus.clone(),
        tracker: tracker.clone(),
        routing: routing.clone(),
        places: Arc::new(Semaphore::new(match config.team.max_running {
            0 => Semaphore::MAX_PERMITS,
            places => places,
        })),
        workspace: Arc::new(DiskWorkspace::new(config.team.workspace.clone())),
    };
    let member = |(agent, zone)| member(&config, agent, zone, &environment, &tokens, &eisen_dir);
    let members = config.agents.iter().zip(zones).map(member).collect();
    let supervisor = Supervisor::new(members, &surroundings, &cancel);
    let server = Server::new(
        listener,
        bus,
        Arc::new(Handles {
            tracker: tracker.clone(),
            routing,
            registry,
            recorder: Some(recorder),
            follows_active: config.orchestrator.agent.is_none(),
        }),
        Arc::new(Supervised { roster: supervisor.roster(), tracker }),
        tokens,
        limits(config.port),
    )?;
    warn_of_tier(&config);

    // Before clients are heard: to none of them is an agent that is about to start `stopped`.
    supervisor.start().await;
    rooms.spawn(server.run(cancel.clone()));
    stop.next().await;
    let deadline = config.team.stop_grace * 2 + STOP_MARGIN;
    tokio::select! {
        () = supervisor.stop(deadline) => {}
        // Asked a second time: what still runs dies with the supervisor's tasks.
        () = stop.next() => {}
    }
    drained(&surroundings.launcher).await;
    cancel.cancel();
    drop(surroundings);
    // Past this a client that does not read loses its last lines.
    let _ = tokio::time::timeout(LAST_LINES, async {
        rooms.join_all().await;
        let _ = console.await;
    })
    .await;
    drop((run_file, scratch));
    Ok(())
}

/// Returns who orchestrates, as the tracker and as routing need to know it.
fn orchestrator(config: &Config) -> (OrchestratorView, Orchestrator) {
    if let Some(agent) = config.orchestrator.agent.clone() {
        return (OrchestratorView::Agent(agent.clone()), Orchestrator::Agent(agent));
    }
    let session = SessionId::new(format!("team-{}", config.team.name));
    let key = SessionKey::new(AgentId::new("orchestrator"), session);
    (OrchestratorView::External(key.clone()), Orchestrator::External(key))
}

/// Says what `enforce = "auto"` comes down to.
fn warn_of_tier(config: &Config) {
    let auto = config.agents.iter().filter(|agent| agent.zone.enforce == config::Enforce::Auto);
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

fn member(
    config: &Config,
    agent: &config::Agent,
    zone: Arc<Zone>,
    team: &TeamEnvironment,
    tokens: &Tokens,
    eisen_dir: &Path,
) -> Member {
    let is_orchestrator = config.orchestrator.agent.as_ref() == Some(&agent.id);
    // What the team says of itself is not an agent's to change.
    let mut environment = agent.env.clone();
    environment.extend(if is_orchestrator {
        team.of_orchestrator(&agent.id, tokens.orchestrator(), agent.env.get("PATH"))
    } else {
        team.of(&agent.id)
    });
    let log = eisen_dir.join("logs").join(&config.team.name).join(format!("{}.log", agent.id));
    let settings = AgentSettings {
        id: agent.id.clone(),
        command: Command {
            program: agent.command[0].clone().into(),
            args: agent.command[1..].iter().map(Into::into).collect(),
            cwd: agent.cwd.clone(),
            env: environment.clone(),
        },
        log,
        zone,
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
        restarts: Restarts {
            policy: match agent.restart.policy {
                RestartPolicy::Never => Policy::Never,
                RestartPolicy::OnFailure => Policy::OnFailure,
                RestartPolicy::Always => Policy::Always,
            },
            max: agent.restart.max_restarts,
            within: agent.restart.within,
            backoff: agent.restart.backoff,
        },
        stop_grace: config.team.stop_grace,
    };
    Member { settings, depends_on: agent.depends_on.clone(), autostart: agent.autostart }
}
