use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Settlement;
use crate::model::BlockedId;

/// How a pending access stopped waiting.
pub(super) enum Waited {
    Decided,
    TimedOut,
    /// The agent no longer waits for it.
    Withdrawn,
}

/// Waits until a held access is decided, nobody waits for it any more, or its time is up.
pub(super) async fn wait(
    id: BlockedId,
    decision: oneshot::Receiver<Settlement>,
    mut reply: oneshot::Sender<Settlement>,
    deadline: Instant,
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
        () = tokio::time::sleep_until(deadline) => {
            let _ = reply.send(timed_out);
            Waited::TimedOut
        }
    };
    (id, waited)
}
