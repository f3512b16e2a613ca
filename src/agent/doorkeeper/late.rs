//! What was swept a moment ago: the line of a call may still name it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::routing::Request;

/// How long a line may be late, and how many accesses are kept so long; when full, the oldest is
/// forgotten.
const LATEST: Duration = Duration::from_secs(2);
const MOST: usize = 64;

#[derive(Default)]
pub(super) struct Late(Mutex<VecDeque<Swept>>);

struct Swept {
    at: Instant,
    request: Request,
}

impl Late {
    pub(super) fn note(&self, request: Request) {
        let mut swept = self.lock();
        if swept.len() >= MOST {
            swept.pop_front();
        }
        swept.push_back(Swept { at: Instant::now(), request });
    }

    /// Takes what is named now.
    pub(super) fn take(&self, is_named: impl Fn(&str) -> bool) -> Vec<Request> {
        // Not asked under the lock: it may ask the disk.
        let all = std::mem::take(&mut *self.lock());
        let (mut taken, mut left) = (Vec::new(), VecDeque::new());
        for swept in all.into_iter().filter(|swept| swept.at.elapsed() < LATEST) {
            if is_named(&swept.request.path) {
                taken.push(swept.request);
            } else {
                left.push_back(swept);
            }
        }
        let mut swept = self.lock();
        left.append(&mut swept);
        *swept = left;
        taken
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Swept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
