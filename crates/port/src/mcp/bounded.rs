//! Owns the lines of an MCP connection: bounded, each answered, and read no faster than answers are
//! taken.

use std::io;
use std::sync::Arc;

use eisen_base::task;
use rmcp::RoleServer;
use rmcp::model::{ErrorData, JsonRpcMessage, NumberOrString};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Mutex, Semaphore};

use crate::line::{self, Line, LineReader};

/// Bytes of a client's line; a longer one is answered with an error.
const LONGEST_LINE: usize = 4 * 1024 * 1024;

/// Bytes of a request's id: its answer repeats it, and many answers may wait.
const LONGEST_ID: usize = 1024;

/// Messages to the client that may wait to be written; beyond this its lines are not read.
const UNWRITTEN: usize = 64;

/// A transport over a stream, with a line for each message.
pub(super) struct BoundedTransport<R, W> {
    lines: LineReader<R>,
    writer: Arc<Mutex<W>>,
    /// A permit for each further message that may wait.
    room: Arc<Semaphore>,
}

impl<R: AsyncRead + Unpin, W> BoundedTransport<R, W> {
    pub(super) fn new(reader: R, writer: W) -> Self {
        Self {
            lines: LineReader::new(reader, LONGEST_LINE),
            writer: Arc::new(Mutex::new(writer)),
            room: Arc::new(Semaphore::new(UNWRITTEN)),
        }
    }
}

impl<R, W> Transport<RoleServer> for BoundedTransport<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let writer = Arc::clone(&self.writer);
        // Counted from now on; a message over the limit is written all the same.
        let place = Arc::clone(&self.room).try_acquire_owned();
        async move {
            let _place = place;
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut writer = writer.lock().await;
            writer.write_all(&line).await?;
            writer.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            // A permit is free: the client takes its answers.
            let _ = self.room.acquire().await;
            let wrong = match self.lines.next().await {
                Ok(Line::Whole(line)) if line.trim_ascii().is_empty() => continue,
                Ok(Line::Whole(line)) => match line::read(&line) {
                    Ok(message) if has_short_id(&message) => return Some(message),
                    Ok(_) => (
                        None,
                        format!("Invalid Request: an id may have at most {LONGEST_ID} bytes"),
                    ),
                    Err(error) => {
                        let Unreadable { id, method } = line::read(&line).unwrap_or_default();
                        // A notification gets no answer.
                        if id.is_none() && method.is_some() {
                            continue;
                        }
                        (id.filter(is_short), format!("Invalid Request: {error}"))
                    }
                },
                Ok(Line::TooLong(_)) => {
                    (None, format!("Invalid Request: a line may have at most {LONGEST_LINE} bytes"))
                }
                Ok(Line::End) | Err(_) => return None,
            };
            let (id, message) = wrong;
            let error = JsonRpcMessage::error(ErrorData::invalid_request(message, None), id);
            // The service drops this future when an answer is ready; half a line must not be written.
            task::spawn(self.send(error));
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.lock().await.shutdown().await
    }
}

fn has_short_id(message: &RxJsonRpcMessage<RoleServer>) -> bool {
    match message {
        JsonRpcMessage::Request(request) => is_short(&request.id),
        JsonRpcMessage::Response(_)
        | JsonRpcMessage::Notification(_)
        | JsonRpcMessage::Error(_) => true,
    }
}

/// Whether a client may have something named so that many messages repeat.
pub(super) fn is_short(id: &NumberOrString) -> bool {
    match id {
        NumberOrString::Number(_) => true,
        NumberOrString::String(id) => id.len() <= LONGEST_ID,
    }
}

/// The readable parts of a line that is no message.
#[derive(Default, Deserialize)]
struct Unreadable {
    id: Option<NumberOrString>,
    method: Option<String>,
}
