//! Owns the methods of reviews: a branch of a task, hunk by hunk, and what a person says of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::method::method;
use super::names::AgentName;

method! {
    GetReview = "get_review": GetReviewParams => BranchReview;
    port: Person, web: Decide, token: Decide(Team), waits: false, lasts: false, hub: One
}

method! {
    ReviewHunk = "review_hunk": ReviewHunkParams => BranchReview;
    port: Person, web: Control, token: Control(Team), waits: false, lasts: false, hub: One
}

method! {
    CommentHunk = "comment": CommentParams => BranchReview;
    port: Person, web: Control, token: Control(Team), waits: false, lasts: false, hub: One
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetReviewParams {
    /// A branch with a worktree of its own.
    pub branch: String,
    /// The branch that it is compared with; the one that it began at if left out.
    #[serde(default)]
    pub into: Option<String>,
    /// A person has looked: what comes from now on is marked as new.
    #[serde(default)]
    pub looked: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReviewHunkParams {
    pub branch: String,
    /// The id of a hunk, the beginning of one, or a path for all hunks of a file.
    pub hunk: String,
    pub decision: HunkDecision,
}

/// The decision on a hunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HunkDecision {
    /// The hunk is marked as accepted, until its lines change.
    Accept,
    /// The hunk is taken back in the worktree.
    Revert,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CommentParams {
    pub branch: String,
    /// The id of a hunk, or the beginning of one.
    #[serde(default)]
    pub hunk: Option<String>,
    /// A sentence on the hunk, which is kept.
    #[serde(default)]
    pub text: Option<String>,
    /// All comments that the agent has not got go to it as one prompt.
    #[serde(default)]
    pub send: bool,
}

/// All that a branch changes, committed or not.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BranchReview {
    pub branch: String,
    /// The branch that it is compared with. Null: the commit that it began at.
    pub into: Option<String>,
    /// The commit that both come from.
    pub base: String,
    /// The tree of git with all that the branch has, committed or not.
    pub tree: String,
    /// The agent of this team that works in its worktree.
    #[serde(default)]
    pub agent_id: Option<AgentName<'static>>,
    pub task: Option<String>,
    /// How often a person has looked before.
    pub round: u64,
    /// Files in its worktree that no commit has as they are.
    pub uncommitted: Vec<String>,
    /// The steps of a rebase that is under way: a person who goes on with it runs them.
    pub rebase: Option<String>,
    pub files: Vec<ReviewFile>,
    /// The number of comments that the agent has not got.
    pub unsent: usize,
    /// The last result of the checks; null if they did not run.
    pub checks: Option<CheckResult>,
}

/// How the checks of a branch ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckResult {
    pub passed: bool,
    /// The commit that they ran on; with `is_clean` false, with what was not committed.
    pub commit: String,
    pub is_clean: bool,
    pub at_ms: u64,
}

/// A file that a branch changes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReviewFile {
    pub path: String,
    /// `added`, `changed` or `removed`.
    pub status: String,
    pub added: usize,
    pub removed: usize,
    pub hunks: Vec<ReviewHunkRow>,
}

/// Lines that were changed together.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReviewHunkRow {
    /// Stays the same while the path and the lines do.
    pub id: String,
    /// Where it is, as git says it; empty for a file that has no lines.
    pub header: String,
    /// Each with a space, `+` or `-` before it.
    pub lines: Vec<String>,
    /// The lines came since the last look.
    pub is_new: bool,
    pub is_accepted: bool,
    pub comments: Vec<HunkComment>,
    /// The turns that wrote its lines, as far as journals know them.
    pub by: Vec<HunkWriter>,
}

/// A sentence on a hunk.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HunkComment {
    pub text: String,
    pub said_at_ms: u64,
    pub is_sent: bool,
}

/// A turn that wrote lines of a hunk.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HunkWriter {
    /// The run, or the team.
    pub run: String,
    pub agent: String,
    pub turn: Option<u64>,
    /// The first words of the turn's prompt.
    pub prompt: Option<String>,
    /// The title of the tool call.
    pub call: Option<String>,
}
