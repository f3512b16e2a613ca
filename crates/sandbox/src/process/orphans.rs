//! Adopts and kills the processes of wardens that were killed.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::process::Child;

use super::{sys, tree};

/// How often killed orphans are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long killed orphans may take to end; after that, they hang in the kernel.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// The running wardens: children of this process that are not orphans.
static WARDENS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Makes this process adopt the orphans of killed wardens, in order to kill them. Call it once, at
/// the program's start. The program must start every other child in its own session: children in
/// other sessions are killed as orphans. (As the first process of a container, so is every orphan.)
pub fn become_subreaper() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_child_subreaper(true)?;
    Ok(())
}

/// Starts a warden by `spawn` and registers it under one lock, so that it is never taken for an
/// orphan. Also returns its pid.
pub(super) fn enter(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<(Child, i32)> {
    let mut wardens = WARDENS.lock();
    let child = spawn()?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).ok_or(io::ErrorKind::NotFound)?;
    wardens.insert(pid);
    Ok((child, pid))
}

/// The number of running wardens.
pub(super) fn running() -> usize {
    WARDENS.lock().len()
}

/// Removes a warden that was reaped.
pub(super) fn leave(pid: i32) {
    WARDENS.lock().remove(&pid);
}

/// Kills and reaps all orphans.
pub(super) async fn end() {
    let begun = Instant::now();
    while !end_once() {
        if begun.elapsed() > KILL_TIMEOUT {
            tracing::warn!("some killed orphans have not ended yet");
            return;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Kills and reaps orphans once; returns whether there were none. Holds the lock meanwhile, so that
/// no warden is added or removed.
fn end_once() -> bool {
    let wardens = WARDENS.lock();
    let own_session = nix::unistd::getsid(None).map_or(0, nix::unistd::Pid::as_raw);
    let orphans = tree::kill_descendants(|child| {
        child.session == own_session || wardens.contains(&child.pid)
    });
    for &orphan in &orphans {
        let _ = sys::reap(orphan);
    }
    orphans.is_empty()
}
