//! Waits for the decision of one held access, its timeout, or its withdrawal.

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::Settlement;
use crate::model::BlockedId;

/// How the wait of a pending access ended.
pub(super) enum Waited {
    Decided,
    TimedOut,
    /// The agent no longer waits for it.
    Withdrawn,
}

/// Waits until a held access is decided, withdrawn, or timed out.
pub(super) async fn waiting(
    id: BlockedId,
    decision: oneshot::Receiver<Settlement>,
    mut reply: oneshot::Sender<Settlement>,
    deadline: watch::Receiver<Option<Instant>>,
    timed_out: Settlement,
) -> (BlockedId, Waited) {
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
    (id, waited)
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
