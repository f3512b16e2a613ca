//! Owns the methods that prompt agents, open sessions, and go back in them.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::method::method;
use super::names::{AgentName, Decider, TeamId};
use super::{AgentParams, NameOf};
use crate::model::How;
use crate::runs::RefusedAccess;

method! {
    PromptAgent = "prompt": PromptParams => Prompted;
    port: Lead, web: Control, token: Prompt(Named("agent_id")), waits: false, lasts: true, hub: One
}

method! {
    Cancel = "cancel": CancelParams => Cancelled;
    port: Lead, web: Control, token: Prompt(Named("agent_id")), waits: false, lasts: false, hub: One
}

method! {
    ListPrompts = "list_prompts": ListPromptsParams => WaitingPrompts<'a>;
    port: Reader, web: Read, token: Read(Named("agent_id")), waits: false, lasts: false, hub: One
}

method! {
    EditPrompt = "edit_prompt": EditPromptParams => WaitingPrompt<'a>;
    port: Lead, web: Control, token: Prompt(Named("agent_id")), waits: false, lasts: false, hub: One
}

method! {
    WithdrawPrompt = "withdraw_prompt": WithdrawPromptParams => WaitingPrompt<'a>;
    port: Lead, web: Control, token: Prompt(Named("agent_id")), waits: false, lasts: false, hub: One
}

method! {
    NewSession = "new_session": AgentParams => OpenedSession;
    port: Lead, web: Control, token: Prompt(Named("agent_id")), waits: false, lasts: true, hub: One
}

method! {
    ForkSession = "fork_session": ForkSessionParams => Forked;
    port: Lead, web: Control, token: Prompt(Team), waits: false, lasts: true, hub: One
}

method! {
    RewindSession = "rewind_session": RewindSessionParams => Rewound;
    port: Lead, web: Control, token: Control(Team), waits: false, lasts: true, hub: One
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PromptParams {
    pub agent_id: AgentName<'static>,
    /// The agent's default session if left out.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub session_id: Option<String>,
    /// Short for one text block.
    pub text: Option<String>,
    /// ACP content blocks; either these or `text`.
    pub blocks: Option<Vec<Map<String, Value>>>,
    /// Send the turn's progress, in `rpc_progress` lines.
    pub stream: Option<bool>,
}

/// A turn that ended.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Prompted {
    pub session_id: String,
    /// A stop reason of ACP.
    pub stop_reason: String,
    /// Why it ended in an error, as in its `turn` line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The agent's message chunks, joined.
    pub text: String,
    /// Accesses denied during the turn, for a prompt made with the orchestrator's token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Vec<TeamId<'static>>>,
    /// Accesses of the turn that were blocked, and not allowed by its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedAccess>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CancelParams {
    pub agent_id: AgentName<'static>,
    /// All sessions of the agent if left out.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub session_id: Option<String>,
    /// Also withdraw queued prompts: true if left out.
    pub queued: Option<bool>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Cancelled {
    /// Running turns that are asked to end.
    #[serde(default)]
    pub turns: usize,
    /// Queued prompts that were withdrawn.
    #[serde(default)]
    pub prompts: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListPromptsParams {
    pub agent_id: AgentName<'static>,
    /// All sessions of the agent if left out.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub session_id: Option<String>,
    /// Only this prompt, with its whole text.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub id: Option<String>,
}

/// The prompts that wait for their turn.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WaitingPrompts<'a> {
    /// By session, and there in the order in which they will be sent.
    pub prompts: Vec<WaitingPrompt<'a>>,
    /// Prompts that are left out of the list.
    #[serde(default)]
    pub more: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WaitingPrompt<'a> {
    pub id: Cow<'a, str>,
    pub session_id: Cow<'a, str>,
    /// Its text blocks, joined by line ends.
    pub text: Cow<'a, str>,
    /// The text is cut here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Content blocks that are no text, such as pictures.
    #[serde(default)]
    pub attachments: usize,
    /// The sender, as in `decided_by`; null: the team itself.
    pub by: Option<Decider<'a>>,
    #[serde(default)]
    pub since_ms: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EditPromptParams {
    pub agent_id: AgentName<'static>,
    pub id: String,
    /// The text in place of the one before; other content blocks stay.
    pub text: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WithdrawPromptParams {
    pub agent_id: AgentName<'static>,
    pub id: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "NewSession")]
pub struct OpenedSession {
    pub session_id: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ForkSessionParams {
    /// The journal's id, the beginning of one, `AGENT/SESSION` or a session of the wire.
    pub session_id: String,
    /// The branch point, an event of the session by its id or the beginning of one; the session's
    /// head if left out.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub at: Option<String>,
    /// The agent that goes on; the session's own if left out.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub agent_id: Option<AgentName<'static>>,
}

/// A session that continues another.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Forked {
    pub agent_id: AgentName<'static>,
    /// The session of the wire, which `prompt` takes.
    pub session_id: String,
    /// `forked`: the agent forked its own session. `primed`: a new session gets the conversation as
    /// a document in front of its next prompt.
    #[schemars(with = "String", extend("enum" = How::ALL.map(How::as_str)))]
    pub how: NameOf<How>,
    /// The session of the journal.
    pub journal_session_id: String,
    /// The branch point.
    pub at: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RewindSessionParams {
    /// As for `fork_session`.
    pub session_id: String,
    /// The event that becomes the session's head: its id, or the beginning of one.
    pub to: String,
    /// Undo what the session's agent wrote after it, too.
    pub files: Option<bool>,
}

/// A session that was set back.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Rewound {
    pub agent_id: AgentName<'static>,
    /// The session of the wire, which goes on under its name.
    pub session_id: Option<String>,
    pub journal_session_id: String,
    pub head_event_id: String,
    /// `primed`: the agent goes on with a session that gets the conversation up to the point in
    /// front of its next prompt. Null: no agent has the session open, or it knows nothing that came
    /// after the point.
    #[schemars(with = "Option<String>", extend("enum" = [json!("primed"), json!(null)]))]
    pub how: Option<NameOf<How>>,
}
