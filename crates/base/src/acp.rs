//! Owns the shapes of the Agent Client Protocol that several rooms read. Other programs wrote them: a member
//! that is absent or of another type is the default, and unknown ones are passed over.

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer};
use serde_json::{Map, Value};

use crate::line::{lenient, lenient_list};

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
        #[serde(rename = "type")]
        kind: Option<String>,
        text: Option<String>,
        uri: Option<String>,
        name: Option<String>,
        mime_type: Option<String>,
        data: Option<String>,
        resource: EmbeddedResource,
    }
    EmbeddedResource {
        uri: Option<String>,
        text: Option<String>,
    }
    /// A content of a tool call.
    CallContent {
        #[serde(rename = "type")]
        kind: Option<String>,
        content: ContentBlock,
        new_text: Option<String>,
    }
    CallLocation {
        path: Option<String>,
    }
    /// A `tool_call` or `tool_call_update`.
    CallUpdate {
        /// Any JSON.
        tool_call_id: Value,
        title: Option<String>,
        kind: Option<String>,
        status: Option<String>,
        content: Elements<CallContent>,
    }
    PlanStep {
        content: String,
        status: String,
    }
    /// The params of `session/request_permission`.
    AskedPermission {
        options: Value,
        tool_call: AskedCall,
    }
    AskedCall {
        tool_call_id: Option<String>,
        title: Option<String>,
    }
    PermissionOption {
        option_id: Option<String>,
        kind: Option<String>,
    }
    /// The result of `session/request_permission`.
    PermissionAnswer {
        outcome: PermissionOutcome,
    }
    PermissionOutcome {
        outcome: Option<String>,
        option_id: Option<String>,
    }
    /// The result of `initialize`.
    AgentIntroduction {
        /// Any JSON.
        protocol_version: Value,
        agent_info: Implementation,
        agent_capabilities: AgentCapabilities,
        /// As the agent lists them.
        auth_methods: Value,
    }
    Implementation {
        name: Option<String>,
        version: Option<String>,
    }
    AgentCapabilities {
        load_session: bool,
        mcp_capabilities: McpCapabilities,
        prompt_capabilities: PromptCapabilities,
        session_capabilities: SessionCapabilities,
    }
    McpCapabilities {
        http: bool,
    }
    PromptCapabilities {
        embedded_context: bool,
        image: bool,
    }
    SessionCapabilities {
        resume: Offered,
        fork: Offered,
        close: Offered,
    }
    /// The params of `initialize`.
    ClientIntroduction {
        client_capabilities: ClientCapabilities,
    }
    ClientCapabilities {
        fs: FileCapabilities,
        terminal: bool,
        elicitation: Offered,
    }
    FileCapabilities {
        read_text_file: bool,
        write_text_file: bool,
    }
    /// An error of JSON-RPC.
    Complaint {
        /// Any JSON.
        code: Value,
        message: Option<String>,
        /// Any JSON.
        data: Value,
    }
    ComplaintData {
        details: Option<String>,
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
