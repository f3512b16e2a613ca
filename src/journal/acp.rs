//! Owns the shapes of ACP within payloads, as far as a conversation shows them. Agents wrote them: what has
//! another type is left out.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::line::lenient;

/// A list of ACP, as far as its elements can be read.
pub(super) fn list<T: DeserializeOwned + Default>(value: Option<&Value>) -> Vec<T> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.map(|element| T::deserialize(element).unwrap_or_default()).collect()
}

/// A content block of ACP.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Block {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) uri: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) resource: EmbeddedResource,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct EmbeddedResource {
    #[serde(deserialize_with = "lenient")]
    pub(super) uri: Option<String>,
}

/// A location of a tool call of ACP.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Location {
    #[serde(deserialize_with = "lenient")]
    pub(super) path: Option<String>,
}

/// A content of a tool call of ACP.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct CallContent {
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub(super) kind: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub(super) content: CallText,
    #[serde(deserialize_with = "lenient")]
    pub(super) new_text: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CallText {
    #[serde(deserialize_with = "lenient")]
    pub(super) text: Option<String>,
}

/// An entry of a plan of ACP.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct PlanStep {
    #[serde(deserialize_with = "lenient")]
    pub(super) content: String,
    #[serde(deserialize_with = "lenient")]
    pub(super) status: String,
}
