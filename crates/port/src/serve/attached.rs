//! Forwards the bytes of a client that is attached to an agent.

use std::future::pending;
use std::io;

use bytes::BytesMut;
use tokio::io::{
    AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::sync::mpsc;
use tracing::debug;

use super::command::ViewerCommand;
use super::entrance::ClientInput;
use super::outgoing::Outgoing;
use crate::line::LineReader;

/// Bytes read from an attached client, or from its agent, at once.
const CHUNK: usize = 64 * 1024;

/// Forwards an agent's bytes until the agent or the client's reader ends.
pub(super) async fn pass_on(
    mut outgoing: Outgoing<impl AsyncWrite + Unpin>,
    mut commands: mpsc::Receiver<ViewerCommand>,
    mut agent: ReadHalf<DuplexStream>,
) -> io::Result<()> {
    loop {
        outgoing.flush().await?;
        let mut said = BytesMut::with_capacity(CHUNK);
        tokio::select! {
            biased;
            read = agent.read_buf(&mut said) => if read? == 0 {
                return outgoing.close().await;
            },
            // All bytes of the agent so far were pushed.
            None = commands.recv() => return outgoing.close().await,
        }
        outgoing.push(said.freeze());
    }
}

/// Forwards an attached client's bytes, and the end of its input. Returns when the client has
/// closed the connection.
pub(super) async fn forward(
    lines: LineReader<impl ClientInput>,
    mut agent: WriteHalf<DuplexStream>,
) {
    let (mut bytes, mut reader) = lines.into_rest();
    loop {
        if agent.write_all_buf(&mut bytes).await.is_err() {
            // The agent is gone, and its last bytes are still on their way to the client.
            return pending().await;
        }
        bytes.reserve(CHUNK);
        match reader.read_buf(&mut bytes).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => return debug!(%error, "cannot read from an attached client"),
        }
    }
    if agent.shutdown().await.is_err() {
        return pending().await;
    }
    let _ = reader.gone().await;
}
