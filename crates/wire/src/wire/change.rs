//! Owns the methods about changes of files: a diff, the author of each line, undo.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::method::method;
use super::names::AgentName;
use super::tools::tool;
method! {
    GetDiff = "get_diff": GetDiffParams => Diff;
    port: Reader, web: Read, token: Read(Named("agent_id")), waits: false, lasts: false, hub: One
}

method! {
    Blame = "blame": BlameParams => Blamed;
    port: Reader, web: Read, token: Read(Team), waits: false, lasts: false, hub: One
}

method! {
    Undo = "undo": UndoParams => Undone;
    port: Person, web: Control, token: Control(Named("agent_id")), waits: false, lasts: false, hub: One
}

method! {
    Redo = "redo": RedoParams => Undone;
    port: Person, web: Control, token: Control(Named("agent_id")), waits: false, lasts: false, hub: One
}

#[derive(Clone, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetDiffParams {
    /// Only of this agent; of all agents if left out.
    #[serde(default, alias = "agent", deserialize_with = "super::fields::name")]
    #[schemars(extend("x-tool" = tool("Only what this agent changed").named("agent")))]
    pub agent_id: Option<AgentName<'static>>,
    /// Only of this session: the journal's id, the beginning of one, `AGENT/SESSION` or a session of
    /// the wire.
    #[serde(default, deserialize_with = "super::fields::name")]
    #[schemars(extend("x-tool" = tool("Only what was changed in this session")))]
    pub session_id: Option<String>,
    /// Only of this turn, of the agent's first session unless another is named.
    #[schemars(extend("x-tool" = tool("Only what was changed in this turn")))]
    pub turn: Option<u64>,
    /// Only behind the event with this id.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub since: Option<String>,
    /// Whether files that git ignores are in it.
    #[serde(default)]
    pub ignored: bool,
}

/// The changes that agents made.
#[derive(Clone, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// A patch that `git apply` takes.
    pub diff: String,
    /// The patch in base64, if it is not UTF-8: then `diff` is not exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff_bytes: Option<String>,
    pub files: Vec<DiffFile>,
    /// Changes that a patch can't carry, and changes that the answer had no room for.
    pub left_out: Vec<NotInDiff>,
    /// How many more files have no entry in `left_out`.
    pub more_left_out: usize,
    /// How many files git ignores, which are left out.
    pub ignored: usize,
    /// How many changes were undone since, which are left out.
    pub undone: usize,
    /// How many changes could not be read, which are left out.
    pub unread: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DiffFile {
    pub path: String,
    /// The path before, if it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Lines.
    pub added: usize,
    pub removed: usize,
    pub binary: bool,
    /// Other agents that wrote the file at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contested: Vec<AgentName<'static>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NotInDiff {
    pub path: String,
    pub reason: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BlameParams {
    /// A file, relative to the workspace as the journal's events name it.
    pub path: String,
    /// The first line of the answer, from 1.
    pub first_line: Option<usize>,
}

/// The writer of each line.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Blamed {
    pub path: String,
    pub lines: Vec<BlamedLine>,
    /// The `first_line` of the next request; null at the end.
    pub next_line: Option<usize>,
    /// How many changes could not be read.
    pub unread: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BlamedLine {
    /// From 1.
    pub line: usize,
    /// `agent`, `before` (it was there before the journal's first change), `outside`, `unknown`,
    /// `undo` or `redo`.
    pub by: Cow<'static, str>,
    pub agent_id: Option<AgentName<'static>>,
    /// The journal's session.
    pub session_id: Option<String>,
    pub turn: Option<u64>,
    pub tool_call_id: Option<String>,
    /// The title of the tool call.
    pub title: Option<String>,
    /// The event of the change.
    pub event_id: Option<String>,
    /// Milliseconds since 1970.
    pub timestamp: Option<u64>,
    /// The first words of the turn's prompt. Null for another agent's, with an agent's token.
    pub prompt: Option<String>,
    /// Other agents that wrote the file at the same time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contested: Vec<AgentName<'static>>,
    /// Without the line's end. Null for lines that are not the agent's own, with an agent's token.
    pub text: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UndoParams {
    pub agent_id: AgentName<'static>,
    /// The session's id of the wire or the journal, or the beginning of the journal's. All sessions if left
    /// out; with `turn` the agent's first.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub session_id: Option<String>,
    /// Only what it wrote in this turn.
    pub turn: Option<u64>,
    /// Only what it wrote behind the event with this id.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub since: Option<String>,
    /// Only say what would be done.
    #[serde(default)]
    pub dry_run: bool,
    /// Files that clash get the content from before the agent's change.
    #[serde(default)]
    pub force: bool,
    /// Also what it wrote outside the workspace.
    #[serde(default)]
    pub outside: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RedoParams {
    /// The last undo of any agent if left out.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub agent_id: Option<AgentName<'static>>,
    #[serde(default)]
    pub dry_run: bool,
    #[serde(default)]
    pub force: bool,
}

/// The changes that were undone, or would be.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Undone {
    /// The event in the journal; null if nothing was to be done, or it was a dry run.
    pub event_id: Option<String>,
    pub agent_id: Option<AgentName<'static>>,
    pub paths: Vec<ChangedPath>,
    /// Files that clash, or can't be restored.
    pub obstacles: Vec<Obstacle>,
    /// Folders that the agent made, and that stay, since others have files in them.
    pub staying: Vec<String>,
    /// How many changes in `.git` stay.
    pub of_git: usize,
    /// How many changes outside the workspace stay.
    pub outside: usize,
    /// Only of a dry run: the changes that would be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Only of a dry run: changes that the diff can't carry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_in_diff: Vec<String>,
    /// Only of a dry run: why it would be refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangedPath {
    pub path: String,
    /// In base64, of a name that is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
    /// Null: nothing is there.
    pub before: Option<PathState>,
    pub after: Option<PathState>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PathState {
    /// The hash of the content; null for a folder.
    pub hash: Option<String>,
    pub size: u64,
    pub mode: u32,
    /// `file`, `symlink` or `folder`.
    pub kind: String,
    /// Whether the journal has the content.
    pub stored: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Obstacle {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
    /// `clash`, `not_restorable` or `in_the_way`.
    pub kind: String,
    pub why: String,
    /// The path got the content from before the agent's change; else it stays as it is.
    pub forced: bool,
}
