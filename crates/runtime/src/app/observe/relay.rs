//! The relay of `observe`: between the agent's pipes and this program's own standard streams.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use crate::process::{run_in_batches, widen};
use crate::proxy::{Proxy, ProxyError, RelayHandle, Streams};

/// Size of the pipe to an editor: a few blocks. The kernel limits the total size of a user's pipes,
/// and each editor may run many of these.
const WIDE_PIPE: i32 = 256 * 1024;

/// Runs the relay in a thread of its own: clients of the port can't slow it down, and each line
/// wakes a thread that has no other work.
pub(super) fn relay(
    proxy: Proxy,
    from_agent: pipe::Receiver,
    to_agent: pipe::Sender,
    ended: oneshot::Receiver<String>,
) -> io::Result<(RelayHandle, oneshot::Receiver<Result<(), ProxyError>>)> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let streams = {
        let _registers_the_pipes = runtime.enter();
        Streams {
            from_agent: pipe::Receiver::from_owned_fd(from_agent.into_nonblocking_fd()?)?,
            to_agent: pipe::Sender::from_owned_fd(to_agent.into_nonblocking_fd()?)?,
            from_client: stdin(),
            to_client: stdout(),
        }
    };
    let (relay, relaying) = proxy.start(streams, ended);
    let (done, relayed) = oneshot::channel();
    std::thread::Builder::new().name("relay".to_owned()).spawn(move || {
        // Otherwise each line would preempt an agent on the same processor.
        run_in_batches();
        // After a signal, the receiver is gone.
        let _ = done.send(runtime.block_on(relaying).0);
        // A blocking read of standard input may never end.
        runtime.shutdown_background();
    })?;
    Ok((relay, relayed))
}

/// Opens standard input, non-blocking if it is a pipe: blocking reads cost a thread and twice the
/// time.
fn stdin() -> Box<dyn AsyncRead + Unpin + Send> {
    // Opened again, so that other holders of the pipe don't find it non-blocking.
    match pipe::OpenOptions::new().open_receiver("/proc/self/fd/0") {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdin()),
    }
}

/// Opens standard output in the same way. A pipe is widened, so that it takes whole blocks.
fn stdout() -> Box<dyn AsyncWrite + Unpin + Send> {
    match pipe::OpenOptions::new().open_sender("/proc/self/fd/1") {
        Ok(pipe) => {
            widen(&pipe, WIDE_PIPE);
            Box::new(pipe)
        }
        Err(_) => Box::new(tokio::io::stdout()),
    }
}
