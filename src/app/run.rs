//! `run`: a team of one agent, for one turn. Owns how the turn's end becomes the run's.

mod background;
mod schema;
mod turn;
mod used;
mod work_end;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use self::schema::AnswerSchema;
use self::turn::RunTurn;
use self::used::used;
use self::work_end::{FAILED, WorkEnd};
use super::console::ConsoleFile;
use super::team::Supervised;
use super::up::{Output, TeamStart, run_team};
use super::{Failure, environment};
use crate::agent::{AgentError, AgentHandle};
use crate::client_host::Said;
use crate::config::one_agent::OneAgent;
use crate::model::{AgentId, AgentState, now_ms};
use crate::process;
use crate::runs::{Attachment, EarlierSession, RunFolder, RunId, RunState, RunStatus, find_run};

/// How long an agent may take to end its turn after its time is up.
const CANCEL_PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of a prompt.
const LONGEST_PROMPT: usize = 8 << 20;

/// Bytes of a reason, and of the id of a session, in the state of a run: they are the agent's words.
const LONGEST_WORD: usize = 4096;

/// How often the state of a run is polled until its process has taken over.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub struct RunOptions {
    /// Its team's name is set here.
    pub agent: OneAgent,
    pub prompt: String,
    /// Files that go with the prompt.
    pub attachments: Vec<Attachment>,
    /// The JSON Schema that the answer has to fit.
    pub schema: Option<Value>,
    /// None: a new session.
    pub begins_with: Option<EarlierSession>,
    /// From the start to the turn's end.
    pub timeout: Option<Duration>,
}

/// What a run came to.
#[derive(Debug)]
pub struct RunEnd {
    pub state: RunState,
    /// The agent's last message.
    pub answer: String,
    pub stop_reason: Option<String>,
    pub took: Duration,
}

/// Runs one agent for one turn.
pub async fn run(options: RunOptions) -> Result<RunEnd, Failure> {
    let depth = environment::depth().map_err(|error| Failure::Usage(error.into()))?;
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let folder = prepare(options, &eisen_dir, depth)?;
    perform(&folder, eisen_dir, depth).await
}

/// Starts a run in a process of its own; returns its id.
pub fn run_detached(options: RunOptions) -> Result<String, Failure> {
    let depth = environment::depth().map_err(|error| Failure::Usage(error.into()))?;
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let folder = prepare(options, &eisen_dir, depth)?;
    hand_over(&folder).context("cannot start the run").map_err(Failure::Run)?;
    Ok(folder.id().to_owned())
}

/// Performs a run that another process has prepared.
pub async fn run_prepared(id: &str) -> Result<RunEnd, Failure> {
    // Survive the terminal.
    nix::unistd::setsid().map_err(|errno| Failure::Run(errno.into()))?;
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let folder = find_run(&eisen_dir, id).map_err(|error| Failure::Usage(error.into()))?;
    let depth = folder.state().map_err(|error| Failure::Run(error.into()))?.depth;
    perform(&folder, eisen_dir, depth).await
}

/// Writes all that a run needs, and its first state; what is wrong leaves no run.
fn prepare(options: RunOptions, eisen_dir: &Path, depth: u32) -> Result<RunFolder, Failure> {
    environment::prepare(eisen_dir).map_err(Failure::Usage)?;
    let attached: usize = options.attachments.iter().map(Attachment::bytes).sum();
    if options.prompt.len().saturating_add(attached) > LONGEST_PROMPT {
        let most = LONGEST_PROMPT >> 20;
        return Err(Failure::Usage(anyhow!(
            "the prompt is longer than {most} MiB, with its files"
        )));
    }
    if let Some(schema) = &options.schema {
        AnswerSchema::new(schema).map_err(Failure::Usage)?;
    }
    let id = RunId::generate();
    let folder = RunFolder::create(eisen_dir, id).context("cannot make the folder of the run");
    let folder = folder.map_err(Failure::Run)?;
    match first_state(options, &folder, id, (eisen_dir, depth)) {
        Ok(state) => keep(&folder, &state).map(|()| folder),
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
    (eisen_dir, depth): (&Path, u32),
) -> Result<RunState, Failure> {
    let RunOptions { mut agent, prompt, attachments, schema, begins_with, timeout } = options;
    agent.team = id.team();
    agent.without_session = begins_with.is_some();
    let keep = || {
        std::fs::write(folder.config(), agent.text())?;
        folder.keep_prompt(&prompt)?;
        if !attachments.is_empty() {
            folder.keep_attachments(&attachments)?;
        }
        schema.as_ref().map_or(Ok(()), |schema| folder.keep_schema(schema))
    };
    keep().context("cannot write the files of the run").map_err(Failure::Run)?;
    let layered = super::loading::load(&folder.config(), eisen_dir)?;
    Ok(RunState {
        id: id.to_string(),
        status: RunStatus::Waiting,
        pid: std::process::id(),
        pid_start_time_ticks: process::start_of(std::process::id()),
        team: id.team(),
        depth,
        workspace: layered.config.team.workspace.clone(),
        timeout_s: timeout.map(|timeout| timeout.as_secs()),
        command: layered.config.agents[0].command.clone(),
        profile: agent.profile,
        model: agent.model,
        session_id: None,
        begins_with,
        started_at_ms: now_ms(),
        ended_at_ms: None,
        exit_code: None,
        reason: None,
        background: Vec::new(),
        peak_memory_bytes: None,
        tokens: None,
        cost: BTreeMap::new(),
    })
}

/// Starts the process that performs a prepared run, and waits until the run's state names it.
fn hand_over(folder: &RunFolder) -> anyhow::Result<()> {
    let console = ConsoleFile::open(&folder.console())?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["run", "--prepared", folder.id()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(console);
    let mut child = command.spawn()?;
    while folder.state()?.pid == std::process::id() {
        if let Some(ended) = child.try_wait()? {
            let said = std::fs::read_to_string(folder.console()).unwrap_or_default();
            bail!("it ended before it began ({ended}): {}", said.trim());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// Performs a run to its end, once.
async fn perform(folder: &RunFolder, eisen_dir: PathBuf, depth: u32) -> Result<RunEnd, Failure> {
    let began = Instant::now();
    let failed = |error: std::io::Error| Failure::Run(error.into());
    let mut state = folder.state().map_err(failed)?;
    let turn = RunTurn::of(folder, &state).map_err(Failure::Run)?;
    if state.status != RunStatus::Waiting {
        let status = state.status.as_str();
        return Err(Failure::Usage(anyhow!("the run {} is {status}, not waiting", state.id)));
    }
    state.pid = std::process::id();
    state.pid_start_time_ticks = process::start_of(state.pid);
    state.status = RunStatus::Running;
    keep(folder, &state)?;
    let timeout = state.timeout_s.map(Duration::from_secs);
    let deadline = timeout.and_then(|timeout| began.checked_add(timeout));
    let mut end = match super::loading::load(&folder.config(), &eisen_dir) {
        Ok(layered) => {
            let (file, output) = (folder.config(), Output::Nowhere);
            let (port, web) = (None, None);
            let start = TeamStart { file, layered, eisen_dir, depth, port, web, output };
            work(start, turn, deadline).await
        }
        Err(failure) => WorkEnd::not_started(format!("{:#}", failure.error())),
    };
    if let Err(error) = folder.keep_answer(&end.answer) {
        end.status = RunStatus::Failed;
        end.exit_code = FAILED;
        end.reason = Some(format!("the answer can't be kept: {error}"));
    }
    let WorkEnd { status, exit_code, stop_reason, reason, background, session, answer, used } = end;
    state.status = status;
    state.exit_code = Some(exit_code);
    state.reason = reason.map(clipped);
    state.background = background;
    state.session_id = session.map(clipped);
    state.ended_at_ms = Some(now_ms());
    state.peak_memory_bytes = used.peak_memory_bytes;
    state.tokens = used.tokens;
    state.cost = used.cost;
    keep(folder, &state)?;
    Ok(RunEnd { state, answer, stop_reason, took: began.elapsed() })
}

/// Runs the team until its agent's turn has ended.
async fn work(start: TeamStart, turn: RunTurn, deadline: Option<Instant>) -> WorkEnd {
    let agent = start.layered.config.agents[0].id.clone();
    let eisen_dir = start.eisen_dir.clone();
    let work =
        async |team: Arc<Supervised>| one_turn(&team, &agent, (turn, &eisen_dir), deadline).await;
    // It is large, and there is one.
    match Box::pin(run_team(start, work)).await {
        Ok(Ok(end)) => end,
        Ok(Err(signal)) => WorkEnd::stopped(signal),
        Err(error) => WorkEnd::not_started(format!("{error:#}")),
    }
}

/// Cuts what an agent says of itself.
fn clipped(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(LONGEST_WORD));
    text
}

fn keep(folder: &RunFolder, state: &RunState) -> Result<(), Failure> {
    folder.keep(state).context("cannot keep the state of the run").map_err(Failure::Run)
}

/// Prompts the agent once it is ready.
async fn one_turn(
    team: &Arc<Supervised>,
    agent: &AgentId,
    (turn, eisen_dir): (RunTurn, &Path),
    deadline: Option<Instant>,
) -> WorkEnd {
    let Some(handle) = team.roster.get(agent) else {
        return WorkEnd::not_started("the agent is gone".to_owned());
    };
    let (sender, said) = watch::channel(Said::default());
    let before = OnceLock::new();
    let turn = async {
        ready(&handle).await?;
        turn.take(&handle, eisen_dir, sender, &before).await
    };
    let outcome = match deadline {
        Some(deadline) => {
            if let Ok(outcome) = timeout_at(deadline, turn).await {
                outcome
            } else {
                let _ = timeout(CANCEL_PATIENCE, handle.cancel(None, true)).await;
                Ok(Err(AgentError::Stopping))
            }
        }
        None => turn.await,
    };
    let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
    let said = said.borrow().clone();
    let mut end = match outcome {
        Err(why) => WorkEnd::not_started(why),
        Ok(_) if is_late => WorkEnd::late(said),
        Ok(Ok(outcome)) => WorkEnd::of(&outcome),
        Ok(Err(error)) => WorkEnd::broken(said, error.to_string()),
    };
    if let Some(before) = before.into_inner() {
        end.background = before.left_behind(&handle).await;
    }
    end.used = used(team, agent).await;
    end
}

/// Waits until an agent is ready; an error says why it does not become so.
async fn ready(agent: &AgentHandle) -> Result<(), String> {
    let mut status = agent.watch();
    let settled =
        status.wait_for(|status| status.state == AgentState::Ready || status.state.is_at_rest());
    match settled.await.map(|status| status.clone()) {
        Ok(status) if status.state == AgentState::Ready => Ok(()),
        Ok(status) => Err(status.reason.unwrap_or_else(|| "the agent ended".to_owned())),
        Err(_) => Err("the agent is gone".to_owned()),
    }
}
