//! The relay of `observe`: between the agent's pipes and this program's own standard streams.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use crate::process::{run_in_batches, widen};
use crate::proxy::{Proxy, ProxyError, RelayHandle, Streams};

/// Size of the pipe to an editor: a few blocks as they are read. The kernel bounds what the pipes of a
/// user hold together, and each editor may run many of these.
const WIDE_PIPE: i32 = 256 * 1024;

/// Relays in a thread that does nothing else: no client on the port can slow it, and each line
/// wakes one thread with the few streams it waits for, instead of one that looks for other work.
pub(super) fn relay(
    proxy: Proxy,
    from_agent: pipe::Receiver,
    to_agent: pipe::Sender,
    ended: oneshot::Receiver<String>,
) -> io::Result<(RelayHandle, oneshot::Receiver<Result<(), ProxyError>>)> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let streams = {
        let _those_that_it_waits_for = runtime.enter();
        Streams {
            from_agent: pipe::Receiver::from_owned_fd(from_agent.into_nonblocking_fd()?)?,
            to_agent: pipe::Sender::from_owned_fd(to_agent.into_nonblocking_fd()?)?,
            from_client: stdin(),
            to_client: stdout(),
        }
    };
    let (relay, relaying) = proxy.start(streams, ended);
    let (tell_relayed, relayed) = oneshot::channel();
    std::thread::Builder::new().name("relay".to_owned()).spawn(move || {
        // Else an agent on the same processor is broken in upon at each line: it has a session of
        // its own, and the scheduler is fair to sessions, not to how much each has to do.
        run_in_batches();
        // Nobody waits for it any more once somebody wants us to stop.
        let _ = tell_relayed.send(runtime.block_on(relaying).0);
        // A read of standard input that is no pipe may never end.
        runtime.shutdown_background();
    })?;
    Ok((relay, relayed))
}

/// Returns standard input, through the reactor where it is a pipe of its own: the blocking reads
/// that stand in elsewhere cost a thread and twice the time.
fn stdin() -> Box<dyn AsyncRead + Unpin + Send> {
    // Opened anew, so that no other holder of the pipe finds it non-blocking.
    match pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdin()),
    }
}

/// Returns standard output, in the same way. A pipe is widened: what the agent said goes on in
/// blocks that are as large as they were read.
fn stdout() -> Box<dyn AsyncWrite + Unpin + Send> {
    match pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
        Ok(pipe) => {
            widen(&pipe, WIDE_PIPE);
            Box::new(pipe)
        }
        Err(_) => Box::new(tokio::io::stdout()),
    }
}
