use std::path::Path;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::model::Action;
use crate::zone::Bounds;

/// Who stands behind a doorbell: knows whose process it is, and whom to ask.
///
/// Called from the doorbell's threads. No method may wait.
pub trait Doorkeeper: Send + Sync + 'static {
    /// The bounds as they are now. They may be narrower or wider than the wall.
    fn bounds(&self) -> Arc<Bounds>;

    /// Whether an access that the bounds allow is outside them for now. `real` is a real path.
    fn withholds(&self, _real: &Path, _action: Action) -> bool {
        false
    }

    /// A regular file of the workspace is opened by the zone's leave. `path` is as the wire shows
    /// it.
    fn passed(&self, path: Arc<str>, action: Action);

    /// An access outside the bounds. The call waits in the kernel until `reply` is used (true lets
    /// it through) or dropped. When `reply` finds itself closed, nobody waits any more.
    fn blocked(&self, attempt: Attempt, reply: oneshot::Sender<bool>);
}

/// An access outside the bounds.
#[expect(clippy::struct_excessive_bools, reason = "each says another thing of the attempt")]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// As the wire shows it.
    pub path: Arc<str>,
    pub action: Action,
    /// Whether a grant could let it through.
    pub grantable: bool,
    /// The process that made the call.
    pub pid: u32,
    /// Whether the arguments that process was started with name the path.
    pub named: bool,
    /// Whether a file is to be made under a name that tools give to temporary files, whatever the
    /// file is that they replace.
    pub draft: bool,
    /// Whether the call may be held: not if too many calls of this process are.
    pub may_wait: bool,
}
