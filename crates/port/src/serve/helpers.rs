//! Agents that agents start and add: what is asked of the team, and what it answers.

use crate::model::{AgentId, TaskId, TaskState};

/// A helper to start.
#[derive(Clone, Debug)]
pub struct NewHelper {
    pub parent: AgentId,
    /// Patterns within the parent's zone; empty: all of it.
    pub zone: Vec<String>,
    /// Where it works; None: where its parent does.
    pub branch: Option<NewBranch>,
    /// None: it runs what its parent runs.
    pub profile: Option<String>,
}

/// The branch of a helper, which gets a worktree of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewBranch {
    pub name: String,
    pub by: BranchBy,
}

/// The asker of a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BranchBy {
    /// A person may name any.
    Person,
    /// The orchestrator agent may name none of a person's.
    Lead,
    /// Another agent may neither, and commits only where its parent does.
    Member,
}

/// A run that was started.
#[derive(Clone, Debug)]
pub struct StartedRun {
    pub id: String,
    /// The helper.
    pub agent: AgentId,
    /// Its patterns.
    pub zone: Vec<String>,
    /// Patterns that were asked for, and reach out of the parent's zone.
    pub further: Vec<String>,
    /// Places and variables of its profile that the parent does not have.
    pub without: Vec<String>,
}

/// A helper that was started.
#[derive(Clone, Debug)]
pub struct StartedHelper {
    pub agent: AgentId,
    /// Places and variables of its profile that the parent does not have.
    pub without: Vec<String>,
}

/// An agent that the orchestrator adds.
#[derive(Clone, Debug)]
pub struct NewMember {
    pub id: String,
    pub profile: String,
    pub zone: Vec<String>,
}

/// The end of a helper's task, and so of the helper.
#[derive(Clone, Debug)]
pub struct HelperEnd {
    pub agent: AgentId,
    /// None: it had none.
    pub task: Option<TaskId>,
    pub state: TaskState,
    pub reason: Option<String>,
    /// The agent's words.
    pub text: String,
}
