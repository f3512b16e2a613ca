//! How a run stands, what it begins with, and what it has tried: parts of its state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::BlockedAccess;

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

/// The session of an earlier run, as it is asked for.
#[derive(Clone, Debug)]
pub struct WantedSession {
    /// Its id, that of a run, a beginning of either, or `last`.
    pub name: String,
    pub is_fork: bool,
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
