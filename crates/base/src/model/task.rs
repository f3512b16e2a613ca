//! Tasks that one agent of a team gave another, and reports of agents.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::named::named;
use super::{AgentId, SessionId, TaskId, TimestampMs};

/// The name of the team's MCP server in agents' sessions. Clients prefix the tools' names with it.
pub const TEAM_SERVER: &str = "eisen";

named! {
    /// A form of the team's entry in an agent's MCP servers, in the order in which they are tried.
    #[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
    #[serde(rename_all = "lowercase")]
    pub enum ToolsForm {
        /// An address.
        Http = "http",
        /// A program, which all agents take.
        Program = "program",
        /// A program, with `"type": "stdio"`.
        Typed = "typed",
        /// The entry is left out.
        None = "none",
    }
}

named! {
    /// Where a task stands.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum TaskState {
        /// The task waits for its turn, or its turn runs.
        Running = "running",
        /// An access of its turn waits for a decision.
        NeedsApproval = "needs_approval",
        /// A write of its turn waits for a lock, or for a person.
        WaitingLock = "waiting_lock",
        /// Its agent does nothing any more.
        Stalled = "stalled",
        /// The budget of its agent, or the team's, is used up: its turn is about to end.
        BudgetPaused = "budget_paused",
        Cancelled = "cancelled",
        /// Its turn ended otherwise than it should, or never began.
        Failed = "failed",
        /// Its agent, or the team, ended before its turn did.
        Lost = "lost",
        Done = "done",
    }
}

impl TaskState {
    /// Whether it stays as it is.
    pub fn is_ended(self) -> bool {
        match self {
            Self::Running
            | Self::NeedsApproval
            | Self::WaitingLock
            | Self::Stalled
            | Self::BudgetPaused => false,
            Self::Cancelled | Self::Failed | Self::Lost | Self::Done => true,
        }
    }

    /// Whether it needs a person or the orchestrator before it goes on.
    pub fn needs_help(self) -> bool {
        matches!(self, Self::NeedsApproval | Self::Stalled | Self::BudgetPaused)
    }
}

/// A task with its state; each change of the state is another report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskReport {
    /// The id of the task, which does not change.
    pub id: TaskId,
    /// The giver: an agent, or `orchestrator` for a program or a person.
    pub by: AgentId,
    /// The person who answers for it.
    pub owner: Option<String>,
    /// The agent that works on it.
    pub agent: AgentId,
    /// The session of its turn, once that has begun.
    pub session: Option<SessionId>,
    /// Where the task stands at the time of this report.
    pub state: TaskState,
    /// Why it ended so.
    pub reason: Option<String>,
    /// The time of this report.
    pub timestamp_ms: TimestampMs,
}

/// A report of an agent to its team.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentReport {
    /// The agent that reports.
    pub agent: AgentId,
    /// The report in the agent's own words.
    pub text: Arc<str>,
    /// The time of the report.
    pub timestamp_ms: TimestampMs,
}
