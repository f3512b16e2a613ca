//! The process that holds a place or waits for it, as its lock file says.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::{now_ms, rfc3339};
use crate::process;

/// Bytes of each text of a lock file.
const LONGEST: usize = 400;

/// The purpose for which a place is wanted.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct SlotRequest {
    /// The program that asks.
    pub tool_name: String,
    pub reason: String,
    /// The run that it is for.
    pub run: Option<String>,
    /// The team, and its agent, that it is for.
    pub team: Option<String>,
    pub agent: Option<String>,
}

/// The content of a lock file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SlotHolder {
    pub pid: u32,
    /// A pid may be used again: this tells which process is meant. None where it is not known.
    pub pid_start_time_ticks: Option<u64>,
    pub tool_name: String,
    /// RFC 3339; None while it waits.
    pub acquired_at: Option<String>,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// When it came.
    #[serde(default)]
    pub arrived_at_ms: u64,
    /// Memory that it was promised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl SlotHolder {
    /// This process, which waits.
    pub(super) fn waiting(request: SlotRequest) -> Self {
        let SlotRequest { tool_name, reason, run, team, agent } = request;
        let pid = std::process::id();
        Self {
            pid,
            pid_start_time_ticks: process::start_of(pid),
            tool_name: clipped(tool_name),
            acquired_at: None,
            reason: clipped(reason),
            run: run.map(clipped),
            team: team.map(clipped),
            agent: agent.map(clipped),
            arrived_at_ms: now_ms(),
            bytes: None,
        }
    }

    pub(super) fn acquired(&mut self) {
        self.acquired_at = Some(rfc3339(now_ms() / 1000));
    }

    /// Whether its process lives. Where starts can't be told, its `flock` alone says so.
    pub(super) fn is_alive(&self) -> bool {
        match self.pid_start_time_ticks {
            Some(start) => process::start_of(self.pid) == Some(start),
            None => true,
        }
    }

    /// For how long it has been here.
    pub fn age(&self) -> Duration {
        Duration::from_millis(now_ms().saturating_sub(self.arrived_at_ms))
    }
}

impl fmt::Display for SlotHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.run, &self.team, &self.agent) {
            (Some(run), ..) => write!(f, "the run {run}")?,
            (None, Some(team), Some(agent)) => write!(f, "`{agent}` of the team `{team}`")?,
            (None, Some(team), None) => write!(f, "the team `{team}`")?,
            (None, None, _) => write!(f, "{}", self.tool_name)?,
        }
        write!(f, " (pid {}", self.pid)?;
        if let Some(since) = &self.acquired_at {
            write!(f, ", since {since}")?;
        }
        f.write_str(")")
    }
}

fn clipped(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(LONGEST));
    text
}
