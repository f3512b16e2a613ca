//! The content of a message: a text, or parts.

use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum MessageContent {
    Text(String),
    Parts(Vec<ContentPart>),
    Other(Value),
}

/// A part of a message. Only texts are read.
#[derive(Deserialize)]
pub(super) struct ContentPart {
    #[serde(rename = "type", default)]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) text: Option<String>,
    /// The content of a tool's result.
    #[serde(default)]
    pub(super) content: Option<Box<MessageContent>>,
    #[serde(default)]
    pub(super) id: Option<String>,
}

impl MessageContent {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => {
                let texts = parts.iter().filter_map(|part| part.text.as_deref());
                texts.collect::<Vec<_>>().join("\n")
            }
            Self::Other(Value::Null) => String::new(),
            Self::Other(other) => other.to_string(),
        }
    }

    pub(super) fn parts(&self) -> &[ContentPart] {
        match self {
            Self::Parts(parts) => parts,
            _ => &[],
        }
    }
}

/// The text of a content that may be missing.
pub(super) fn text_of(content: Option<&MessageContent>) -> String {
    content.map(MessageContent::text).unwrap_or_default()
}
