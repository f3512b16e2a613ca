//! `up`: runs a team from its configuration until a signal stops it, or its work is done. Owns the
//! order of start and stop.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use eisen_base::task;
use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::access::grants;
use crate::agent::{Admission, Surroundings};
use crate::app::changes::{Changes, follow_setbacks};
use crate::app::listeners::Listeners;
use crate::app::members::{Conditions, TeamSlots};
use crate::app::rooms::{Closing, Wiring, backlog};
use crate::app::scoped_tokens::with_tokens;
use crate::app::team::{Supervised, supervised};
use crate::app::web_page::{WebPage, WebWish};
use crate::app::{
    budget, figures, first_prompt, hub, journal, killed_run, limits, members, notices, streams,
    telemetry, undo,
};
use crate::branches::TeamTrees;
use crate::budget::Budgets;
use crate::bus::Bus;
use crate::client_host::TurnAnswer;
use crate::config::{Config, Layered, Team};
use crate::conflicts::Conflicts;
use crate::console;
use crate::console::ConsoleFile;
use crate::extract::DiskWorkspace;
use crate::home::journals;
use crate::home::leftovers::drained;
use crate::home::{environment, leftovers, scratch};
use crate::kernel::trial;
use crate::kernel::warn_of_tier;
use crate::model::TeamMemory;
use crate::process::Launcher;
use crate::program::{Failure, StopSignal, StopSignals, announce_port, limits, note};
use crate::providers::{TeamProviders, withdraw_keys};
use crate::routing::{self, Orchestrator, RoutingHandle};
use crate::serve::{self, Ledger, Remains, RunFile, Tokens};
use crate::slots::{Machine, Slots};
use crate::supervisor::{Member, Roster, Supervisor};
use crate::team_file::hints;
use crate::team_file::load::{load, log_overlay, note_taken};
use crate::team_file::mode::TeamMode;
use crate::team_state::{person_queue, recorder, tool_use};
use crate::tracker::OrchestratorView;
use crate::turn::command::{TeamCommand, WAITING};

/// Time added to both grace periods of an orderly stop before agents are killed.
const STOP_MARGIN: Duration = Duration::from_secs(3);

/// How long clients of the port may take to receive their queued lines at the end.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct UpOptions {
    pub config: PathBuf,
    /// Overrides the configuration's port.
    pub port: Option<u16>,
    /// None: as the configuration says.
    pub web: Option<WebWish>,
    /// The console file of a detached team, which standard output is redirected to.
    pub console: Option<PathBuf>,
    pub mode: TeamMode,
    /// For the first agent that is ready.
    pub prompt: Option<String>,
}

/// Runs a team until a signal stops it.
pub async fn up(options: UpOptions) -> Result<(), Failure> {
    let usage = |error: anyhow::Error| Failure::Usage(error);
    let depth = environment::depth().map_err(|error| usage(error.into()))?;
    let eisen_dir = environment::eisen_dir().map_err(usage)?;
    let layered = load(&options.config, &eisen_dir)?;
    withdraw_keys(&layered.config.shared)?;
    if options.console.is_some() {
        // Survive the terminal.
        nix::unistd::setsid().map_err(|errno| Failure::Run(errno.into()))?;
    }
    environment::prepare(&eisen_dir).map_err(usage)?;
    let UpOptions { config: file, port, web, console, mode, prompt } = options;
    let output = console.map_or(Output::Console, |file| Output::File(ConsoleFile::new(file)));
    let stop = StopSignals::listen().map_err(|error| Failure::Run(error.into()))?;
    let slots = TeamSlots { slots: Slots::new(&eisen_dir), of_run: None };
    let start = TeamStart { file, layered, eisen_dir, depth, port, web, output, slots, mode, stop };
    // It is large, and there is one.
    let run = Box::pin(run_team(start, |team| first_prompt::send(team, prompt))).await;
    let (_, closing) = run.map_err(Failure::Run)?;
    closing.await;
    Ok(())
}

/// Where the events of a team are shown.
pub(crate) enum Output {
    /// On standard output, and the port on standard error.
    Console,
    /// As on the console, where standard output is redirected to a file.
    File(ConsoleFile),
    Nowhere,
}

/// A team that is about to start.
pub(crate) struct TeamStart {
    /// The file of its configuration.
    pub(crate) file: PathBuf,
    pub(crate) layered: Layered,
    pub(crate) eisen_dir: PathBuf,
    /// Teams above this one.
    pub(crate) depth: u32,
    /// Overrides the configuration's port.
    pub(crate) port: Option<u16>,
    pub(crate) web: Option<WebWish>,
    pub(crate) output: Output,
    pub(crate) slots: TeamSlots,
    pub(crate) mode: TeamMode,
    pub(crate) stop: StopSignals,
}

/// The folder of a team's tasks.
fn tasks_of(config: &Config, eisen_dir: &Path) -> PathBuf {
    journals::team_folder(eisen_dir, &config.team.name).join("tasks")
}

/// Runs a team until its work is done, or a signal stops it.
pub(crate) async fn run_team<T>(
    start: TeamStart,
    work: impl AsyncFnOnce(Arc<Supervised>) -> T,
) -> anyhow::Result<(Result<T, StopSignal>, Closing)> {
    let TeamStart { file, layered, eisen_dir, depth, port, web, output, slots, .. } = start;
    let (mode, mut stop) = (start.mode, start.stop);
    let config = layered.config.clone();
    let is_web = web.is_some() || config.web.is_some();
    let listeners = Listeners::bind(&config, port, &eisen_dir).await?;
    let (address, tools_address) = listeners.addresses()?;
    let tokens = Tokens::generate(config.orchestrator.agent.clone())?;
    leftovers::clean(&eisen_dir);
    let (run_file, private) = run_file(&config, &eisen_dir, address, tokens.owner())?;
    let (launcher, sweeper) = limits::launcher(&config)?;
    let ledger = announce(&layered, &eisen_dir, &run_file, address, &launcher, &output)?;

    let (scratch, workspace) = scratch::workspace(&config.team, &ledger)?;
    let private = scratch::private(&private)?;
    let kernel = trial::begin(launcher.clone(), private.path().to_owned(), &eisen_dir);

    let bus = Bus::encoding(backlog(config.port), serve::encode);
    let (answer_sender, console) = show(output, address, &config, &bus);

    let (view, orchestrator) = members::orchestrator(&config);
    let (mut wiring, recorder) =
        wire(bus, &config, mode.unattended, view, &eisen_dir, &workspace, private.path());
    let (cancel, notices) = (wiring.cancel.clone(), wiring.cancel.child_token());

    let killed_at = killed_run::go_on(&wiring).await;
    let budgets = budget::start(&config, &mut wiring).await;
    let streams = streams::start(&config, &mut wiring, &eisen_dir).await;
    let conditions = Conditions {
        runs: wiring.keep_runs(&eisen_dir, &config.team.name, depth),
        environment: wiring.environment(&config, address, tools_address, depth, &tokens),
        eisen_dir,
        scratch: scratch.as_ref().map(|scratch| scratch.path().to_owned()),
        private: private.path().to_owned(),
        kernel: kernel.await,
        answers: answer_sender,
        journal: wiring.journal.clone(),
        providers: providers(&config, &mut wiring, &budgets, private.path()).await?,
        budgets,
        owners: wiring.owners.clone(),
        conflicts: wiring.conflicts.clone().filter(Conflicts::looks),
        slots,
        mode,
        trees: TeamTrees::default(),
    };
    let (members, rules) = members_of(&config, &conditions, &mut stop).await?;
    let routing = route(&mut wiring, orchestrator, rules, &conditions, &config)?;
    let surroundings = surround(launcher, &workspace, &conditions, &mut wiring, &routing, &config);
    let supervisor = Supervisor::new(surroundings.clone(), cancel.clone());
    let roster = supervisor.roster();
    wiring.keep_tasks(tasks_of(&config, &conditions.eisen_dir), &routing, roster.clone());
    let undoer = undo::undoer(&wiring, roster.clone(), &workspace).await;
    killed_run::catch_up(&wiring, &workspace, killed_at).await;
    let web = WebPage::of_team(web, &config, &conditions, &cancel);
    let channels =
        notices::start(&config, &surroundings, &roster, &conditions.budgets, &web, &notices);
    let (changes, commands) = changes_of(&mut wiring, roster.clone());
    let page = web.clone();
    let team =
        supervised(&wiring, &conditions, &config, roster.clone(), changes, undoer, page, streams);
    let sources =
        with_tokens(wiring.sources(&routing, Some((recorder, &config))), &conditions.eisen_dir);
    let server = listeners.server(&wiring.bus, sources, &team, tokens, limits(config.port))?;
    warn_of_tier(&conditions.kernel, mode, config.agents.iter());
    let measure = figures::starter(&wiring, &surroundings, roster, &conditions.budgets, &server);
    hub::join(&config, &conditions.eisen_dir, server.gateway(), &mut wiring);
    web.connect(server.gateway(), Some(measure)).announce(is_web).await?;

    let mut changes = Changes::new(supervisor, &surroundings, channels, conditions, file, layered);
    // Before the port serves clients: no client sees a starting agent as `stopped`.
    changes.supervisor.assemble(members).await;
    wiring.tasks.spawn(server.run(cancel));
    let done = until_stopped(changes, commands, &mut stop, work(team)).await;
    notices.cancel();
    web.end();
    let all_ended = drained(&surroundings.launcher).await;
    drop(surroundings);
    let removed = task::spawn_blocking(move || drop(private));
    let closing = async move {
        wiring.end(async { drop(console.await) }, FLUSH_TIMEOUT).await;
        sweeper.end(all_ended);
        let _ = removed.await;
        drop((run_file, scratch));
    };
    Ok((done, closing.boxed()))
}

/// Starts the endpoint that stands in for the team's providers, if it has any.
async fn providers(
    config: &Config,
    wiring: &mut Wiring,
    budgets: &Budgets,
    private: &Path,
) -> anyhow::Result<TeamProviders> {
    let counts = (wiring.tracker.clone(), budgets.clone());
    let folder = led_folder(private);
    let (providers, serving) =
        TeamProviders::start(config, counts, folder, wiring.cancel.clone()).await?;
    wiring.tasks.spawn(serving);
    Ok(providers)
}

/// The folder for the files that lead agents to their providers: beside that for their temporary files, in which
/// each has its own part alone.
fn led_folder(private: &Path) -> PathBuf {
    let mut name = private.as_os_str().to_owned();
    name.push("-led");
    name.into()
}

/// The members of a team, whose worktrees are ready, and the rules for routing.
async fn members_of(
    config: &Config,
    conditions: &Conditions,
    stop: &mut StopSignals,
) -> anyhow::Result<(Vec<Member>, routing::Rules)> {
    tokio::select! {
        // A team without worktrees leaves the signal to those who end it.
        biased;
        ready = conditions.trees.make(config, note) => ready?,
        _ = stop.next() => anyhow::bail!("stopped before the worktrees of agents were ready"),
    }
    tokio::select! {
        biased;
        ready = conditions.providers.ready(config) => ready?,
        _ = stop.next() => anyhow::bail!("stopped before the keys of providers were there"),
    }
    conditions.members(config, 0)
}

/// The surroundings that all agents share.
fn surround(
    launcher: Launcher,
    workspace: &Path,
    conditions: &Conditions,
    wiring: &mut Wiring,
    routing: &RoutingHandle,
    config: &Config,
) -> Surroundings {
    let admission = Admission::new(limits::capacity(config));
    wiring.tasks.spawn(admission.clone().watch(wiring.cancel.clone()));
    Surroundings {
        launcher,
        ungranted: conditions.eisen_dir.join("run"),
        bus: wiring.bus.clone(),
        tracker: wiring.tracker.clone(),
        routing: routing.clone(),
        admission,
        memory: TeamMemory::following(|| Machine::now().map(|machine| machine.available)),
        capture: wiring.capture.clone(),
        conflicts: wiring.conflicts.clone().filter(Conflicts::looks),
        tally: Arc::default(),
        workspace: Arc::new(DiskWorkspace::new(workspace.to_owned())),
    }
}

/// Routes accesses from now on.
fn route(
    wiring: &mut Wiring,
    orchestrator: Orchestrator,
    rules: routing::Rules,
    conditions: &Conditions,
    config: &Config,
) -> anyhow::Result<RoutingHandle> {
    let queue = person_queue::place(&conditions.eisen_dir, &config.team.name);
    let program = environment::program();
    let queued = person_queue::read(&queue, &rules.zones);
    let waits = wiring.waits.clone();
    let (granted, store) = grants::open(config, &conditions.eisen_dir)?;
    let store = Some(store);
    let settings =
        routing::Settings { orchestrator, rules, program, waits, queued, granted, store };
    let routing = wiring.route(settings);
    wiring.compare_branches(&conditions.trees, &routing);
    wiring.tasks.spawn(person_queue::keep(queue, routing.queue(), wiring.cancel.clone()));
    Ok(routing)
}

/// The queue of changes of the team; helpers end with their parents from now on.
fn changes_of(
    wiring: &mut Wiring,
    roster: Roster,
) -> (mpsc::Sender<TeamCommand>, mpsc::Receiver<TeamCommand>) {
    let (changes, commands) = mpsc::channel(WAITING);
    let (events, cancel) = (wiring.bus.subscribe(), wiring.cancel.clone());
    wiring.tasks.spawn(Changes::follow_rests(
        events,
        roster.clone(),
        changes.clone(),
        cancel.clone(),
    ));
    let events = wiring.bus.subscribe();
    wiring.tasks.spawn(follow_setbacks(events, roster, changes.clone(), cancel));
    (changes, commands)
}

/// Starts the rooms behind the port, and the recorder of sessions.
fn wire(
    bus: Bus,
    config: &Config,
    unattended: bool,
    view: OrchestratorView,
    eisen_dir: &Path,
    workspace: &Path,
    private: &Path,
) -> (Wiring, serve::Recorder) {
    journals::note_workspace(&config.team.name, &config.team.workspace, eisen_dir);
    journals::note_place(config, eisen_dir);
    note_taken(config, eisen_dir);
    let journal = journal::settings(config, eisen_dir);
    let mut wiring = Wiring::start(bus, config.tracker, view, eisen_dir, journal);
    telemetry::start(config, &mut wiring);
    let left_out = vec![eisen_dir.to_owned(), private.to_owned()];
    wiring.capture_files(workspace.to_owned(), left_out, journal::fullness(config));
    wiring.find_conflicts(members::conflicts(config, unattended), workspace);
    wiring.note_workspace(workspace);
    wiring.neighbours = hub::neighbours(config);
    wiring.owners.configure(config);
    wiring.note_tools(tool_use::place(eisen_dir, &config.team.name));
    if config.graph {
        wiring.keep_graph(workspace.to_owned());
    }
    let (tracker, registry) = (wiring.tracker.clone(), wiring.registry.clone());
    let (team, owners) = (config.team.name.clone(), wiring.owners.clone());
    let cancel = wiring.cancel.clone();
    let (recorder, recording) = recorder::start(team, tracker, registry, owners, cancel);
    wiring.tasks.spawn(recording);
    (wiring, recorder)
}

/// Shows the team on standard output; the agents' answers are sent into the returned channel.
fn show(
    output: Output,
    port: SocketAddr,
    config: &Config,
    bus: &Bus,
) -> (mpsc::Sender<TurnAnswer>, JoinHandle<()>) {
    let (answer_sender, answers) = mpsc::channel(console::ANSWERS_CAPACITY);
    let file = match output {
        Output::Console => None,
        Output::File(file) => Some(file),
        Output::Nowhere => return (answer_sender, task::spawn(async {})),
    };
    let inputs = console::Inputs { port, answers, config: config.clone(), file };
    let events = bus.subscribe();
    (answer_sender, task::spawn_blocking(move || console::show(events, inputs)))
}

/// Announces the team, with all that is to be cleaned up if it is killed. Also returns the path of the
/// folder for the agents' temporary files, which is not made yet.
fn run_file(
    config: &Config,
    eisen_dir: &Path,
    address: SocketAddr,
    token: &str,
) -> anyhow::Result<(RunFile, PathBuf)> {
    let Team { name, workspace, scratch, .. } = &config.team;
    let private = scratch::new_path()?;
    let remains = Remains {
        folders: vec![private.clone(), led_folder(&private), journals::drafts(eisen_dir, name)],
        workspace: (!scratch).then(|| workspace.clone()),
        ..leftovers::remains()
    };
    Ok((RunFile::with_remains(eisen_dir, (name, address, token), remains)?, private))
}

/// Records the cgroup of the agents in the ledger, prints the port, and logs hints about the
/// configuration. What agents leave behind is this process's from then on.
fn announce(
    layered: &Layered,
    eisen_dir: &Path,
    run_file: &RunFile,
    address: SocketAddr,
    launcher: &Launcher,
    output: &Output,
) -> anyhow::Result<Ledger> {
    let ledger = run_file.ledger();
    if let Some(group) = launcher.group() {
        ledger.note(|remains| remains.group = Some(group))?;
    }
    hints::warn(&layered.config, eisen_dir);
    if !matches!(output, Output::Nowhere) {
        announce_port(address.port());
    }
    log_overlay(layered, eisen_dir)?;
    crate::process::become_subreaper().context("cannot become the subreaper of the agents")?;
    Ok(ledger)
}

/// Applies requested changes until the work is done, or a signal arrives; then stops the team.
async fn until_stopped<T>(
    mut changes: Changes,
    commands: mpsc::Receiver<TeamCommand>,
    stop: &mut StopSignals,
    work: impl Future<Output = T>,
) -> Result<T, StopSignal> {
    let done = {
        let mut ended = pin!(async {
            tokio::select! {
                signal = stop.next() => Err(signal),
                done = work => Ok(done),
            }
        });
        tokio::select! {
            done = &mut ended => done,
            () = changes.run(commands) => ended.await,
        }
    };
    changes.end();
    let deadline = changes.config().team.stop_grace * 2 + STOP_MARGIN;
    tokio::select! {
        () = changes.supervisor.stop(deadline) => {}
        // At a second signal, dropping the supervisor kills the remaining agents.
        _ = stop.next() => {}
    }
    done
}
