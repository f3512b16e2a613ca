//! Owns the answers that owners gave, which are kept for the same question about the same content.

use std::sync::{Arc, Mutex, PoisonError};

use indexmap::IndexMap;

use crate::model::{AgentId, TokensSaved};

/// Answers that are kept; the oldest is dropped first. A longer one is not kept.
const MOST_KEPT: usize = 256;
const LONGEST_KEPT: usize = 64 * 1024;

/// The owner, the path, the content and the question.
pub(super) type AnswerKey = (AgentId, Arc<str>, blake3::Hash, Option<Arc<str>>);

/// The answers of owners; cheap to clone.
#[derive(Clone, Default, Debug)]
pub(super) struct KeptAnswers(Arc<Mutex<IndexMap<AnswerKey, KeptAnswer>>>);

/// An answer, and what its question cost.
#[derive(Clone, Debug)]
pub(super) struct KeptAnswer {
    pub(super) text: String,
    pub(super) cost: TokensSaved,
}

impl KeptAnswers {
    pub(super) fn get(&self, key: &AnswerKey) -> Option<KeptAnswer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    pub(super) fn keep(&self, key: AnswerKey, answer: KeptAnswer) {
        if answer.text.len() > LONGEST_KEPT {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_KEPT && !kept.contains_key(&key) {
            kept.shift_remove_index(0);
        }
        kept.insert(key, answer);
    }
}
