//! Owns the state of a run, as `state.toml` has it: how it stands, what it begins with, what it has tried.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{RunSpec, team_of};
use crate::model::{BlockedAccess, now_ms};
use crate::process;

/// How a run stands. The first two are not final.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// The run has not been started yet.
    Waiting,
    Running,
    Succeeded,
    Failed,
    TimedOut,
    Killed,
    /// Its supervisor is gone, and left no final state.
    Lost,
}

impl RunStatus {
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Killed => "killed",
            Self::Lost => "lost",
        }
    }
}

/// All that is kept of a run besides its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunState {
    pub id: String,
    pub status: RunStatus,
    /// Its supervisor. A pid may be used again: the time of the start, in clock ticks since the
    /// machine's, tells which process is meant.
    pub pid: u32,
    pub pid_start_time_ticks: Option<u64>,
    pub team: String,
    /// The run whose agent started it, or `TEAM/AGENT`; None: no agent did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Levels of runs and teams above it.
    pub depth: u32,
    pub workspace: PathBuf,
    /// From the start to the turn's end.
    pub timeout_s: Option<u64>,
    /// How long it may wait for a slot, for its session and for memory; 0: not at all.
    pub slot_timeout_s: Option<u64>,
    /// The slot, session or memory that it waits for, in words, while it waits.
    pub waits_for: Option<String>,
    /// Program and arguments of its agent.
    pub command: Vec<String>,
    pub profile: Option<String>,
    pub model: Option<String>,
    /// The tier that its agent is taken from; `profile` and `model` are those of the last candidate.
    #[serde(default)]
    pub tier: Option<String>,
    /// Only the first candidate that can be taken is tried.
    #[serde(default)]
    pub no_failover: bool,
    /// As its agent names it.
    pub session_id: Option<String>,
    /// The title of its agent's last tool call: one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_action: Option<String>,
    /// The session that it began with; None if it is a new one.
    pub begins_with: Option<EarlierSession>,
    pub started_at_ms: u64,
    pub ended_at_ms: Option<u64>,
    pub exit_code: Option<u8>,
    /// Why it did not succeed.
    pub reason: Option<String>,
    /// The command lines of processes that the agent had started in its turn, and left behind. They
    /// ended with the run.
    #[serde(default)]
    pub background: Vec<String>,
    pub peak_memory_bytes: Option<u64>,
    pub tokens: Option<u64>,
    /// `tokens` is estimated, at least in part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tokens_estimated: bool,
    /// [`RunSpec::strict_exit`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict_exit: bool,
    /// By currency.
    #[serde(default)]
    pub cost: BTreeMap<String, f64>,
    /// The changes of the run in files; None: they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<ChangedFiles>,
    /// The accesses of its turn that were refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<RefusedAccess>,
    /// The candidates of the tier that were tried, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<RunAttempt>,
}

impl RunState {
    /// The first state of a run, which waits in this process, in a team of its own. Of a tier's candidates none
    /// is taken yet.
    pub fn new(spec: &RunSpec, id: String, workspace: PathBuf) -> Self {
        Self {
            team: team_of(&id),
            id,
            status: RunStatus::Waiting,
            pid: std::process::id(),
            pid_start_time_ticks: process::start_of(std::process::id()),
            parent: None,
            depth: 0,
            workspace,
            timeout_s: spec.timeout_s,
            slot_timeout_s: if spec.no_wait { Some(0) } else { spec.slot_timeout },
            waits_for: None,
            command: spec.command.clone(),
            profile: spec.profile.clone(),
            model: spec.model.clone(),
            tier: spec.tier.clone(),
            no_failover: spec.no_failover,
            attempts: Vec::new(),
            session_id: None,
            last_action: None,
            begins_with: None,
            started_at_ms: now_ms(),
            ended_at_ms: None,
            exit_code: None,
            reason: None,
            background: Vec::new(),
            peak_memory_bytes: None,
            tokens: None,
            tokens_estimated: false,
            cost: BTreeMap::new(),
            strict_exit: spec.strict_exit,
            changed: None,
            blocked: Vec::new(),
        }
    }

    /// Whether its supervisor is its own, and ends with it. Otherwise an agent of `team` started it.
    pub fn has_own_team(&self) -> bool {
        super::run_of(&self.team) == Some(&self.id)
    }
}

/// The session that a run begins with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EarlierSession {
    /// The run that had it last.
    pub run: String,
    /// As the agent names it.
    pub session_id: String,
    /// A fork of it is the run's session; it stays as it is.
    pub is_fork: bool,
    /// The team whose journal has its conversation; None: that of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// Its agent in that journal; None: the only one with such a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// A candidate of a tier that a run has tried.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunAttempt {
    pub profile: String,
    pub model: Option<String>,
    pub started_at_ms: u64,
    pub ended_at_ms: Option<u64>,
    /// Why the next one took over, or it did not succeed.
    pub reason: Option<String>,
}

/// An access of a turn that was blocked, and not allowed by its end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RefusedAccess {
    // A hub puts the host before it.
    #[schemars(extend("x-name" = "of_team"))]
    pub id: String,
    /// `read` or `write`.
    pub action: String,
    /// Relative to the workspace; absolute if outside.
    pub path: String,
    /// As in its `blocked` line.
    pub status: String,
    /// How many incidental accesses it stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<u64>,
    /// The agent makes them by itself, and their refusal does no harm.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub harmless: bool,
    /// The refusal kept the agent from what it meant to do: a write, a command or a connection that no pattern
    /// of `denied` names.
    #[serde(default)]
    pub stops_work: bool,
}

/// Refused accesses that are told of a turn.
const MOST_REFUSED: usize = 100;

impl RefusedAccess {
    /// The refused accesses of a turn: first the ones that stopped the work; `MOST_REFUSED` at most.
    pub fn of_turn(refused: &[BlockedAccess]) -> Vec<Self> {
        let mut refused: Vec<_> = refused.iter().map(Self::from).collect();
        refused.sort_by_key(|access| !access.stops_work);
        refused.truncate(MOST_REFUSED);
        refused
    }
}

impl From<&BlockedAccess> for RefusedAccess {
    fn from(access: &BlockedAccess) -> Self {
        Self {
            id: access.id.to_string(),
            action: access.action.as_str().to_owned(),
            path: access.path.to_string(),
            status: access.status.as_str().to_owned(),
            sweep: access.sweep,
            harmless: access.harmless,
            stops_work: access.stops_work(),
        }
    }
}

/// The changes in files of the workspace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFiles {
    pub files: usize,
    /// Lines.
    pub added: usize,
    pub removed: usize,
    /// The lines of some files are not counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}
