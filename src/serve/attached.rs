//! Forwards the bytes of a client that is attached to an agent.

use std::future::pending;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, WriteHalf};
use tracing::debug;

use super::entrance::ClientInput;
use crate::line::LineReader;

/// Bytes read from an attached client at once.
const CHUNK: usize = 64 * 1024;

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
