//! A warden without a command: it waits for its order, and ends when its socket closes.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use tokio::process::{Child, Command};

use super::{orphans, sys};

#[derive(Debug)]
pub(super) struct IdleWarden {
    pub(super) process: Child,
    pub(super) pid: i32,
    pub(super) control: UnixStream,
}

impl IdleWarden {
    /// Starts one by `command`.
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        let (control, its) = UnixStream::pair()?;
        // Standard output belongs to the editor of `observe`; standard error shows panics.
        command.stdin(OwnedFd::from(its)).stdout(Stdio::null()).stderr(Stdio::inherit());
        let (process, pid) = orphans::enter(|| command.spawn())?;
        Ok(Self { process, pid, control })
    }

    /// Sends the beginning of its order. Fails if it was killed.
    pub(super) fn order(&self, head: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        // The socket is empty, so this cannot block.
        sys::send_with(&self.control, head, descriptors)
    }

    /// Ends it, even if it was stopped: it has no processes that it would have to end first.
    pub(super) async fn end(mut self) {
        let _ = self.process.kill().await;
        orphans::leave(self.pid);
    }
}
