//! Owns the methods that show what a decision is about.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::method::method;
use super::names::{AgentName, TeamId};
use super::{LockRow, NameOf};
use crate::model::Action;

method! {
    ShowBlocked = "show_blocked": ShowBlockedParams => ShownBlocked;
    port: Lead, web: Decide, token: Decide(Access), waits: false, lasts: false, hub: One
}

method! {
    ShowConflict = "show_conflict": ShowConflictParams => ShownConflict;
    port: Person, web: Decide, token: Decide(Team), waits: false, lasts: false, hub: One
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ShowBlockedParams {
    pub id: TeamId<'static>,
}

/// An access, with the file that it is about.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ShownBlocked {
    pub id: TeamId<'static>,
    pub agent_id: AgentName<'static>,
    pub session_id: String,
    pub path: String,
    pub action: NameOf<Action>,
    #[serde(flatten)]
    pub content: ShownContent,
    /// Agents whose zone allows the path.
    #[serde(default)]
    pub owners: Vec<AgentName<'static>>,
    /// The last sentence that the agent said before, in the same turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// The tool call that the access belongs to, else the one under way that names the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call: Option<ShownCall>,
    /// The process whose system call waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ShownProgram>,
    /// As in `blocked`.
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub offered: Option<String>,
    /// Only while it is `pending`: when nobody waits for the decision any more, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// The rule of `[[routing]]` that matched the access.
    pub rule: Option<u32>,
    pub decide: Option<Cow<'static, str>>,
    /// Why the agent asks for it: only with `via` `request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Stands for all this; for `resolve_blocked`.
    pub version: String,
}

/// A tool call, as the journal has it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ShownCall {
    pub tool_call_id: String,
    pub title: Option<String>,
    pub kind: Option<String>,
    /// The arguments, as JSON; null if they are not known. At most 4 KiB.
    pub input: Option<String>,
}

/// A program of an agent.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ShownProgram {
    pub pid: u32,
    /// Its command line, as the process has it: an agent may have changed that. At most 4 KiB.
    pub command: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ShowConflictParams {
    pub id: TeamId<'static>,
}

/// A write that waits, with the file that it is about.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ShownConflict {
    pub id: TeamId<'static>,
    pub agent_id: AgentName<'static>,
    /// Empty if it is not known.
    pub session_id: String,
    pub path: String,
    #[schemars(extend("enum" = [Action::Write.as_str()]))]
    pub action: Cow<'static, str>,
    #[serde(flatten)]
    pub content: ShownContent,
    /// The lock that the write meets. Null: it has ended.
    pub lock: Option<LockRow>,
    /// Stands for all this; for `resolve_conflict`.
    pub version: String,
}

/// A file as it is shown, with the content that an agent wants to write there.
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the wire")]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ShownContent {
    /// The content of the file as it is. Null where `diff` is there, and where there is no text to show.
    pub content: Option<String>,
    /// From the file as it is to what the agent wants to write, where that is known.
    pub diff: Option<String>,
    /// Only if true: `diff` is what the tool call says. The write itself is not known before it is made.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_tool_call: bool,
    /// `content` or `diff` has no more than its beginning.
    pub truncated: bool,
    /// The file, or what the agent wants to write, is no text.
    pub binary: bool,
    pub exists: bool,
    /// Why the file, or the diff, is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_shown: Option<String>,
}
