//! Owns the lines of a client other than its calls of methods.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// A client's lines other than `rpc`. `request` parses them key by key to refuse repeated keys;
/// these are the resulting forms.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PlainLine {
    /// Asks for fresh snapshots: of the session with that id, or of all.
    RequestSnapshot { session_id: Option<String> },
    /// Narrows the stream to a session or, if that is not given, to a mode; or to neither.
    SetStreamFilter {
        session_id: Option<String>,
        #[schemars(extend("enum" = [json!(null), json!(""), json!("single_agent"), json!("orchestrator")]))]
        session_mode: Option<String>,
    },
    /// Adds what is off by default: `session_update`, `overlap`, `graph`, `task`, `report`.
    Subscribe { topics: Vec<String> },
    /// Shows a token: the control token, or an agent's own.
    Auth { token: Option<String>, proof: Option<String> },
    /// Makes the connection that of an MCP client, by the proof of a token for the tools.
    Tools { proof: String },
    /// Asks for a challenge, by which `proof` proves a token without showing it.
    AuthChallenge,
}
