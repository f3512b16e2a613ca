//! Owns how runs become rows of answers.

use crate::runs::{FoundRun, FoundRuns};
use crate::wire::{RunList, RunRow};

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
            status: state.status.as_str().into(),
            pid: state.pid,
            pid_start_time_ticks: state.pid_start_time_ticks,
            team: state.team,
            agent_id: agent.into(),
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
            tokens_estimated: state.tokens_estimated,
            cost: state.cost,
            changed: state.changed,
            blocked: state.blocked,
            text: answer,
        }
    }
}
