//! Waits for the end of tickets: the kernel hangs their pipes up.

use std::fs::{File, OpenOptions};
use std::future::pending;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use futures_util::future::select_all;
use nix::fcntl::OFlag;
use tokio::net::unix::pipe::Receiver;
use tokio::time::sleep;

use super::queue::Queue;

/// How often tickets are looked at where their pipes can't be watched: no descriptors are left.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Waits until one of these tickets may have ended. Returns false, after a pause, if that is so of one
/// from the beginning.
pub(super) async fn first_end(queue: &Queue, tickets: &[u64], pause: Duration) -> bool {
    let mut ends = Vec::new();
    for ticket in tickets {
        match watch(&queue.pipe(*ticket)) {
            Ok(Some(pipe)) => ends.push(Box::pin(hung_up(pipe))),
            Ok(None) => {
                sleep(pause).await;
                return false;
            }
            Err(error) => {
                tracing::debug!(%error, "cannot watch a place that is held");
                sleep(POLL_INTERVAL).await;
                return true;
            }
        }
    }
    if ends.is_empty() {
        return true;
    }
    select_all(ends).await;
    true
}

/// Opens the pipe of a ticket; None if nobody holds its other end.
fn watch(path: &Path) -> io::Result<Option<Receiver>> {
    let mut options = OpenOptions::new();
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW;
    let pipe = match options.read(true).custom_flags(flags.bits()).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        pipe => pipe?,
    };
    // A pipe whose writer had ended before it was opened is never hung up: only reading tells.
    if is_ended(&pipe)? { Ok(None) } else { Receiver::from_file(pipe).map(Some) }
}

fn is_ended(mut pipe: &File) -> io::Result<bool> {
    match pipe.read(&mut [0]) {
        Ok(read) => Ok(read == 0),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

async fn hung_up(pipe: Receiver) {
    loop {
        if pipe.readable().await.is_err() {
            // The runtime ends.
            pending::<()>().await;
        }
        match pipe.try_read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // Nobody writes into it, but if one does, looking again does no harm.
            _ => return,
        }
    }
}
