//! Owns what the tests of several crates share: the deadline of those that poll, and a blocked access.

use eisen_base::model::{
    Action, BlockedAccess, BlockedId, BlockedStatus, SessionKey, SessionMode, Via,
};
use std::time::{Duration, Instant};

/// Never reached by code that does what is tested.
const PATIENCE: Duration = Duration::from_secs(30);

/// Looks that follow each other at once. What runs on the test's own runtime is done by then; whoever waits
/// longer waits for a thread or a process, and leaves the processor to it.
const AT_ONCE: u32 = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// Waits until `is_so` holds. The deadline is in real time: a paused clock jumps ahead while a
/// test polls.
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    let (begun, caller) = (Instant::now(), std::panic::Location::caller());
    async move {
        let mut looks = 0;
        while !is_so().await {
            assert!(begun.elapsed() < PATIENCE, "{caller}: not in time: {what}");
            looks += 1;
            if looks > AT_ONCE {
                std::thread::park_timeout(BETWEEN_LOOKS);
            }
            tokio::task::yield_now().await;
        }
    }
}

/// A read of a file, of which a test says what matters to it.
pub fn blocked_access(id: &str, key: SessionKey, status: BlockedStatus) -> BlockedAccess {
    BlockedAccess {
        id: BlockedId::new(id),
        key,
        mode: SessionMode::SingleAgent,
        path: "src/api/cart.rs".into(),
        action: Action::Read,
        via: Via::Fs,
        status,
        owners: Vec::new(),
        orchestrator: None,
        sweep: None,
        harmless: false,
        denied_by: None,
        rule: None,
        decided_by: None,
        message: None,
        owner_answer: None,
        reason: None,
        tool_call: None,
        offered: None,
        until_ms: None,
        ended: None,
        completed: false,
        timestamp_ms: 0,
    }
}
