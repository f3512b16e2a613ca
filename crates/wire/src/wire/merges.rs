//! Owns the methods that check and merge a branch of a task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::CheckResult;
use super::method::method;

method! {
    MergeBranch = "merge_branch": MergeBranchParams => MergedBranch;
    port: Person, web: Control, token: Control(Team), waits: false, lasts: true, hub: One
}

method! {
    CheckBranch = "check_branch": CheckBranchParams => CheckedBranch;
    port: Person, web: Control, token: Control(Team), waits: false, lasts: true, hub: One
}

method! {
    OpenPullRequest = "open_pull_request": OpenPullRequestParams => PullRequest;
    port: Person, web: Control, token: Control(Team), waits: false, lasts: true, hub: One
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct MergeBranchParams {
    pub branch: String,
    /// The branch that moves; the one that `branch` began at if left out.
    #[serde(default)]
    pub into: Option<String>,
    /// One commit with all changes.
    #[serde(default)]
    pub squash: bool,
    /// Each commit again, behind those of `into`.
    #[serde(default)]
    pub rebase: bool,
    /// Text of the commit; 64 KiB at most.
    #[serde(default)]
    pub message: Option<String>,
    /// Commit first what is not committed in the worktree.
    #[serde(default)]
    pub commit: bool,
    /// Run the checks on what comes out; true if left out.
    #[serde(default = "yes")]
    pub check: bool,
    /// `tree` of the `get_review` that was looked at: where the branch has anything else by now, it is not merged.
    #[serde(default)]
    pub tree: Option<String>,
    /// Merge in memory only, what is committed, and change nothing.
    #[serde(default)]
    pub dry_run: bool,
}

fn yes() -> bool {
    true
}

/// A merge that was made, or tried in memory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MergedBranch {
    pub branch: String,
    /// The branch that moved.
    pub into: String,
    /// Its commit before the merge. Null: the merge was tried only.
    pub old: Option<String>,
    /// Its commit now.
    pub new: Option<String>,
    /// The number of checks that passed.
    pub checks: usize,
    /// The files that both change so that git can't merge them, 1,000 at most. Of a merge that was made there are none.
    pub conflicts: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckBranchParams {
    /// A branch with a worktree of its own.
    pub branch: String,
}

/// How the checks of a branch ended now.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckedBranch {
    #[serde(flatten)]
    pub result: CheckResult,
    /// The check that failed, and how. Null: all passed.
    pub reason: Option<String>,
    /// The last lines of what they wrote: 100, and 16 KiB, at most.
    pub output: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OpenPullRequestParams {
    pub branch: String,
    /// The branch that it is to be merged into; the one that `branch` began at if left out.
    #[serde(default)]
    pub into: Option<String>,
}

/// A pull request that was opened.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PullRequest {
    pub branch: String,
    /// Null: the branch began at none, and the host chose.
    pub into: Option<String>,
    /// Its address, as `gh` printed it.
    pub link: String,
}
