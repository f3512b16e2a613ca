//! The pipe to one editor: whole lines both ways, moved by a task of its own, so that no editor
//! slows the host. Knows no JSON.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::EditorId;
use crate::client_host::transport::LineReader;

/// Longest line of an editor, which is what the relay takes; a longer one ends the pipe.
const MAX_LINE: usize = 64 << 20;

/// Bytes that may wait for an editor that does not read; past that it is cut off.
const MAX_WAITING: usize = 64 << 20;

/// Bytes on their way to or from the port; past that the pipe's task waits.
const DUPLEX: usize = 256 * 1024;

/// How long an editor that was let go may take for what still waits for it.
const LAST_LINES: Duration = Duration::from_secs(2);

/// What comes out of a pipe.
#[derive(Debug)]
pub(in crate::client_host) enum Heard {
    Line(Vec<u8>),
    /// The editor has no more to say.
    End,
    /// Nothing more can be read or written.
    Broken(io::Error),
}

/// The host's end. Dropping it ends the pipe, once what waits is written.
#[derive(Debug)]
pub(super) struct Pipe {
    lines: mpsc::UnboundedSender<Bytes>,
    waiting: Arc<AtomicUsize>,
    _held: oneshot::Sender<()>,
}

impl Pipe {
    /// Returns the host's end, the editor's, and the task between them.
    pub(super) fn open(
        id: EditorId,
        heard: mpsc::Sender<(EditorId, Heard)>,
    ) -> (Self, DuplexStream, impl Future<Output = ()> + Send) {
        let (near, far) = duplex(DUPLEX);
        let (reader, writer) = split(near);
        let (lines, to_write) = mpsc::unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (held, let_go) = oneshot::channel();
        let written = Arc::clone(&waiting);
        let task = async move {
            tokio::select! {
                wrote = write(writer, to_write, &written) => if let Err(error) = wrote {
                    // Without a host there is nobody to be told.
                    let _ = heard.send((id, Heard::Broken(error))).await;
                },
                () = read(reader, id, &heard) => {}
                () = async { let _ = let_go.await; sleep(LAST_LINES).await } => {}
            }
        };
        (Self { lines, waiting, _held: held }, far, task)
    }

    /// Appends a line; says whether the editor may be that far behind.
    pub(super) fn push(&self, line: Bytes) -> bool {
        let before = self.waiting.fetch_add(line.len(), Ordering::Relaxed);
        // A pipe that broke tells so by itself.
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

/// Reads to the end, and then for ever waits: the editor may still be answered.
async fn read(
    reader: ReadHalf<DuplexStream>,
    id: EditorId,
    heard: &mpsc::Sender<(EditorId, Heard)>,
) {
    let mut lines = LineReader::new(reader, MAX_LINE);
    loop {
        let next = match lines.next().await {
            Ok(Some(line)) => Heard::Line(line),
            Ok(None) => Heard::End,
            Err(error) => Heard::Broken(error),
        };
        let last = !matches!(next, Heard::Line(_));
        if heard.send((id, next)).await.is_err() || last {
            std::future::pending::<()>().await;
        }
    }
}
