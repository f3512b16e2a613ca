//! What the kernel enforces: a *wall* of Landlock path rules around a process and all that it
//! starts, and a *doorbell* of seccomp notifications where path rules cannot tell. Knows zones and
//! processes, no agents.
//!
//! The wall holds whatever a process does: what it does not grant cannot be had by any race. The
//! doorbell sees each open and each change of a name or an attribute before it happens, judges the
//! real path by the whole zone, and lets the call go on under the wall, does it in the caller's
//! stead, or denies it. Its handlers are threads of the supervisor, which is not confined.
//!
//! The way of a call: `filter` makes the kernel stop it → `listener` hands it to the thread of
//! `doorbell` → `caller` reads its arguments → `resolve` finds the real path in the caller's view →
//! `Bounds` judges → it continues, is done here, or the [`Doorkeeper`] is asked.

mod call;
mod caller;
mod calls;
mod doorbell;
mod enter;
mod filter;
mod listener;
mod raw;
mod resolve;

use std::path::Path;
use std::sync::Arc;

use tokio::sync::oneshot;

use self::call::Drafts;
pub use self::doorbell::Doorbell;
pub use self::enter::{Entrance, Step, receive};
use crate::model::Action;
use crate::zone::{Bounds, Grant};

/// What a run of an agent is confined by.
pub struct Confinement {
    drafts: Drafts,
    keeper: Arc<dyn Doorkeeper>,
}

impl Confinement {
    fn covers(&self, _real: &Path, _grant: Grant, _identity: (u64, u64)) -> bool {
        false
    }

    fn drafts(&self) -> &Drafts {
        &self.drafts
    }

    fn keeper(&self) -> &dyn Doorkeeper {
        &*self.keeper
    }
}

impl std::fmt::Debug for Confinement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Confinement").finish_non_exhaustive()
    }
}

/// Who stands behind a doorbell: knows whose process it is, and whom to ask.
///
/// Called from the doorbell's threads. No method may wait.
pub trait Doorkeeper: Send + Sync + 'static {
    /// The bounds as they are now. They may be narrower or wider than the wall.
    fn bounds(&self) -> Arc<Bounds>;

    /// A regular file of the workspace is opened by the zone's leave. `path` is as the wire shows
    /// it.
    fn passed(&self, path: Arc<str>, action: Action);

    /// An access outside the bounds. The call waits in the kernel until `reply` is used (true lets
    /// it through) or dropped. When `reply` finds itself closed, nobody waits any more.
    fn blocked(&self, attempt: Attempt, reply: oneshot::Sender<bool>);
}

/// An access outside the bounds.
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
    /// Whether the call may be held: not if too many calls of this process are.
    pub may_wait: bool,
}
