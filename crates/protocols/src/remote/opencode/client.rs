//! Owns what a client of the bridge says, and what it is answered, as far as ACP has it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::acp::ContentBlock;
use crate::line::{lenient, lenient_list};

/// A message of the client.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ClientMessage {
    /// Any JSON.
    pub(super) id: Value,
    #[serde(deserialize_with = "lenient")]
    pub(super) method: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) params: BridgeParams,
    /// Any JSON.
    pub(super) result: Value,
}

/// The params of all requests of a client.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct BridgeParams {
    #[serde(deserialize_with = "lenient")]
    pub(super) session_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) cwd: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) mode_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) config_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) value: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) mcp_servers: Vec<Value>,
    #[serde(deserialize_with = "lenient_list")]
    pub(super) prompt: Vec<ContentBlock>,
}

#[derive(Serialize)]
pub(super) struct PromptBody<'a> {
    pub(super) parts: Vec<Value>,
    pub(super) agent: &'a String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<ModelName<'a>>,
}

#[derive(Serialize)]
pub(super) struct ModelName<'a> {
    #[serde(rename = "providerID")]
    pub(super) provider: &'a str,
    #[serde(rename = "modelID")]
    pub(super) model: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenedSession {
    pub(super) modes: Value,
    pub(super) config_options: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<String>,
}

/// A block of a prompt, as the server takes it. A link is named: the model reads it with a tool, which is
/// asked for.
pub(super) fn part(block: ContentBlock) -> Option<Value> {
    let text = |text: String| Some(json!({ "type": "text", "text": text }));
    match &*block.kind? {
        "text" => text(block.text?),
        "image" => {
            let (mime, data) = (block.mime_type?, block.data?);
            Some(
                json!({ "type": "file", "mime": mime, "url": format!("data:{mime};base64,{data}") }),
            )
        }
        "resource_link" => {
            let uri = block.uri?;
            text(format!("[{}]({uri})", block.name.as_ref().unwrap_or(&uri)))
        }
        "resource" => {
            let (uri, content) = (block.resource.uri?, block.resource.text?);
            text(format!("<resource uri=\"{uri}\">\n{content}\n</resource>"))
        }
        _ => None,
    }
}
