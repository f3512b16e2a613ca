//! Owns the shapes of the Agent Client Protocol that several rooms read. Other programs wrote them: a member
//! that is absent or of another type is the default, and unknown ones are passed over.

mod message;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer};
use serde_json::{Map, Value};

use crate::line::{lenient, lenient_list};
pub use message::{AcpMessage, NoMessage, RpcResult};

/// Reads a shape; another type of value is the default.
pub fn read<T: DeserializeOwned + Default>(value: &Value) -> T {
    T::deserialize(value).unwrap_or_default()
}

/// Reads the elements of a list; another type of value is an empty list.
pub fn list<T: DeserializeOwned + Default>(value: &Value) -> Vec<T> {
    value.as_array().into_iter().flatten().map(read).collect()
}

/// Declares shapes whose members are all read leniently.
macro_rules! shapes {
    ($($(#[$of:meta])* $name:ident { $($(#[$member:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            $(#[$of])*
            #[derive(Clone, Default, PartialEq, Debug, Deserialize)]
            #[serde(default, rename_all = "camelCase")]
            pub struct $name {
                $($(#[$member])* #[serde(deserialize_with = "lenient")] pub $field: $type,)*
            }
        )*
    };
}

shapes! {
    /// A content block.
    ContentBlock {
        /// `text`, `image`, `audio`, `resource` or `resource_link`.
        #[serde(rename = "type")]
        kind: Option<String>,
        /// The text of a `text` block.
        text: Option<String>,
        /// The address of a `resource_link`, and of an `image` that has one.
        uri: Option<String>,
        /// The name of a `resource_link`, for people.
        name: Option<String>,
        /// The MIME type of `data`, or of the target of a `resource_link`.
        mime_type: Option<String>,
        /// The content of an `image` or `audio` block, in base64.
        data: Option<String>,
        /// The content of a `resource` block; empty in other blocks.
        resource: EmbeddedResource,
    }
    /// A document that is embedded in a content block.
    EmbeddedResource {
        /// The address of the document, such as `file:///w/a.md`.
        uri: Option<String>,
        /// The text of the document; None: it is binary.
        text: Option<String>,
    }
    /// A content of a tool call.
    CallContent {
        /// `content`, `diff` or `terminal`.
        #[serde(rename = "type")]
        kind: Option<String>,
        /// The block of a `content`; empty in other kinds.
        content: ContentBlock,
        /// The new text of the file, in a `diff`.
        new_text: Option<String>,
        /// The id of a `terminal`.
        terminal_id: Option<String>,
        /// The output of a `terminal`, where the journal has it.
        output: Option<String>,
    }
    /// A file that a tool call works with.
    CallLocation {
        /// The path as the agent wrote it; by the protocol it is absolute.
        path: Option<String>,
    }
    /// A `tool_call` or `tool_call_update`.
    CallUpdate {
        /// Any JSON.
        tool_call_id: Value,
        /// One line for people. None in an update: it stays as it was.
        title: Option<String>,
        /// The kind of tool: `read`, `edit`, `execute`, … None in an update: it stays as it was.
        kind: Option<String>,
        /// `pending`, `in_progress`, `completed` or `failed`. None in an update: it stays as it was.
        status: Option<String>,
        /// The contents of the call; empty if the line has none.
        content: Elements<CallContent>,
    }
    /// One entry of an agent's plan.
    PlanStep {
        /// The words of the step, for people.
        content: String,
        /// `pending`, `in_progress` or `completed`.
        status: String,
    }
    /// The params of `session/request_permission`.
    AskedPermission {
        /// The answers that the agent offers: a list of [`PermissionOption`], as JSON.
        options: Value,
        /// The tool call that needs the permission.
        tool_call: AskedCall,
    }
    /// The tool call of a `session/request_permission`.
    AskedCall {
        /// The id of the call, unique in its session.
        tool_call_id: Option<String>,
        /// One line for people; None: the request has none.
        title: Option<String>,
    }
    /// One answer that an agent offers to its request for permission.
    PermissionOption {
        /// The id by which the answer names the option.
        option_id: Option<String>,
        /// `allow_once`, `allow_always`, `reject_once` or `reject_always`.
        kind: Option<String>,
    }
    /// The result of `session/request_permission`.
    PermissionAnswer {
        /// The client's choice, or the end of the request without one.
        outcome: PermissionOutcome,
    }
    /// The outcome of a request for permission.
    PermissionOutcome {
        /// `selected` or `cancelled`.
        outcome: Option<String>,
        /// The id of the selected option; None: none was selected.
        option_id: Option<String>,
    }
    /// The result of `initialize`.
    AgentIntroduction {
        /// Any JSON.
        protocol_version: Value,
        /// The name and version of the agent; empty if it gives none.
        agent_info: Implementation,
        /// The capabilities that the agent offers.
        agent_capabilities: AgentCapabilities,
        /// As the agent lists them.
        auth_methods: Value,
    }
    /// A program, as it introduces itself.
    Implementation {
        /// The name of the program.
        name: Option<String>,
        /// The version of the program, in its own form.
        version: Option<String>,
    }
    /// The capabilities of an agent.
    AgentCapabilities {
        /// Whether the agent takes `session/load`.
        load_session: bool,
        /// The transports of MCP servers that the agent takes, besides stdio.
        mcp_capabilities: McpCapabilities,
        /// The content blocks that the agent takes in prompts, besides texts and links.
        prompt_capabilities: PromptCapabilities,
        /// The optional methods of sessions that the agent takes.
        session_capabilities: SessionCapabilities,
    }
    /// The transports of MCP servers that an agent takes, besides stdio.
    McpCapabilities {
        /// Whether the agent takes MCP servers over HTTP.
        http: bool,
    }
    /// The content blocks that an agent takes in prompts, besides texts and links.
    PromptCapabilities {
        /// Whether a prompt may have `resource` blocks.
        embedded_context: bool,
        /// Whether a prompt may have `image` blocks.
        image: bool,
    }
    /// The optional methods of sessions that an agent takes.
    SessionCapabilities {
        /// `session/resume`: a session goes on, and its history is not repeated.
        resume: Offered,
        /// `session/fork`: a new session begins as a copy of another.
        fork: Offered,
        /// `session/close`: a session ends.
        close: Offered,
    }
    /// The params of `initialize`.
    ClientIntroduction {
        /// The capabilities that the client offers.
        client_capabilities: ClientCapabilities,
    }
    /// The capabilities of a client: the requests of agents that it answers.
    ClientCapabilities {
        /// The requests for files that the client answers.
        fs: FileCapabilities,
        /// Whether the client answers all `terminal/*`.
        terminal: bool,
        /// Whether the client answers `elicitation/create`.
        elicitation: Offered,
    }
    /// The requests for files that a client answers.
    FileCapabilities {
        /// Whether the client answers `fs/read_text_file`.
        read_text_file: bool,
        /// Whether the client answers `fs/write_text_file`.
        write_text_file: bool,
    }
    /// An error of JSON-RPC.
    Complaint {
        /// Any JSON.
        code: Value,
        /// The error in a short sentence.
        message: Option<String>,
        /// Any JSON.
        data: Value,
    }
    /// The texts that agents put into an error's `data`, if it is an object.
    ComplaintData {
        /// The cause, under the name that most agents use.
        details: Option<String>,
        /// The cause, under the other name that agents use.
        message: Option<String>,
    }
}

impl Complaint {
    /// The texts of `data`, where the useful detail often is.
    pub fn details(&self) -> impl Iterator<Item = String> + use<> {
        let ComplaintData { details, message } = read(&self.data);
        [self.data.as_str().map(str::to_owned), details, message].into_iter().flatten()
    }
}

/// The elements of a list that can be read.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(transparent, bound = "T: DeserializeOwned")]
pub struct Elements<T>(#[serde(deserialize_with = "lenient_list")] pub Vec<T>);

impl<T> Default for Elements<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// A capability that an object offers; null and all else do not.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Offered(pub bool);

impl<'de> Deserialize<'de> for Offered {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Map::<String, Value>::deserialize(from).map(|_| Self(true))
    }
}
