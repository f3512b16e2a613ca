//! Owns the methods about runs that an agent starts below it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::method::method;
use super::names::{AgentName, UniqueId};
use crate::runs::{ChangedFiles, RefusedAccess, RunSpec};

method! {
    StartRun = "start_run": RunSpec => RunStarted;
    port: Reader, web: Control, token: Control(Team), waits: true, lasts: true, hub: One
}

method! {
    WaitForRuns = "wait_for_runs": WaitForRunsParams => RunList;
    port: Reader, web: Read, token: Read(Team), waits: true, lasts: true, hub: One
}

method! {
    EndRuns = "end_runs": EndRunsParams => RunList;
    port: Reader, web: Control, token: Control(Team), waits: true, lasts: false, hub: One
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunStarted {
    pub id: String,
    pub agent_id: AgentName<'static>,
    /// The patterns of its zone.
    pub zone: Vec<String>,
    /// Patterns that were asked for, and reach out of the caller's zone.
    pub reaches_out: Vec<String>,
    /// Places and `$VARIABLES` that its profile has and the caller has not: it does not get them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// With `wait`: how it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunRow>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WaitForRunsParams {
    /// Ids, or beginnings that no other run of the caller has; all if left out.
    #[serde(default)]
    pub ids: Vec<UniqueId<'static>>,
    /// Until one has ended, not all.
    #[serde(default)]
    pub any: bool,
    /// At most 45; 0 to look only.
    pub timeout_s: Option<f64>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EndRunsParams {
    /// Ids, or beginnings that no other run of the caller has.
    pub ids: Vec<UniqueId<'static>>,
}

/// Runs at one moment, in the order of their ids in the request.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Runs")]
pub struct RunList {
    pub runs: Vec<RunRow>,
    /// The wait is not over; it can go on.
    pub timed_out: bool,
}

/// A run, as its `state.toml` has it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Run")]
pub struct RunRow {
    pub id: String,
    #[schemars(extend("enum" = ["waiting", "running", "succeeded", "failed", "timed_out", "killed", "lost"]))]
    pub status: Cow<'static, str>,
    /// The supervisor.
    pub pid: u32,
    pub pid_start_time_ticks: Option<u64>,
    pub team: String,
    pub agent_id: AgentName<'static>,
    /// The run whose agent started it, or `TEAM/AGENT`.
    pub parent: Option<String>,
    pub depth: u32,
    pub workspace: String,
    pub timeout_s: Option<u64>,
    pub command: Vec<String>,
    pub profile: Option<String>,
    pub model: Option<String>,
    pub tier: Option<String>,
    pub session_id: Option<String>,
    pub started_at_ms: u64,
    pub ended_at_ms: Option<u64>,
    pub exit_code: Option<u8>,
    pub stop_reason: Option<String>,
    pub reason: Option<String>,
    /// The command lines of processes that its agent left behind, and that ended with it.
    pub background: Vec<String>,
    pub peak_memory_bytes: Option<u64>,
    pub tokens: Option<u64>,
    /// `tokens` is estimated, at least in part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tokens_estimated: bool,
    pub cost: BTreeMap<String, f64>,
    /// The changes of the run in files; left out if they are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<ChangedFiles>,
    /// Accesses of its turn that were blocked, and not allowed by its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<RefusedAccess>,
    /// The agent's last message; `null` until it has ended.
    pub text: Option<String>,
}
