//! Connections over HTTP that have shown no credential yet.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio_util::sync::CancellationToken;

/// So many at once: beyond that the oldest is closed, so that none keeps another from showing its own.
const MOST_STRANGERS: usize = 64;

/// Connections without a credential, oldest first.
#[derive(Default)]
pub struct Strangers(Mutex<VecDeque<CancellationToken>>);

impl Strangers {
    pub fn came(&self, closes: CancellationToken) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_back(closes);
        if all.len() > MOST_STRANGERS
            && let Some(oldest) = all.pop_front()
        {
            oldest.cancel();
        }
    }

    /// A connection has shown a credential, or ended.
    pub fn is_none(&self, closes: &CancellationToken) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|it| it != closes);
    }
}
