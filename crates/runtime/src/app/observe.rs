//! `observe`: runs one agent between an editor and the port. Owns the order of start and stop.

mod plugged;
mod relay;
mod status;
mod team;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};

pub use self::plugged::ObservePlugin;
use self::plugged::{Plugged, PluginTask, extractor};
use self::relay::relay;
use self::status::ObservedStatus;
use self::team::Observed;
use crate::app::rooms::{Wiring, backlog};
use crate::bus::Bus;
use crate::config;
use crate::home::environment::TeamEnvironment;
use crate::home::journals;
use crate::home::leftovers::drained;
use crate::home::{environment, leftovers};
use crate::journal;
use crate::model::{AgentId, OnViolation, SessionId, SessionKey};
use crate::process::{Command, Exit, Family, Launcher, Limits, Process, Stopped, Sweeper};
use crate::program::{Failure, StopSignals, announce_port, bind, limits};
use crate::proxy::{Gatekeeping, Proxy, ProxyError, RelayHandle, Rules, Vitals};
use crate::routing::{self, Orchestrator, RoutingHandle};
use crate::serve::{self, RunFile, Server, Tokens};
use crate::tracker::{OrchestratorView, TrackerHandle};
use crate::wire::Tier;
use crate::zone::{GitAccess, Zone, ZoneSpec};

/// How long an agent may take to end after its input was closed, and again after SIGTERM.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// How long clients of the port may take to receive their queued lines at the end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct ObserveOptions {
    pub command: Vec<OsString>,
    /// None: the default port, or a free one if that is busy.
    pub port: Option<u16>,
    /// None: the command's file name.
    pub agent_id: Option<String>,
    /// The session id shown on the port until the agent opens a session.
    pub session_id: Option<String>,
    /// The working directory and workspace; None: that of this process.
    pub cwd: Option<PathBuf>,
    pub zone: Vec<String>,
    pub deny: Vec<String>,
    pub on_violation: OnViolation,
    /// Whether to build the code graph.
    pub graph: bool,
    /// Whether to keep a journal, in the folder of the agent's id.
    pub journal: bool,
    /// None: the agent speaks ACP.
    pub plugin: Option<ObservePlugin>,
}

/// Runs one agent between the editor on standard input and output, until either ends; returns
/// the agent's own exit code, 128 + n after signal n.
pub async fn observe(options: ObserveOptions) -> Result<u8, Failure> {
    let depth = environment::depth().map_err(|error| Failure::Usage(error.into()))?;
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let cwd = options.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
    let workspace = std::fs::canonicalize(&cwd)
        .with_context(|| format!("cannot use {} as working directory", cwd.display()))
        .map_err(Failure::Usage)?;
    let agent = agent_id(&options).map_err(Failure::Usage)?;
    let zone = zone(&options, &workspace, &eisen_dir).map_err(Failure::Usage)?;
    let plugin = options.plugin.as_ref().map(|plugin| Plugged::find(plugin, &eisen_dir));
    let plugin = plugin.transpose().map_err(Failure::Usage)?;
    if zone.is_some() && plugin.as_ref().is_some_and(|plugin| !plugin.gates) {
        tracing::warn!("the plugin can't enforce a zone: accesses outside of it are only reported");
    }
    environment::prepare(&eisen_dir).map_err(Failure::Usage)?;
    let listener = bind(options.port, &eisen_dir).await.map_err(Failure::Run)?;
    let on_violation = options.on_violation;
    let rules = zone.map(|zone| Rules {
        zone,
        bounds: None,
        orchestrator_permits: false,
        has_tools: false,
        on_violation,
        on_loop: crate::model::OnLoop::Off,
    });
    let checked = CheckedOptions { agent, workspace, rules, plugin, listener, depth };
    run(options, checked, &eisen_dir).await.map_err(Failure::Run)
}

/// The options after validation.
struct CheckedOptions {
    agent: AgentId,
    workspace: PathBuf,
    rules: Option<Rules>,
    plugin: Option<Plugged>,
    listener: TcpListener,
    depth: u32,
}

async fn run(
    options: ObserveOptions,
    checked: CheckedOptions,
    eisen_dir: &Path,
) -> anyhow::Result<u8> {
    let CheckedOptions { agent, workspace, rules, plugin, listener, depth } = checked;
    let mut signals = StopSignals::listen()?;
    let (address, name) = (listener.local_addr()?, format!("observe-{}", std::process::id()));
    let tokens = Tokens::generate(None)?;
    let _run_file = run_file(eisen_dir, &name, address, &tokens)?;
    announce_port(address.port());
    crate::process::become_subreaper()
        .context("cannot become the subreaper of the agent's processes")?;

    let port_limits = config::Port::default();
    let bus = Bus::encoding(backlog(port_limits), serve::encode);
    let is_held = rules.is_some() && plugin.as_ref().is_none_or(|plugin| plugin.gates);
    let tier = if is_held { Tier::Protocol } else { Tier::None };
    let first = SessionId::new(options.session_id.clone().unwrap_or_default());
    let view = OrchestratorView::None(SessionKey::new(agent.clone(), first));
    let journal = options.journal.then(|| journal_of(&agent, &workspace, eisen_dir));
    let mut wiring =
        Wiring::start(bus.clone(), config::Tracker::default(), view, eisen_dir, journal);
    let (cancel, tracker) = (wiring.cancel.clone(), wiring.tracker.clone());
    wiring.note_workspace(&workspace);
    wiring.go_on_behind_turns().await;
    let routing = wiring.route(unrouted());

    let environment = TeamEnvironment::new(&name, address, None, depth, &tokens, None);
    let command = command(options.command, workspace.clone(), environment.of(&agent, 0));
    let (limits, launcher) = (limits(port_limits), Launcher::this_program()?);
    let sweeper = Sweeper::start(&launcher)?;
    let family = launcher.family(Limits::default());
    let (process, stdio) = launcher.within(&family).spawn(&command).await?;
    let status = ObservedStatus::new(&agent, process.pid(), bus.clone());
    let (vitals, (plugin_problem, problem)) = (Vitals::new(), watch::channel(None));
    let own = vitals.clone();
    wiring.tasks.spawn(status.clone().log_problems(own, family.clone(), problem, cancel.clone()));
    wiring.watch_unconfined(&workspace, eisen_dir, options.graph);
    let server = Server::new(
        listener,
        bus,
        // Its sessions belong to the editor, which keeps them itself.
        Arc::new(wiring.sources(&routing, None)),
        observed(&status, tier, &tracker, family),
        tokens,
        limits,
    )?;
    wiring.tasks.spawn(server.run(cancel));

    wiring.tasks.spawn(forward_stderr(stdio.stderr));
    let (extractor, plugin_task) = extractor(
        plugin,
        &launcher,
        workspace,
        options.session_id,
        rules.is_some(),
        plugin_problem,
    )?;
    let proxy = Proxy {
        account: crate::budget::Account::unlimited(agent.clone()),
        model_calls: None,
        agent,
        extractor,
        tracker: tracker.clone(),
        gate: rules.map(|rules| gatekeeping(rules, routing)),
        running: None,
        vitals,
        files: None,
        tally: Arc::default(),
    };
    let (exited, ended) = oneshot::channel();
    let relaying = relay(proxy, stdio.stdout, stdio.stdin, ended);
    let (relay, relayed) = relaying.context("cannot relay between the editor and the agent")?;
    let mut plugin_task = Box::pin(PluginTask::serve(plugin_task, &relay));

    let End { exit, signalled, failed } =
        end(process, &mut signals, &relay, &mut plugin_task).await;
    let _ = exited.send(exit.to_string());
    flushed(relayed, signalled, &mut signals).await;
    // Ends the plugin's process.
    drop(plugin_task);
    let all_ended = drained(&launcher).await;
    let code = exit_code(exit).max(u8::from(failed.is_some()));
    status.ended(exit, failed);
    tracker.settled().await;
    wiring.end(std::future::ready(()), FLUSH_TIMEOUT).await;
    sweeper.end(all_ended);
    Ok(code)
}

/// Waits until the editor received all output of the agent: for a slow editor until a signal
/// arrives.
async fn flushed(
    relayed: oneshot::Receiver<Result<(), ProxyError>>,
    signalled: bool,
    signals: &mut StopSignals,
) {
    let flush_timeout = if signalled { FLUSH_TIMEOUT } else { Duration::MAX };
    tokio::select! {
        relayed = relayed => if let Ok(Err(error)) = relayed {
            tracing::error!(%error, "the relay broke off");
        },
        () = tokio::time::sleep(flush_timeout) => {}
        _ = signals.next() => {}
    }
}

/// How an agent ended.
struct End {
    exit: Exit,
    /// A signal stopped it.
    signalled: bool,
    /// The failure of its plugin that stopped it.
    failed: Option<String>,
}

/// Waits until the agent ends, or stops it after a signal, a plugin failure or the editor's end.
async fn end(
    process: Process,
    signals: &mut StopSignals,
    relay: &RelayHandle,
    plugin_task: &mut (impl Future<Output = String> + Unpin),
) -> End {
    let (mut signalled, mut failed) = (false, None);
    tokio::select! {
        exit = process.exit() => {
            process.kill().await;
            return End { exit, signalled, failed };
        }
        _ = signals.next() => signalled = true,
        why = plugin_task => failed = Some(why),
        () = relay.closed() => {}
    }
    relay.close_agent().await;
    End { exit: stop(process).await, signalled, failed }
}

fn command(words: Vec<OsString>, cwd: PathBuf, env: BTreeMap<String, String>) -> Command {
    let mut words = words.into_iter();
    Command { program: words.next().unwrap_or_default(), args: words.collect(), cwd, env }
}

/// Cleans up after killed runs, and creates the run file of this one.
fn run_file(
    eisen_dir: &Path,
    name: &str,
    address: SocketAddr,
    tokens: &Tokens,
) -> anyhow::Result<RunFile> {
    leftovers::clean(eisen_dir);
    let as_team = (name, address, tokens.owner());
    Ok(RunFile::with_remains(eisen_dir, as_team, leftovers::remains())?)
}

fn observed(
    status: &ObservedStatus,
    zone: Tier,
    tracker: &TrackerHandle,
    family: Family,
) -> Arc<Observed> {
    let (status, tracker) = (status.subscribe(), tracker.clone());
    Arc::new(Observed { status, zone, tracker, family })
}

fn gatekeeping(rules: Rules, routing: RoutingHandle) -> Gatekeeping {
    Gatekeeping { rules: watch::channel(rules).1, routing, permits: None, conflicts: None }
}

/// Routing without an orchestrator: every blocked access is denied.
fn unrouted() -> routing::Settings {
    routing::Settings::new(Orchestrator::Nobody, routing::Rules::default())
}

async fn stop(process: Process) -> Exit {
    match process.stop(STOP_GRACE, STOP_GRACE).await {
        Stopped::OnEof(exit) | Stopped::OnTerm(exit) => exit,
        Stopped::Killed => Exit::KILLED,
    }
}

fn exit_code(exit: Exit) -> u8 {
    let code = match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
    };
    u8::try_from(code).unwrap_or(1)
}

fn agent_id(options: &ObserveOptions) -> anyhow::Result<AgentId> {
    if let Some(id) = &options.agent_id {
        anyhow::ensure!(
            config::is_name(id),
            "--agent-id: an id is up to 64 letters, digits, `.`, `_`, `-`, with a letter or digit first"
        );
        return Ok(AgentId::new(id.as_str()));
    }
    let program =
        options.command.first().context("no command: `eisen-core observe -- CMD ARGS…`")?;
    let name = Path::new(program).file_name().unwrap_or(program).to_string_lossy().into_owned();
    Ok(AgentId::new(name))
}

fn zone(
    options: &ObserveOptions,
    workspace: &Path,
    eisen_dir: &Path,
) -> anyhow::Result<Option<Arc<Zone>>> {
    if options.zone.is_empty() && options.deny.is_empty() {
        return Ok(None);
    }
    let checked = |flag: &str, patterns: &[String]| -> anyhow::Result<Vec<String>> {
        let one = |written: &String| {
            config::zone_pattern(written, workspace, "`--deny`")
                .map_err(|why| anyhow::anyhow!("{flag}: {why}"))
        };
        patterns.iter().map(one).collect()
    };
    let (allowed, denied) = (checked("--zone", &options.zone)?, checked("--deny", &options.deny)?);
    for pattern in allowed.iter().chain(&denied) {
        if let Some(hint) = config::check::pattern_hint(pattern, workspace) {
            tracing::warn!("`{pattern}` {hint}");
        }
    }
    let everything = vec!["**".to_owned()];
    let spec = ZoneSpec {
        denied,
        readable: config::base_patterns().into_iter().map(str::to_owned).collect(),
        git: GitAccess::Read,
        ..ZoneSpec::new(
            workspace.to_owned(),
            if allowed.is_empty() { everything } else { allowed },
            eisen_dir.to_owned(),
        )
    };
    let zone = Zone::compile(&spec).context("--zone and --deny take globs such as 'src/ui/**'")?;
    Ok(Some(Arc::new(zone)))
}

/// One file for all runs with the same agent id.
fn journal_of(agent: &AgentId, workspace: &Path, eisen_dir: &Path) -> journal::Settings {
    let team = format!("observe-{agent}");
    journals::note_workspace(&team, workspace, eisen_dir);
    let path = config::journal_path(eisen_dir, &team);
    let quotas = Some(journal::Quotas { keep_days: 0, max_mb: config::MAX_MB });
    journal::Settings { team, path, keep: journal::Keep::default(), quotas }
}

async fn forward_stderr(mut stderr: pipe::Receiver) {
    let _ = tokio::io::copy(&mut stderr, &mut tokio::io::stderr()).await;
}
