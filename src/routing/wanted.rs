//! What an agent wants to write by a request that waits: its hash, and its text as far as that is
//! kept.

use std::sync::Arc;

/// Bytes of a text that is kept; of a longer one there is the hash alone.
const LONGEST_TEXT: usize = 1 << 20;

/// What a write puts in its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    pub(super) hash: blake3::Hash,
    text: Option<Arc<str>>,
}

impl Wanted {
    pub fn new(text: &str) -> Self {
        let hash = blake3::hash(text.as_bytes());
        Self { hash, text: (text.len() <= LONGEST_TEXT).then(|| text.into()) }
    }

    /// None: it is too long to be kept, or too much is kept.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    pub(super) fn bytes(&self) -> usize {
        self.text.as_ref().map_or(0, |text| text.len())
    }

    pub(super) fn without_text(self) -> Self {
        Self { text: None, ..self }
    }
}
