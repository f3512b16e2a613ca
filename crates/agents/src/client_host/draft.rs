//! A prompt that waits: its words can be changed until its turn begins.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::acp::{self, ContentBlock};
use crate::model::{DecidedBy, SessionId, TimestampMs, now_ms};

/// The words of a prompt, shared by its sender and the queues that it waits in; cheap to clone.
#[derive(Clone, Debug)]
pub struct PromptDraft(Arc<Drafted>);

#[derive(Debug)]
struct Drafted {
    id: String,
    by: Option<DecidedBy>,
    since_ms: TimestampMs,
    /// ACP content blocks.
    blocks: Mutex<Vec<Value>>,
}

/// A prompt that waits for its turn, and can be changed.
#[derive(Clone, Debug)]
pub struct WaitingPrompt {
    pub session: SessionId,
    pub draft: PromptDraft,
}

impl WaitingPrompt {
    pub(super) fn of(session: &SessionId, draft: &PromptDraft) -> Self {
        Self { session: session.clone(), draft: draft.clone() }
    }
}

impl PromptDraft {
    /// A prompt of now; `by` is None for one that the team sends itself.
    pub fn new(blocks: Vec<Value>, by: Option<DecidedBy>) -> Self {
        // Chance keeps a client that remembers an id of an earlier team from changing another prompt.
        let id = format!("{:016x}", fastrand::u64(..));
        Self::again(id, by, now_ms(), blocks)
    }

    /// A prompt that is known by these.
    pub fn again(
        id: String,
        by: Option<DecidedBy>,
        since_ms: TimestampMs,
        blocks: Vec<Value>,
    ) -> Self {
        Self(Arc::new(Drafted { id, by, since_ms, blocks: Mutex::new(blocks) }))
    }

    /// The id, which tells the prompt from all others of its agent.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Returns who sent the prompt; None: the team itself.
    pub fn by(&self) -> Option<&DecidedBy> {
        self.0.by.as_ref()
    }

    pub fn since_ms(&self) -> TimestampMs {
        self.0.since_ms
    }

    /// The content blocks as they are now.
    pub fn blocks(&self) -> Vec<Value> {
        self.0.blocks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The text blocks, parted by line ends, and the number of blocks of other kinds.
    pub fn text(&self) -> (String, usize) {
        let blocks = self.0.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let texts: Vec<_> = blocks.iter().filter_map(text_of).collect();
        (texts.join("\n"), blocks.len() - texts.len())
    }

    /// Replaces the text blocks by one, which stands where the first one did; others stay.
    pub(super) fn set_text(&self, text: &str) {
        let mut blocks = self.0.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        let at = blocks.iter().position(|block| text_of(block).is_some()).unwrap_or_default();
        blocks.retain(|block| text_of(block).is_none());
        if !text.is_empty() {
            blocks.insert(at, json!({ "type": "text", "text": text }));
        }
    }
}

fn text_of(block: &Value) -> Option<String> {
    let block: ContentBlock = acp::read(block);
    block.text.filter(|_| block.kind.as_deref() == Some("text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_text_takes_the_place_of_the_texts_and_leaves_the_rest() {
        let image = json!({ "type": "image", "data": "" });
        let text = |text: &str| json!({ "type": "text", "text": text });
        let draft =
            PromptDraft::new(vec![image.clone(), text("a"), text("b"), image.clone()], None);
        assert_eq!(draft.text(), ("a\nb".to_owned(), 2));
        let other = draft.clone();
        draft.set_text("c");
        assert_eq!(other.blocks(), [image.clone(), text("c"), image]);
    }
}
