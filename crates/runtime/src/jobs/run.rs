//! `run`: a team of one agent, for one turn. Owns a run's files and state, from its making to its end.

mod attempts;
mod cooldown;
mod hold;
mod repository;
mod waits;
mod work;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use eisen_base::task;
use futures_util::FutureExt as _;
use tokio::sync::watch;
use tokio::time::Instant;

use self::waits::{Admitted, WaitsBy};
use crate::app::members::TeamSlots;
use crate::app::up::{Output, TeamStart};
use crate::changes::{self, Asked};
use crate::config::{Layered, SharedConfig};
use crate::console::ConsoleFile;
use crate::home::environment;
use crate::home::journals;
use crate::journal::Store;
use crate::process;
use crate::program::{Failure, StopSignals, config_errors};
use crate::providers::{hand_keys_on, withdraw_keys};
use crate::runs::{Attachment, ChangedFiles, RunFolder, RunId, RunState, RunStatus, find_run};
use crate::slots::Slots;
use crate::team_file::load;
use crate::team_file::mode::TeamMode;
use crate::team_file::of_run::{RunOptions, team_file};
use crate::tree::Worktrees;
use crate::turn::progress::{RunProgress, recorded};
use crate::turn::request::RunRequest;
use crate::turn::schema::AnswerSchema;
use crate::turn::{WorkEnd, keep, settle};

/// Bytes of a prompt.
const LONGEST_PROMPT: usize = 8 << 20;

/// How often the state of a run is polled until its process has taken over.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The outcome of a run.
#[derive(Debug)]
pub struct RunEnd {
    pub state: RunState,
    /// The agent's last message.
    pub answer: String,
    pub stop_reason: Option<String>,
    pub took: Duration,
}

/// Runs one agent for one turn, and tells meanwhile what it does.
pub async fn run(
    options: RunOptions,
    progress: watch::Sender<RunProgress>,
) -> Result<RunEnd, Failure> {
    let depth = environment::depth_of_run();
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let (folder, layered) = prepare(options, &eisen_dir, depth)?;
    // It is large, and there is one.
    Box::pin(perform(&folder, Some(layered), eisen_dir, depth, progress)).await
}

/// Starts a run in a process of its own; returns its id. `note` is told it before anything is started.
pub fn run_detached(
    options: RunOptions,
    note: impl FnOnce(&str) -> Result<(), Failure>,
) -> Result<String, Failure> {
    let depth = environment::depth_of_run();
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let (folder, _) = prepare(options, &eisen_dir, depth)?;
    if let Err(failure) = note(folder.id()) {
        let _ = folder.remove();
        return Err(failure);
    }
    hand_over(&folder).context("cannot start the run").map_err(Failure::Run)?;
    Ok(folder.id().to_owned())
}

/// Tests what a run asks for; starts nothing.
pub fn check_run(options: &RunOptions) -> Result<(), Failure> {
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let failed = |error: std::io::Error| Failure::Run(error.into());
    let folder = tempfile::tempdir().map_err(failed)?;
    let file = folder.path().join("eisen.toml");
    std::fs::write(&file, configuration(options, &RunId::generate().team())?).map_err(failed)?;
    load::read(&file, &eisen_dir).map(drop)
}

/// Performs a run that another process has prepared.
pub async fn run_prepared(id: &str) -> Result<RunEnd, Failure> {
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let folder = find_run(&eisen_dir, id).map_err(|error| Failure::Usage(error.into()))?;
    let shared = SharedConfig::read(&eisen_dir, Some(&folder.config())).map_err(config_errors)?;
    withdraw_keys(&shared)?;
    // Survive the terminal.
    nix::unistd::setsid().map_err(|errno| Failure::Run(errno.into()))?;
    let depth = folder.state().map_err(|error| Failure::Run(error.into()))?.depth;
    // It is large, and there is one.
    Box::pin(perform(&folder, None, eisen_dir, depth, watch::Sender::default())).await
}

/// Writes all that a run needs, and its first state; what is wrong leaves no run. Also returns its
/// configuration.
fn prepare(
    options: RunOptions,
    eisen_dir: &Path,
    depth: u32,
) -> Result<(RunFolder, Layered), Failure> {
    environment::prepare(eisen_dir).map_err(Failure::Usage)?;
    let spec = &options.spec;
    let attached: usize = spec.files.iter().map(Attachment::bytes).sum();
    if spec.task.len().saturating_add(attached) > LONGEST_PROMPT {
        let most = LONGEST_PROMPT >> 20;
        let why = anyhow!("the prompt is longer than {most} MiB, with its files");
        return Err(Failure::Usage(why));
    }
    if let Some(schema) = &spec.schema {
        AnswerSchema::new(schema).map_err(Failure::Usage)?;
    }
    let id = RunId::generate();
    let folder = RunFolder::create(eisen_dir, id).context("cannot make the folder of the run");
    let folder = folder.map_err(Failure::Run)?;
    // While it has no state, its being held says that somebody makes it.
    let _held = folder.try_hold();
    match first_state(options, &folder, id, eisen_dir, depth) {
        Ok((state, layered)) => keep(&folder, &state).map(|()| (folder, layered)),
        Err(failure) => {
            // What stays is no run: it has no state.
            let _ = folder.remove();
            Err(failure)
        }
    }
}

fn first_state(
    options: RunOptions,
    folder: &RunFolder,
    id: RunId,
    eisen_dir: &Path,
    depth: u32,
) -> Result<(RunState, Layered), Failure> {
    let text = configuration(&options, &id.team())?;
    let kept = folder.keep_config(&text).and_then(|()| folder.keep_asked(&options.spec));
    kept.context("cannot write the files of the run").map_err(Failure::Run)?;
    let layered = load::load(&folder.config(), eisen_dir)?;
    let config = &layered.config;
    let state = RunState {
        depth,
        command: config.agents[0].command.clone(),
        begins_with: options.begins_with,
        ..RunState::new(&options.spec, id.to_string(), config.team.workspace.clone())
    };
    Ok((state, layered))
}

fn configuration(options: &RunOptions, team: &str) -> Result<String, Failure> {
    team_file(options, team).map_err(|error| Failure::Usage(error.into()))
}

/// Starts the process that performs a prepared run, and waits until the run's state names it.
fn hand_over(folder: &RunFolder) -> anyhow::Result<()> {
    let console = ConsoleFile::open(&folder.console())?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["run", "--prepared", folder.id()]);
    command.stdout(Stdio::null()).stderr(console);
    let mut child = hand_keys_on(&mut command)?;
    while folder.state()?.pid == std::process::id() {
        if let Some(ended) = child.try_wait()? {
            let said = std::fs::read_to_string(folder.console()).unwrap_or_default();
            bail!("it ended before it began ({ended}): {}", said.trim());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Performs a run to its end, once. `layered`: its configuration, if it was read just now.
async fn perform(
    folder: &RunFolder,
    layered: Option<Layered>,
    eisen_dir: PathBuf,
    depth: u32,
    progress: watch::Sender<RunProgress>,
) -> Result<RunEnd, Failure> {
    let began = Instant::now();
    let failed = |error: std::io::Error| Failure::Run(error.into());
    let _held = hold::hold(folder).await?;
    let (mut state, prompt) = (folder.state().map_err(failed)?, folder.prompt().map_err(failed)?);
    if state.status != RunStatus::Waiting {
        let status = state.status.as_str();
        return Err(Failure::Usage(anyhow!("the run {} is {status}, not waiting", state.id)));
    }
    // Nobody else works in a task's worktree, or cleans it, meanwhile.
    let worktree = Worktrees::new(&eisen_dir).hold_at(&state.workspace);
    let worktree = worktree.map_err(|error| Failure::Usage(error.into()))?;
    // Before the state names this process: a signal from then on ends the run, and is kept as its end.
    let mut stop = StopSignals::listen().map_err(failed)?;
    let own = (std::process::id(), process::start_of(std::process::id()));
    if own != (state.pid, state.pid_start_time_ticks) {
        (state.pid, state.pid_start_time_ticks) = own;
        keep(folder, &state)?;
    }
    let timeout = state.timeout_s.map(Duration::from_secs);
    let deadline = timeout.and_then(|timeout| began.checked_add(timeout));
    let request = RunRequest::of(folder, &state, &eisen_dir, progress).map_err(Failure::Run)?;
    let job = Job { folder, request: &request, eisen_dir: &eisen_dir, depth, deadline };
    let kept = |end: WorkEnd| (folder.keep_answer(&end.answer), end);
    // While the agent ends: a slow disk takes its time.
    let keep_soon = |end: &WorkEnd| {
        let (folder, answer) = (folder.clone(), end.answer.clone());
        task::spawn_blocking(move || folder.keep_answer(&answer))
    };
    let (answer_kept, end) = match state.tier.clone() {
        Some(tier) => kept(attempts::by_tier(&job, &mut state, &tier, prompt, &mut stop).await),
        None => match job.start(&mut state, layered, &mut stop).await {
            Ok((start, admitted)) => {
                let profile = state.profile.clone();
                let mut keeping = None;
                let turn_ended = |end: &WorkEnd| keeping = Some(keep_soon(end));
                let work = cooldown::alone(
                    start,
                    &request,
                    prompt,
                    deadline,
                    profile.as_deref(),
                    turn_ended,
                );
                let (end, closing) = job.recorded(&mut state, Box::pin(work)).await;
                // It is the run's only with the state, which follows when others can take its place.
                let end = match keeping {
                    Some(keeping) => (keeping.await.unwrap_or_else(|error| Err(error.into())), end),
                    None => kept(end),
                };
                work::closed(closing).await;
                drop(admitted);
                end
            }
            Err(end) => kept(end),
        },
    };
    if let Some(worktree) = &worktree {
        // All that ran in it has ended.
        crate::tree::remove_stale_locks(&worktree.tree.repository());
    }
    state.changed = changed(&eisen_dir, &state.team).await;
    let (answer, stop_reason) = settle(folder, &mut state, end, answer_kept)?;
    Ok(RunEnd { state, answer, stop_reason, took: began.elapsed() })
}

/// Longest wait for what a run changed.
const COUNTING: std::time::Duration = std::time::Duration::from_secs(5);

/// The changes that a run made to files of its workspace, by its journal; None: they are not there in time.
async fn changed(eisen_dir: &Path, team: &str) -> Option<ChangedFiles> {
    let journal = journals::journal_place(eisen_dir, team);
    let counting = task::spawn_blocking(move || {
        let store = Store::open(&journal).ok()?;
        let scope = Asked::default().scope(&store).ok()?;
        let mut net = changes::net(&changes::select(&store, &scope).ok()?, &store);
        net.leave_ignored_out();
        let mut changed = ChangedFiles { files: 0, added: 0, removed: 0, partial: false };
        for file in net.files.iter().filter(|file| !file.is_folder() && file.to.is_relative()) {
            let patch = changes::patch(file, &store).ok();
            changed.files += 1;
            changed.added += patch.as_ref().map_or(0, |patch| patch.added);
            changed.removed += patch.as_ref().map_or(0, |patch| patch.removed);
        }
        Some(changed)
    });
    tokio::time::timeout(COUNTING, counting).await.ok()?.ok()?
}

/// The data that all attempts of a run share.
struct Job<'a> {
    folder: &'a RunFolder,
    request: &'a RunRequest,
    eisen_dir: &'a Path,
    depth: u32,
    deadline: Option<Instant>,
}

impl Job<'_> {
    async fn recorded<T>(&self, state: &mut RunState, work: impl Future<Output = T>) -> T {
        recorded(self.folder, state, self.request.progress.subscribe(), work).await
    }

    /// Waits until a team may start by its configuration, by default as the file is now. The run holds
    /// what it waited for until that is dropped.
    async fn start(
        &self,
        state: &mut RunState,
        layered: Option<Layered>,
        signals: &mut StopSignals,
    ) -> Result<(TeamStart, Admitted), WorkEnd> {
        let file = self.folder.config();
        let layered = layered.map_or_else(|| load::load(&file, self.eisen_dir), Ok);
        let layered =
            layered.map_err(|failure| WorkEnd::not_started(format!("{:#}", failure.error())))?;
        let bases = load::shared_config(&layered.config.team.workspace);
        let bases = bases.unwrap_or_else(|_| layered.config.shared.clone());
        let by = WaitsBy { config: &layered.config, bases: &bases, eisen_dir: self.eisen_dir };
        let admitted = waits::start(self.folder, state, &by, self.deadline, signals).await?;
        let stop = StopSignals::listen();
        let stop = stop.map_err(|error| WorkEnd::not_started(error.to_string()))?;
        if let Some(signal) = signals.next().now_or_never() {
            return Err(WorkEnd::stopped(signal));
        }
        let (eisen_dir, depth) = (self.eisen_dir.to_owned(), self.depth);
        let slots = TeamSlots { slots: Slots::new(&eisen_dir), of_run: Some(bases) };
        let (port, web, output) = (None, None, Output::Nowhere);
        let mode = TeamMode { unattended: true, observe: false };
        let start =
            TeamStart { file, layered, eisen_dir, depth, port, web, output, slots, mode, stop };
        Ok((start, admitted))
    }
}
