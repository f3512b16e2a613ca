//! Recent incidental accesses, which the line of a late call may still name.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::routing::Request;

/// How long accesses are kept, and how many; when full, the oldest is dropped.
const LATEST: Duration = Duration::from_secs(2);
const MOST: usize = 64;

#[derive(Default)]
pub(super) struct Late(Mutex<VecDeque<Incidental>>);

struct Incidental {
    at: Instant,
    request: Request,
}

impl Late {
    pub(super) fn note(&self, request: Request) {
        let mut accesses = self.0.lock();
        if accesses.len() >= MOST {
            accesses.pop_front();
        }
        accesses.push_back(Incidental { at: Instant::now(), request });
    }

    /// Removes and returns the accesses that `is_named` accepts.
    pub(super) fn take(&self, is_named: impl Fn(&str) -> bool) -> Vec<Request> {
        // `is_named` may read the disk, so the lock is not held.
        let all = std::mem::take(&mut *self.0.lock());
        let (mut taken, mut left) = (Vec::new(), VecDeque::new());
        for access in all.into_iter().filter(|access| access.at.elapsed() < LATEST) {
            if is_named(&access.request.path) {
                taken.push(access.request);
            } else {
                left.push_back(access);
            }
        }
        let mut accesses = self.0.lock();
        left.append(&mut accesses);
        *accesses = left;
        taken
    }
}
