//! Runs on the wire.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::runs::{FoundRun, FoundRuns};

/// Runs at one moment, in the order of their ids in the request.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Runs")]
pub(in crate::serve) struct RunList {
    runs: Vec<RunRow>,
    /// The wait is not over; it can go on.
    timed_out: bool,
}

/// A run, as its `state.toml` has it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Run")]
pub(in crate::serve) struct RunRow {
    id: String,
    #[schemars(extend("enum" = ["waiting", "running", "succeeded", "failed", "timed_out", "killed", "lost"]))]
    status: &'static str,
    /// The supervisor.
    pid: u32,
    pid_start_time_ticks: Option<u64>,
    team: String,
    agent_id: String,
    /// The run whose agent started it, or `TEAM/AGENT`.
    parent: Option<String>,
    depth: u32,
    workspace: String,
    timeout_s: Option<u64>,
    command: Vec<String>,
    profile: Option<String>,
    model: Option<String>,
    tier: Option<String>,
    session_id: Option<String>,
    started_at_ms: u64,
    ended_at_ms: Option<u64>,
    exit_code: Option<u8>,
    stop_reason: Option<String>,
    reason: Option<String>,
    /// The command lines of processes that its agent left behind, and that ended with it.
    background: Vec<String>,
    peak_memory_bytes: Option<u64>,
    tokens: Option<u64>,
    cost: BTreeMap<String, f64>,
    /// The agent's last message; `null` until it has ended.
    text: Option<String>,
}

impl From<FoundRuns> for RunList {
    fn from(found: FoundRuns) -> Self {
        let FoundRuns { runs, timed_out } = found;
        Self { runs: runs.into_iter().map(RunRow::from).collect(), timed_out }
    }
}

impl From<FoundRun> for RunRow {
    fn from(found: FoundRun) -> Self {
        let FoundRun { state, answer, stop_reason, agent } = found;
        Self {
            id: state.id,
            status: state.status.as_str(),
            pid: state.pid,
            pid_start_time_ticks: state.pid_start_time_ticks,
            team: state.team,
            agent_id: agent,
            parent: state.parent,
            depth: state.depth,
            workspace: state.workspace.display().to_string(),
            timeout_s: state.timeout_s,
            command: state.command,
            profile: state.profile,
            model: state.model,
            tier: state.tier,
            session_id: state.session_id,
            started_at_ms: state.started_at_ms,
            ended_at_ms: state.ended_at_ms,
            exit_code: state.exit_code,
            stop_reason,
            background: state.background,
            reason: state.reason,
            peak_memory_bytes: state.peak_memory_bytes,
            tokens: state.tokens,
            cost: state.cost,
            text: answer,
        }
    }
}
