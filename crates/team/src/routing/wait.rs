//! Waits for the decision of one held access, its timeout, or its withdrawal.

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::Settlement;
use crate::model::BlockedId;

/// The end of one wait for a decision.
pub(super) struct EndedWait {
    pub(super) id: BlockedId,
    /// The number of its waiter.
    pub(super) number: u64,
    pub(super) waited: Waited,
}

/// How the wait for a decision ended.
pub(super) enum Waited {
    Decided,
    TimedOut,
    /// The agent no longer waits for it.
    Withdrawn,
}

/// Waits until a held access is decided, withdrawn, or timed out.
pub(super) async fn waiting(
    (id, number): (BlockedId, u64),
    decision: oneshot::Receiver<Settlement>,
    mut reply: oneshot::Sender<Settlement>,
    deadline: watch::Receiver<Option<Instant>>,
    timed_out: Settlement,
) -> EndedWait {
    let waited = tokio::select! {
        biased;
        decision = decision => {
            if let Ok(settlement) = decision {
                let _ = reply.send(settlement);
            }
            Waited::Decided
        }
        () = reply.closed() => Waited::Withdrawn,
        () = passed(deadline) => {
            let _ = reply.send(timed_out);
            Waited::TimedOut
        }
    };
    EndedWait { id, number, waited }
}

/// Waits until a deadline has passed, which may change meanwhile.
async fn passed(mut deadline: watch::Receiver<Option<Instant>>) {
    loop {
        let at = *deadline.borrow_and_update();
        tokio::select! {
            () = until(at) => return,
            Ok(()) = deadline.changed() => {}
        }
    }
}

/// Waits until a time; for ever if there is none.
pub(super) async fn until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
