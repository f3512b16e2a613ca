//! Owns the method that lists the branches of tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Empty;
use super::method::method;
use super::names::AgentName;

method! {
    ListBranches = "list_branches": Empty => BranchList;
    port: Person, web: Decide, token: Decide(Team), waits: false, lasts: false, hub: One
}

/// The branches of tasks of the team's repository.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BranchList {
    /// Ordered by their names; 200 at most.
    pub branches: Vec<BranchRow>,
    /// Branches that are not listed: of more than 200 those that were cleaned, then the oldest.
    pub omitted: usize,
}

/// A branch of a task, as `eisen-core branches --json` has it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BranchRow {
    pub branch: String,
    /// The folder of its worktree.
    pub path: String,
    /// `working`, `needs_you`, `ready`, `merged`, `stale`, `cleaned` or `broken`.
    pub state: String,
    /// `TEAM/AGENT`, or the profile or program of its first run.
    pub owner: String,
    /// The agent of this team that works in its worktree.
    pub agent_id: Option<AgentName<'static>>,
    /// The first line of its task.
    pub task: Option<String>,
    /// The branch that it is compared with. Null: there is none any more.
    pub into: Option<String>,
    /// Commits that it has, and that the other has not. Null: not known, and so are the next five.
    pub ahead: Option<u64>,
    pub behind: Option<u64>,
    /// Its changes, committed or not.
    pub diff: Option<BranchDiff>,
    /// Files with changes that are not committed.
    pub uncommitted: Option<u64>,
    /// All its commits are in the other.
    pub is_merged: Option<bool>,
    /// The branches that it cannot be merged with.
    pub conflicts: Vec<BranchConflict>,
    /// Processes in its worktree; 20 at most.
    pub processes: Vec<BranchProcess>,
    /// How the checks ended the last time. Null: they did not run.
    pub checks: Option<BranchChecks>,
    pub disk_bytes: u64,
    pub made_at_ms: u64,
    /// Why its standing is not known.
    pub trouble: Option<String>,
}

/// Files and lines that a branch changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BranchDiff {
    pub files: u64,
    pub added: u64,
    pub removed: u64,
}

/// A branch that another one cannot be merged with.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BranchConflict {
    /// A branch: of a task, or the one that it is merged into.
    pub with: String,
    /// The files that both change; 20 at most.
    pub files: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BranchProcess {
    pub pid: u32,
    pub name: String,
}

/// How the checks of a branch ended the last time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BranchChecks {
    pub passed: bool,
    /// They ran on the commit that the branch has now.
    pub is_current: bool,
    pub at_ms: u64,
}
