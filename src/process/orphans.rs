//! What a killed warden leaves behind comes to this process, and ends here.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{sys, tree};

/// How often is looked again for orphans that were killed and are not gone yet.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// Past this, what hangs in the kernel is left to itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// The wardens that run: children of this process that are not orphans.
static WARDENS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Makes orphans of killed wardens come to this process, which ends them. To be called once, at
/// the start of a program that spawns. Such a program starts every child either through this
/// room or within its own session: children in other sessions are taken for orphans. (So is, for
/// the first process of a container, whatever is orphaned in it.)
pub fn become_subreaper() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_child_subreaper(true)?;
    Ok(())
}

/// Starts a warden by `spawn` and enters it, as one step, lest it be taken for an orphan.
pub(super) fn enter<T>(spawn: impl FnOnce() -> io::Result<(T, i32)>) -> io::Result<(T, usize)> {
    let mut wardens = wardens();
    let (child, pid) = spawn()?;
    wardens.insert(pid);
    Ok((child, wardens.len()))
}

/// Strikes a warden out, after it was reaped.
pub(super) fn leave(pid: i32) {
    wardens().remove(&pid);
}

/// Kills and reaps all orphans; ends when none is left.
pub(super) async fn end() {
    let begun = Instant::now();
    while !end_once() {
        if begun.elapsed() > PATIENCE {
            tracing::warn!("orphans were killed, but the kernel has not ended all of them yet");
            return;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Answers whether there were none. The lock is held for the whole look, so that the wardens
/// stand still meanwhile.
fn end_once() -> bool {
    let wardens = wardens();
    let own_session = nix::unistd::getsid(None).map_or(0, nix::unistd::Pid::as_raw);
    let orphans = tree::kill_descendants(|child| {
        child.session == own_session || wardens.contains(&child.pid)
    });
    for &orphan in &orphans {
        let _ = sys::reap(orphan);
    }
    orphans.is_empty()
}

fn wardens() -> MutexGuard<'static, BTreeSet<i32>> {
    // A set of numbers is whole whatever panicked beside it.
    WARDENS.lock().unwrap_or_else(PoisonError::into_inner)
}
