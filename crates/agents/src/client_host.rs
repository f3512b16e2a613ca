//! The ACP client of supervised agents: sessions, prompt queue, files, terminals, permissions.
//! Depends neither on the supervisor nor on servers.
//!
//! One task owns the state of one agent run (`actor`); each request of the agent runs in a task of
//! its own, so that no request waits for one in the opposite direction.

mod actor;
mod answer_line;
mod answers;
mod attach;
mod choice;
mod content;
mod dispatch;
mod draft;
mod elicitations;
mod error;
mod files;
mod first_prompt;
mod forks;
mod guests;
mod handle;
mod handshake;
mod host;
mod messages;
mod offers;
mod permissions;
mod requests;
mod rpc;
mod session_options;
mod sessions;
mod terminals;
#[cfg(test)]
mod tests;
mod tool_form;
mod transport;
mod turns;
mod writes;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::model::{BlockedAccess, BlockedId, SessionId};
pub use terminals::Screens;
pub use tool_form::TeamTools;

pub use answers::{Answers, TurnAnswer};
pub use choice::ChoiceRequest;
pub use content::{Content, is_command, team_block};
pub use draft::{PromptDraft, WaitingPrompt};
pub use error::HostError;
pub use forks::{Continuation, Document, Forking};
pub use handle::HostHandle;
pub use handshake::{AgentInfo, PROTOCOL_VERSION};
pub use offers::{Chosen, OptionValue, SessionChoices, SessionOption};

/// Bytes of what an agent calls its last tool call.
pub const LONGEST_ACTION: usize = 200;

/// Settings of the host of one agent.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// `cwd` of new sessions; an absolute path.
    pub cwd: PathBuf,
    pub permissions: PermissionPolicy,
    /// Offer `terminal/*`.
    pub terminals: bool,
    /// Offer `fs/*`.
    pub files: bool,
    pub mcp_servers: Vec<Value>,
    /// The MCP server with the tools of the team.
    pub tools: Option<TeamTools>,
    pub auth_method: Option<String>,
    pub model: Option<String>,
    /// None: the agent's own. One that offers no choice of it keeps that, too.
    pub thinking: Option<String>,
    pub mode: Option<String>,
    /// The mode to set without one, in which it asks for permission. An agent that does not offer it asks by
    /// itself.
    pub asking_mode: Option<String>,
    /// The prompt by which it compresses its context, unless it announces one; None if unknown.
    pub compress: Option<String>,
    /// Environment of terminals, in addition to the supervisor's.
    pub env: BTreeMap<String, String>,
    /// Timeout of each step from `initialize` to an open session.
    pub initialize_timeout: Duration,
    /// Receives the last line of each answer, if set.
    pub answers: Option<Answers>,
}

/// The answer to permission requests inside the zone, and to questions to the user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PermissionPolicy {
    Allow,
    Deny,
    /// The orchestrator decides permission requests before they reach the host; questions that only
    /// a user can answer do not go to it.
    Orchestrator,
}

/// Priority of a prompt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Urgency {
    /// After the running turn, before other queued prompts.
    Briefing,
    Normal,
}

/// The outcome of a completed turn.
#[derive(Clone, PartialEq, Debug)]
pub struct PromptOutcome {
    pub session: SessionId,
    /// As in the protocol.
    pub stop_reason: String,
    /// The reason of the end, where it is known beyond the agent's answer.
    pub reason: Option<Arc<str>>,
    /// The agent's message chunks, joined.
    pub text: String,
    /// As in [`Said`].
    pub last_message_at: usize,
    /// Accesses that were denied immediately; only for a prompt of the orchestrator.
    pub blocked: Vec<BlockedId>,
    /// Accesses of the turn that were blocked, and not allowed by its end.
    pub refused: Vec<BlockedAccess>,
}

impl PromptOutcome {
    /// The agent's text after its last tool call or plan.
    pub fn last_message(&self) -> &str {
        self.text.get(self.last_message_at..).unwrap_or_default().trim()
    }

    /// The outcome with another last message.
    #[must_use]
    pub fn with_answer(self, text: String) -> Self {
        Self { text, last_message_at: 0, ..self }
    }
}

/// The state of a turn, published over a watch channel while it runs, so that a slow reader costs
/// no more memory than the text.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Said {
    /// How often the prompt was sent. All else is of the last time.
    pub attempt: u32,
    /// Set when the prompt is sent; None while it is queued.
    pub session: Option<SessionId>,
    /// The agent's message chunks so far: a prefix of [`PromptOutcome::text`].
    pub text: String,
    /// Where the text after the agent's last tool call or plan begins.
    pub last_message_at: usize,
    /// The title of its last tool call: one line, at most [`LONGEST_ACTION`] bytes.
    pub last_action: Option<String>,
}

/// The number of turns and prompts that a cancel affected.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cancelled {
    /// Running turns that received a cancellation.
    pub turns: usize,
    /// Prompts that were withdrawn before they were sent.
    pub prompts: usize,
}

/// A session of the agent's run, with its running turn and queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionLoad {
    pub session: SessionId,
    /// Receives the prompts that name no session.
    pub is_default: bool,
    pub is_running: bool,
    /// Prompts in the queue.
    pub queued: usize,
    /// The value of each option that the agent offers there.
    pub chosen: Chosen,
}
