//! Owns the methods by which an agent asks, reports, and starts helpers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::method::method;
use super::names::{AgentName, TeamId};
use super::tools::{MESSAGE, TASK, tool};
use super::{Agent, Delegated, Exact, NameOf};
use crate::model::{Action, named};

method! {
    RequestAccess = "request_access": RequestAccessParams => Answer;
    port: Reader, web: Control, token: Control(Team), waits: true, lasts: false, hub: One
}

method! {
    AskOwner = "ask_owner": AskOwnerParams => Answer;
    port: Reader, web: Control, token: Control(Team), waits: true, lasts: false, hub: One
}

method! {
    Whose = "whose": WhoseParams => PathOwners;
    port: Reader, web: Read, token: Read(Team), waits: false, lasts: false, hub: One
}

method! {
    Report = "report": ReportParams => Reported;
    port: Reader, web: Control, token: Control(Team), waits: false, lasts: false, hub: One
}

method! {
    StartHelper = "start_helper": StartHelperParams => Delegated;
    port: Reader, web: Control, token: Control(Team), waits: true, lasts: false, hub: One
}

method! {
    AddMember = "add_member": AddMemberParams => Delegated;
    port: Lead, web: Control, token: Control(Team), waits: false, lasts: false, hub: One
}

method! {
    RemoveMember = "remove_member": RemoveMemberParams => Agent<'a>;
    port: Lead, web: Control, token: Control(Team), waits: false, lasts: false, hub: One
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RequestAccessParams {
    /// Relative to the workspace, or absolute.
    #[schemars(extend("x-tool" = tool("The path, relative to the workspace")))]
    pub path: String,
    #[schemars(extend("x-tool" = tool("What you want to do")))]
    pub action: Exact<Action>,
    /// The reason that the decider is told.
    #[schemars(extend("x-tool" = tool("Why: the decider reads it").most(MESSAGE)))]
    pub reason: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AskOwnerParams {
    /// Its owner is asked.
    #[serde(default, deserialize_with = "super::fields::name")]
    #[schemars(extend("x-tool" = tool("The path whose owner is asked; this or `agent`").at(1)))]
    pub path: Option<String>,
    /// The agent to ask, if not the path's owner.
    #[serde(default, deserialize_with = "super::fields::name")]
    #[schemars(extend("x-tool" = tool("Id of the agent to ask").at(2)))]
    pub agent: Option<AgentName<'static>>,
    #[schemars(extend("x-tool" = tool("The question: the owner sees only this text and the path").most(MESSAGE).at(0)))]
    pub question: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WhoseParams {
    /// Relative to the workspace, or absolute.
    #[schemars(extend("x-tool" = tool("The path, relative to the workspace")))]
    pub path: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReportParams {
    #[schemars(extend("x-tool" = tool("What to tell").most(MESSAGE)))]
    pub text: String,
}

/// The outcome of a question so far.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// `pending` until there is an answer: the same request goes on waiting.
    #[schemars(with = "AnswerState")]
    pub state: NameOf<AnswerState>,
    /// The id of the blocked access, for `request_access`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<TeamId<'static>>,
    /// The agent that was asked, for `ask_owner`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName<'static>>,
    /// Why, or what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The content of the read, or the owner's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Names the question while it is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    pub timed_out: bool,
}

impl Answer {
    pub fn of(state: AnswerState, message: Option<String>) -> Self {
        Self {
            state: state.into(),
            id: None,
            agent: None,
            message,
            content: None,
            cursor: None,
            timed_out: false,
        }
    }
}

named! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema)]
    #[schemars(rename_all = "snake_case")]
    pub enum AnswerState {
        Pending = "pending",
        Allowed = "allowed",
        Answered = "answered",
        Denied = "denied",
        Failed = "failed",
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Whose")]
pub struct PathOwners {
    pub path: String,
    /// Agents whose zone has it.
    pub owners: Vec<AgentName<'static>>,
    /// Whether the caller may read the path.
    pub may_read: bool,
    /// Whether the caller may write the path.
    pub may_write: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Reported {
    pub reported: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StartHelperParams {
    /// Given by a person; an agent is the parent of what it starts.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub parent: Option<AgentName<'static>>,
    /// The prompt that the helper gets.
    #[schemars(extend("x-tool" = tool("What the helper is to do: it sees only this text").most(TASK)))]
    pub task: String,
    /// Patterns within the parent's zone.
    #[schemars(extend("x-tool" = tool("Patterns of the files that it may write, within your own zone (`src/ui/tests/**`)").most(100)))]
    pub zone: Vec<String>,
    /// The launch profile of its program; the parent's program if left out.
    #[serde(default, deserialize_with = "super::fields::name")]
    #[schemars(extend("x-tool" = tool("The launch profile of its program; your own program if left out")))]
    pub profile: Option<String>,
    /// A branch on which it works, in a worktree of its own beside the repository.
    #[serde(default, deserialize_with = "super::fields::name")]
    #[schemars(extend("x-tool" = tool("A new branch, or an earlier one of your team: it works there in a worktree of its own, and commits").most(200)))]
    pub branch: Option<String>,
    /// Makes a repeated request the same request.
    #[serde(default, deserialize_with = "super::fields::name")]
    #[schemars(extend("x-tool" = tool("A name of yours: a repeated call with it starts no second helper").most(256)))]
    pub key: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AddMemberParams {
    #[schemars(extend("x-tool" = tool("A name for the agent").most(64)))]
    pub id: AgentName<'static>,
    /// One of `profiles` of `may_add`.
    #[schemars(extend("x-tool" = tool("The launch profile of its program")))]
    pub profile: String,
    /// Patterns within `zone` of `may_add`.
    #[schemars(extend("x-tool" = tool("Patterns of the files that it may write").most(100)))]
    pub zone: Vec<String>,
    /// The prompt that the agent gets.
    #[schemars(extend("x-tool" = tool("What the agent is to do: it sees only this text").most(TASK)))]
    pub task: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RemoveMemberParams {
    #[schemars(extend("x-tool" = tool("Id of the agent")))]
    pub id: AgentName<'static>,
}
