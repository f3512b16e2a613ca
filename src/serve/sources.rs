//! What the port reads and decides through, as one interface.

use crate::model::{BlockedAccess, BlockedId, BlockedStatus, Snapshot, UsageReport};
use crate::routing::{Decision, ResolveError, RoutingHandle};
use crate::serve::BoxFuture;
use crate::tracker::TrackerHandle;

/// The state behind the stream. An answer contains everything that was published on the bus before
/// it was asked for.
pub trait Sources: Send + Sync + 'static {
    /// Every live session, the default target first (an empty one if there is none).
    fn snapshots(&self) -> BoxFuture<'_, Vec<Snapshot>>;

    /// The last usage of each session.
    fn usages(&self) -> BoxFuture<'_, Vec<UsageReport>>;

    /// Blocked accesses, oldest first.
    fn blocked(&self, status: Option<BlockedStatus>) -> BoxFuture<'_, Vec<BlockedAccess>>;

    /// Decides a blocked access; answers with it as it stands now.
    fn resolve(
        &self,
        id: BlockedId,
        decision: Decision,
    ) -> BoxFuture<'_, Result<BlockedAccess, ResolveError>>;
}

/// The sources of a running team.
#[derive(Clone, Debug)]
pub struct Handles {
    pub tracker: TrackerHandle,
    pub routing: RoutingHandle,
}

impl Sources for Handles {
    fn snapshots(&self) -> BoxFuture<'_, Vec<Snapshot>> {
        Box::pin(self.tracker.snapshots())
    }

    fn usages(&self) -> BoxFuture<'_, Vec<UsageReport>> {
        Box::pin(self.tracker.usages())
    }

    fn blocked(&self, status: Option<BlockedStatus>) -> BoxFuture<'_, Vec<BlockedAccess>> {
        Box::pin(self.routing.list(status))
    }

    fn resolve(
        &self,
        id: BlockedId,
        decision: Decision,
    ) -> BoxFuture<'_, Result<BlockedAccess, ResolveError>> {
        Box::pin(self.routing.resolve(id, decision))
    }
}
