//! The content of a prompt, which can be created as late as the start of its turn.

use std::fmt;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::PromptDraft;
use crate::acp::{self, ContentBlock};

/// The content of a prompt as ACP content blocks.
pub enum Content {
    Now(Vec<Value>),
    /// Created when the prompt's turn begins; None withdraws the prompt.
    Later(BoxFuture<'static, Option<Vec<Value>>>),
    /// Like `Later`, from a draft that may change until then.
    Drafted(PromptDraft, BoxFuture<'static, Option<Vec<Value>>>),
}

impl Content {
    pub fn later(content: impl Future<Output = Option<Vec<Value>>> + Send + 'static) -> Self {
        Self::Later(content.boxed())
    }

    /// The content as one that is made from a draft.
    #[must_use]
    pub fn of_draft(self, draft: PromptDraft) -> Self {
        match self {
            Self::Now(blocks) => Self::Drafted(draft, std::future::ready(Some(blocks)).boxed()),
            Self::Later(content) | Self::Drafted(_, content) => Self::Drafted(draft, content),
        }
    }

    /// The draft that it is made from, if there is one.
    pub(super) fn draft(&self) -> Option<&PromptDraft> {
        match self {
            Self::Drafted(draft, _) => Some(draft),
            Self::Now(_) | Self::Later(_) => None,
        }
    }
}

/// A block of the team in a prompt: the agent reads it, and those who look at the prompt see the person's words.
pub fn team_block(text: &str) -> Value {
    json!({ "type": "text", "text": text, "annotations": { "audience": ["assistant"] } })
}

/// Whether a prompt is a command of the agent, such as `/compact`, and no path. An agent takes a command for
/// one only where a prompt begins with it.
pub fn is_command(blocks: &[Value]) -> bool {
    let first: ContentBlock = blocks.first().map(acp::read).unwrap_or_default();
    let text = first.text.unwrap_or_default();
    let name = text.strip_prefix('/').and_then(|text| text.split_whitespace().next());
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_:".contains(&byte);
    name.is_some_and(|name| text[1..].starts_with(name) && name.bytes().all(is_part))
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Now(_) => "Now(…)",
            Self::Later(_) => "Later(…)",
            Self::Drafted(..) => "Drafted(…)",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_is_told_from_other_prompts() {
        for (text, expected) in [
            ("/compact", true),
            ("/compact keep the plan\n", true),
            ("/mcp:fetch x", true),
            ("/etc/hosts is wrong", false),
            ("/ or not", false),
            ("/", false),
            ("", false),
            ("do /compact", false),
        ] {
            assert_eq!(is_command(&[json!({ "type": "text", "text": text })]), expected, "{text}");
        }
        assert!(!is_command(&[]));
    }
}
