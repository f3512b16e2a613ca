//! Claims: locks that an agent takes before it writes, and gives back.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Conflicts;
use super::locks::Lock;
use crate::model::{SessionKey, quoted};

/// Seconds that a claim lasts at most.
pub(super) const LONGEST: Duration = Duration::from_hours(1);

/// An agent's claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockClaim {
    /// Files or folders, relative to the workspace.
    pub paths: Vec<Arc<str>>,
    /// None: as long as a write's lock lasts.
    pub ttl: Option<Duration>,
}

/// The locks that an agent has claimed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimedLocks {
    /// With the number of each lock.
    pub locks: Vec<(Arc<str>, u64)>,
    pub ttl: Duration,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ClaimError {
    #[error(
        "`{}` has {} locked: nothing was claimed", .0.holder.agent, quoted(&.0.path)
    )]
    HeldBy(Lock),
    #[error("too much is locked: release what you don't need")]
    TooMany,
    #[error("{} is not locked by you, or was locked anew since", quoted(.0))]
    NotHeld(Arc<str>),
}

impl Conflicts {
    /// Locks paths before a write: all, or none.
    pub fn claim(&self, by: &SessionKey, claim: LockClaim) -> Result<ClaimedLocks, ClaimError> {
        let claimed = {
            let mut state = self.state();
            let ttl = claim.ttl.unwrap_or(state.rules.lock).min(LONGEST);
            let (holder, until) = (state.holder(by), Instant::now() + ttl);
            let refuses = |path: &Arc<str>| state.locks.against_claim(&by.agent, path, state.now());
            match claim.paths.iter().find_map(refuses) {
                Some(lock) => Err(ClaimError::HeldBy(lock)),
                None => state.with_locks(|locks, now| {
                    let before = locks.last_fence();
                    let mut claimed: Vec<(Arc<str>, u64)> = Vec::new();
                    for path in claim.paths {
                        let Ok(fence) = locks.claim(&holder, &path, until, now) else {
                            for (path, fence) in claimed.iter().filter(|it| it.1 > before) {
                                drop(locks.release(&by.agent, path, Some(*fence)));
                            }
                            return Err(ClaimError::TooMany);
                        };
                        claimed.push((path, fence));
                    }
                    Ok(ClaimedLocks { locks: claimed, ttl })
                }),
            }
        };
        self.wake();
        claimed
    }

    /// Ends locks of an agent; with a fence only the lock that has this number. Without paths, all.
    pub fn release(
        &self,
        by: &SessionKey,
        paths: &[Arc<str>],
        fence: Option<u64>,
    ) -> Result<Vec<Arc<str>>, ClaimError> {
        let released = {
            let mut state = self.state();
            let mut all = state.locks.list(state.now());
            all.retain(|lock| lock.holder.agent == by.agent);
            if paths.is_empty() {
                let own: Vec<_> = all.into_iter().map(|lock| lock.path).collect();
                for path in &own {
                    let _ = state.locks.release(&by.agent, path, None);
                }
                own
            } else {
                let gone = paths.iter().find(|path| {
                    let is_it = |lock: &&Lock| lock.path == **path;
                    let lock = all.iter().find(is_it);
                    lock.is_none_or(|lock| fence.is_some_and(|fence| fence != lock.fence))
                });
                if let Some(path) = gone {
                    return Err(ClaimError::NotHeld(Arc::clone(path)));
                }
                for path in paths {
                    let _ = state.locks.release(&by.agent, path, fence);
                }
                paths.to_vec()
            }
        };
        self.wake();
        Ok(released)
    }
}
