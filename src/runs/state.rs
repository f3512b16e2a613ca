//! The state of a run, as `state.toml` has it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How a run stands. The first two are not final.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It has not been started yet.
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
    /// What it waits for, while it does.
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
    /// By currency.
    #[serde(default)]
    pub cost: BTreeMap<String, f64>,
    /// The candidates of the tier that were tried, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<RunAttempt>,
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

impl RunState {
    /// Whether its supervisor is its own, and ends with it. Otherwise an agent of `team` started it.
    pub fn has_own_team(&self) -> bool {
        super::run_of(&self.team) == Some(&self.id)
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    pub(in crate::runs) fn run(id: &str, parent: Option<&str>) -> RunState {
        RunState {
            id: id.to_owned(),
            status: RunStatus::Running,
            pid: std::process::id(),
            pid_start_time_ticks: crate::process::start_of(std::process::id()),
            team: format!("run-{id}"),
            parent: parent.map(str::to_owned),
            depth: 0,
            workspace: PathBuf::from("/shop"),
            timeout_s: None,
            slot_timeout_s: None,
            waits_for: None,
            command: vec!["agent".to_owned()],
            profile: None,
            model: None,
            tier: None,
            no_failover: false,
            attempts: Vec::new(),
            session_id: None,
            last_action: None,
            begins_with: None,
            started_at_ms: 1,
            ended_at_ms: None,
            exit_code: None,
            reason: None,
            background: Vec::new(),
            peak_memory_bytes: None,
            tokens: None,
            cost: BTreeMap::new(),
        }
    }

    #[test]
    fn a_state_without_a_parent_is_read_as_before() {
        let text = toml::to_string(&run("a", None)).unwrap();
        assert!(!text.contains("parent"), "{text}");
        assert_eq!(toml::from_str::<RunState>(&text).unwrap().parent, None);
        let text = toml::to_string(&run("a", Some("shop/ui"))).unwrap();
        assert_eq!(toml::from_str::<RunState>(&text).unwrap().parent.as_deref(), Some("shop/ui"));
    }
}
