//! The content that an agent wants to write by a request that waits: its hash, and its text as far as that
//! is kept.

use std::sync::Arc;

/// Bytes of a text that is kept; of a longer one there is the hash alone.
const LONGEST_TEXT: usize = 1 << 20;

/// Bytes of the texts that one room keeps, all together; of what is more there is the hash alone.
const MOST_TEXT: usize = 64 << 20;

/// The content that a write puts in its file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    pub(super) hash: blake3::Hash,
    text: Option<Arc<str>>,
}

/// The content that an agent wants to write, as it was shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeenContent(Option<blake3::Hash>);

impl Wanted {
    pub fn new(text: &str) -> Self {
        let hash = blake3::hash(text.as_bytes());
        Self { hash, text: (text.len() <= LONGEST_TEXT).then(|| text.into()) }
    }

    /// None: it is too long to be kept, or too much is kept.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The bytes that are kept of it.
    pub fn bytes(&self) -> usize {
        self.text.as_ref().map_or(0, |text| text.len())
    }

    /// Keeps the text only if there is room for it beside so many bytes of others.
    #[must_use]
    pub fn beside(self, others: usize) -> Self {
        let has_room = others.saturating_add(self.bytes()) <= MOST_TEXT;
        Self { text: self.text.filter(|_| has_room), ..self }
    }
}

impl SeenContent {
    /// The content that whoever decides was shown; None: it is not known what would be written.
    pub fn of(wanted: Option<&Wanted>) -> Self {
        Self(wanted.map(|wanted| wanted.hash))
    }
}
