//! The data of OpenCode's server, as far as it is read: events, messages with their parts, permissions.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// An event; what its properties are depends on the type.
#[derive(Deserialize, Debug)]
pub(super) struct Event<'a> {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(borrow)]
    pub(super) properties: Option<&'a RawValue>,
}

#[derive(Deserialize, Debug)]
pub(super) struct OfSession {
    #[serde(rename = "sessionID")]
    pub(super) session: String,
}

#[derive(Deserialize, Debug)]
pub(super) struct SessionFailed {
    #[serde(rename = "sessionID")]
    pub(super) session: Option<String>,
    pub(super) error: Option<SessionFailure>,
}

#[derive(Deserialize, Debug)]
pub(super) struct MessageUpdated {
    pub(super) info: Info,
}

#[derive(Deserialize, Debug)]
pub(super) struct PartUpdated {
    pub(super) part: MessagePart,
}

#[derive(Deserialize, Debug)]
pub(super) struct PartDelta {
    #[serde(rename = "sessionID")]
    pub(super) session: String,
    #[serde(rename = "partID")]
    pub(super) part: String,
    pub(super) field: String,
    pub(super) delta: String,
}

#[derive(Deserialize, Debug)]
pub(super) struct TodoUpdated {
    #[serde(rename = "sessionID")]
    pub(super) session: String,
    pub(super) todos: Vec<Todo>,
}

#[derive(Deserialize, Debug)]
pub(super) struct Todo {
    pub(super) content: String,
    #[serde(default)]
    pub(super) status: String,
    #[serde(default)]
    pub(super) priority: String,
}

/// Why a session or a message has failed.
#[derive(Deserialize, Clone, Debug)]
pub(super) struct SessionFailure {
    pub(super) name: String,
    #[serde(default)]
    pub(super) data: Value,
}

impl SessionFailure {
    /// Returns the words of the model or the server.
    pub(super) fn text(&self) -> &str {
        let said = self.data["message"].as_str().filter(|said| !said.is_empty());
        said.unwrap_or(&self.name)
    }

    pub(super) fn is_abort(&self) -> bool {
        self.name == "MessageAbortedError"
    }
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    User,
    Assistant,
    #[serde(other)]
    Other,
}

#[derive(Deserialize, Debug)]
pub(super) struct ServerMessage {
    pub(super) info: Info,
    #[serde(default)]
    pub(super) parts: Vec<MessagePart>,
}

#[derive(Deserialize, Debug)]
pub(super) struct Info {
    pub(super) id: String,
    #[serde(rename = "sessionID")]
    pub(super) session: String,
    pub(super) role: Role,
    /// The message of a user that it answers.
    #[serde(rename = "parentID")]
    pub(super) parent: Option<String>,
    #[serde(default)]
    pub(super) time: Time,
    pub(super) error: Option<SessionFailure>,
    pub(super) finish: Option<String>,
    #[serde(default)]
    pub(super) cost: f64,
    #[serde(default)]
    pub(super) tokens: TokenCount,
    #[serde(rename = "providerID")]
    pub(super) provider: Option<String>,
    #[serde(rename = "modelID")]
    pub(super) model: Option<String>,
}

#[derive(Deserialize, Default, Debug)]
pub(super) struct Time {
    pub(super) completed: Option<f64>,
    pub(super) end: Option<f64>,
}

#[derive(Deserialize, Clone, Copy, Default, Debug)]
#[serde(default)]
pub(super) struct TokenCount {
    pub(super) input: f64,
    pub(super) output: f64,
    pub(super) reasoning: f64,
    pub(super) cache: Cache,
}

#[derive(Deserialize, Clone, Copy, Default, Debug)]
#[serde(default)]
pub(super) struct Cache {
    pub(super) read: f64,
    pub(super) write: f64,
}

#[derive(Deserialize, Debug)]
pub(super) struct MessagePart {
    pub(super) id: String,
    #[serde(rename = "messageID")]
    pub(super) message: String,
    #[serde(rename = "sessionID")]
    pub(super) session: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) time: Option<Time>,
    pub(super) synthetic: Option<bool>,
    pub(super) ignored: Option<bool>,
    pub(super) tool: Option<String>,
    #[serde(rename = "callID")]
    pub(super) call: Option<String>,
    pub(super) state: Option<ToolState>,
}

#[derive(Deserialize, Debug)]
pub(super) struct ToolState {
    pub(super) status: String,
    #[serde(default)]
    pub(super) input: Value,
    pub(super) output: Option<String>,
    pub(super) error: Option<String>,
    pub(super) title: Option<String>,
}

#[derive(Deserialize, Clone, Debug)]
pub(super) struct Permission {
    pub(super) id: String,
    #[serde(rename = "sessionID")]
    pub(super) session: String,
    /// The tool that is asked for, or a thing that several tools do.
    #[serde(rename = "permission")]
    pub(super) what: String,
    #[serde(default)]
    pub(super) patterns: Vec<String>,
    #[serde(default)]
    pub(super) metadata: Value,
    pub(super) tool: Option<CallRef>,
}

#[derive(Deserialize, Clone, Debug)]
pub(super) struct CallRef {
    #[serde(rename = "messageID")]
    pub(super) message: String,
    #[serde(rename = "callID")]
    pub(super) call: String,
}

#[derive(Deserialize, Debug)]
pub(super) struct PermissionReplied {
    #[serde(rename = "requestID")]
    pub(super) request: String,
}

#[derive(Deserialize, Debug)]
pub(super) struct SessionInfo {
    pub(super) id: String,
    #[serde(default)]
    pub(super) directory: String,
    #[serde(default)]
    pub(super) title: String,
    #[serde(default)]
    pub(super) cost: f64,
}

#[derive(Deserialize, Debug)]
pub(super) struct SessionStatus {
    #[serde(rename = "type")]
    pub(super) kind: String,
}

/// A way of working, which the server calls an agent.
#[derive(Deserialize, Clone, Debug)]
pub(super) struct AgentMode {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) mode: String,
    pub(super) hidden: Option<bool>,
    #[serde(default)]
    pub(super) permission: Vec<PermissionRule>,
}

#[derive(Deserialize, Clone, PartialEq, Eq, Debug)]
pub(super) struct PermissionRule {
    pub(super) permission: String,
    pub(super) pattern: String,
    pub(super) action: String,
}

#[derive(Deserialize, Debug)]
pub(super) struct Providers {
    pub(super) providers: Vec<Provider>,
    #[serde(default)]
    pub(super) default: serde_json::Map<String, Value>,
}

#[derive(Deserialize, Debug)]
pub(super) struct Provider {
    pub(super) id: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) models: serde_json::Map<String, Value>,
}

#[derive(Deserialize, Debug)]
pub(super) struct ServerConfig {
    pub(super) model: Option<String>,
}

#[derive(Deserialize, Debug)]
pub(super) struct ServerHealth {
    pub(super) version: Option<String>,
}
