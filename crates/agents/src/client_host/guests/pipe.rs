//! The pipe to one editor: whole lines both ways, moved by a task of its own, so that no editor
//! slows the host. Does not parse JSON.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::EditorId;
use crate::line::LineReader;

/// Longest line of an editor, as in the relay; a longer one ends the pipe.
const MAX_LINE: usize = 64 << 20;

/// Bytes queued for an editor that does not read; above that it is cut off.
const MAX_WAITING: usize = 64 << 20;

/// Bytes buffered to and from the port; the pipe's task waits when they are full.
const DUPLEX: usize = 256 * 1024;

/// How long a detached editor may take to read its remaining lines.
const DRAIN_GRACE: Duration = Duration::from_secs(2);

/// An event of a pipe.
#[derive(Debug)]
pub(in crate::client_host) enum PipeEvent {
    Line(Bytes),
    /// The editor closed its output.
    End,
    /// The pipe can no longer be read or written.
    Broken(io::Error),
}

/// The host's end. Dropping it ends the pipe once its queue is written.
#[derive(Debug)]
pub(super) struct Pipe {
    lines: mpsc::UnboundedSender<Bytes>,
    waiting: Arc<AtomicUsize>,
    _held: oneshot::Sender<()>,
}

impl Pipe {
    /// Returns the host's end, the editor's end, and the task between them.
    pub(super) fn open(
        id: EditorId,
        events: mpsc::Sender<(EditorId, PipeEvent)>,
    ) -> (Self, DuplexStream, impl Future<Output = ()> + Send) {
        let (near, far) = duplex(DUPLEX);
        let (reader, writer) = split(near);
        let (lines, to_write) = mpsc::unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (held, released) = oneshot::channel();
        let written = Arc::clone(&waiting);
        let task = async move {
            tokio::select! {
                wrote = write(writer, to_write, &written) => if let Err(error) = wrote {
                    // The host may be gone.
                    let _ = events.send((id, PipeEvent::Broken(error))).await;
                },
                () = read(reader, id, &events) => {}
                () = async { let _ = released.await; sleep(DRAIN_GRACE).await } => {}
            }
        };
        (Self { lines, waiting, _held: held }, far, task)
    }

    /// Appends a line; returns whether the queue is within its limit.
    pub(super) fn push(&self, line: Bytes) -> bool {
        let before = self.waiting.fetch_add(line.len(), Ordering::Relaxed);
        // A broken pipe is reported by its task.
        let _ = self.lines.send(line);
        before <= MAX_WAITING
    }
}

async fn write(
    mut writer: WriteHalf<DuplexStream>,
    mut lines: mpsc::UnboundedReceiver<Bytes>,
    waiting: &AtomicUsize,
) -> io::Result<()> {
    while let Some(line) = lines.recv().await {
        writer.write_all(&line).await?;
        waiting.fetch_sub(line.len(), Ordering::Relaxed);
    }
    writer.shutdown().await
}

/// Reads to the end, then pends for ever: answers to the editor may still be due.
async fn read(
    reader: ReadHalf<DuplexStream>,
    id: EditorId,
    events: &mpsc::Sender<(EditorId, PipeEvent)>,
) {
    let mut lines = LineReader::new(reader, MAX_LINE);
    loop {
        let next = match lines.next_whole().await {
            Ok(Some(line)) => PipeEvent::Line(line),
            Ok(None) => PipeEvent::End,
            Err(error) => PipeEvent::Broken(error),
        };
        let last = !matches!(next, PipeEvent::Line(_));
        if events.send((id, next)).await.is_err() || last {
            std::future::pending::<()>().await;
        }
    }
}
