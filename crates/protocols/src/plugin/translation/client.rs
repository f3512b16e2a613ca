//! Owns what a client says, as far as it is translated.

use serde::Deserialize;
use serde_json::Value;

use crate::acp::{self, Complaint, ContentBlock, EmbeddedResource, PermissionOutcome};
use crate::line::lenient;

/// A line of the client.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ClientMessage {
    /// Any JSON.
    pub(super) id: Value,
    #[serde(deserialize_with = "lenient")]
    pub(super) method: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) params: ClientParams,
    #[serde(deserialize_with = "lenient")]
    pub(super) result: ClientAnswer,
    #[serde(deserialize_with = "lenient")]
    pub(super) error: Complaint,
}

/// The params of all requests of a client.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ClientParams {
    #[serde(deserialize_with = "lenient")]
    pub(super) session_id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) cwd: String,
    /// Content blocks.
    pub(super) prompt: Value,
}

/// The client's answer to a permission.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ClientAnswer {
    #[serde(deserialize_with = "lenient")]
    pub(super) outcome: PermissionOutcome,
    #[serde(rename = "_meta", deserialize_with = "lenient")]
    pub(super) meta: AnswerMeta,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AnswerMeta {
    #[serde(rename = "eisen/why", deserialize_with = "lenient")]
    pub(super) why: Option<String>,
}

/// Joins the text of a prompt: links by their URI, embedded resources in full.
pub(super) fn words(prompt: &Value) -> Option<String> {
    prompt.is_array().then_some(())?;
    let texts =
        acp::list(prompt).into_iter().filter_map(|block: ContentBlock| match &*block.kind? {
            "text" => block.text,
            "resource_link" => block.uri.map(|uri| format!("[{uri}]")),
            "resource" => {
                let EmbeddedResource { uri, text } = block.resource;
                Some(format!("{}:\n{}", uri?, text?))
            }
            _ => None,
        });
    Some(texts.collect::<Vec<_>>().join("\n"))
}
