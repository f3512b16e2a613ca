//! Keeps the names of the workspace as they are while a socket gets one. Agents change them through
//! doorbells alone, so what is bound meanwhile has the place that was judged.

use std::time::Duration;

use nix::errno::Errno;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

static NAMES: RwLock<()> = RwLock::new(());

/// How long a socket waits for moves that are under way; a disk that answers later makes it fail.
const PATIENCE: Duration = Duration::from_secs(2);

/// Held while a name is made, moved or linked.
pub(super) fn moving() -> RwLockReadGuard<'static, ()> {
    NAMES.read_recursive()
}

/// Held while nothing may move.
pub(super) fn still() -> Result<RwLockWriteGuard<'static, ()>, Errno> {
    NAMES.try_write_for(PATIENCE).ok_or(Errno::EAGAIN)
}
