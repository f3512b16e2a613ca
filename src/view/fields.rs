//! Owns the fields of the port's lines that people look at. A field that is absent, or of another type in another
//! version, is the default.

use serde::Deserialize;
use serde_json::Value;

use crate::line::{lenient, lenient_list};

macro_rules! fields {
    ($($(#[$attribute:meta])* $field:ident: $type:ty,)*) => {
        /// What is shown of a line, of any type.
        #[derive(Clone, Default, Debug, Deserialize)]
        #[serde(default)]
        pub struct Fields {
            $($(#[$attribute])* #[serde(deserialize_with = "lenient")] pub $field: $type,)*
            /// The agents of a conflict: the writer, then the others. Of an overlap: objects.
            #[serde(deserialize_with = "lenient_list")]
            pub agents: Vec<AgentName>,
            #[serde(deserialize_with = "lenient_list")]
            pub owners: Vec<String>,
            #[serde(deserialize_with = "lenient_list")]
            pub calls: Vec<String>,
        }
    };
}

fields! {
    agent_id: Option<String>,
    session_id: String,
    state: String,
    status: String,
    reason: Option<String>,
    id: Option<String>,
    action: String,
    path: String,
    via: String,
    sweep: Option<u64>,
    rule: Option<u64>,
    decide: String,
    denied_by: String,
    decided_by: String,
    message: String,
    kind: String,
    times: Value,
    symbol: String,
    text: String,
    by: String,
    turn: Value,
    stop_reason: String,
    missed: Value,
    timestamp_ms: Option<u64>,
}

/// An agent by its name, or as an object that has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum AgentName {
    Name(String),
    Object { agent_id: String },
}

impl AgentName {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Object { agent_id } => agent_id,
        }
    }
}

impl Fields {
    pub fn of(line: &Value) -> Self {
        Self::deserialize(line).unwrap_or_default()
    }

    /// The agent of a line; of a conflict and of an overlap the first one.
    pub fn agent(&self) -> &str {
        let first = || self.agents.first().map(AgentName::as_str);
        self.agent_id.as_deref().or_else(first).unwrap_or_default()
    }

    /// Who decided an access or a conflict, in words; None: nobody did yet.
    pub fn decider(&self) -> Option<&str> {
        let by = Some(&*self.decided_by).filter(|by| !by.is_empty())?;
        Some(match by {
            "person" => "a person",
            "web" => "a person on the web",
            "rule" => "a rule",
            _ => ["agent:", "token:"].iter().find_map(|kind| by.strip_prefix(kind)).unwrap_or(by),
        })
    }
}
