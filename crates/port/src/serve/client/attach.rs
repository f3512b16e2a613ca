//! `eisen-core agent attach` and `mcp`: forwards bytes between a program and a running team: an editor and an
//! agent, or an MCP client and the tools.

use std::io;
use std::time::Duration;

use tokio::io::BufReader;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
};
use tokio::time::timeout;

use super::{ClientError, Connection, Target};
use crate::wire::{Attach, AttachParams};

/// How long the other direction may go on after the editor closed one.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Attaches to an agent and forwards bytes until the editor leaves, which is a success, or the
/// agent. An editor leaves by ending `input` or by closing `output`, in either order. `output` gets
/// the agent's bytes and nothing else.
pub async fn attach(
    target: &Target,
    agent: &str,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> Result<(), ClientError> {
    let mut connection = Connection::open(target).await?;
    let agent_id = Some(agent.to_owned());
    connection.call::<Attach>(&AttachParams { agent_id: agent_id.map(Into::into) }).await?;
    forward(connection, input, output, || ClientError::AgentGone(agent.to_owned())).await
}

/// Attaches to the team as one agent, and forwards bytes likewise.
pub async fn attach_team(
    target: &Target,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> Result<(), ClientError> {
    let mut connection = Connection::open(target).await?;
    connection.call::<Attach>(&AttachParams { agent_id: None }).await?;
    forward(connection, input, output, || ClientError::Closed).await
}

/// Connects an MCP client to the tools of a team, and forwards bytes until either leaves.
pub async fn tools(
    target: &Target,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin,
) -> Result<(), ClientError> {
    let connection = Connection::open_tools(target).await?;
    forward(connection, input, output, || ClientError::Closed).await
}

/// Forwards bytes both ways; `gone` is the error if the other side leaves first.
async fn forward(
    connection: Connection,
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    gone: impl Fn() -> ClientError,
) -> Result<(), ClientError> {
    let (said, read, mut write) = connection.into_ends().await?;
    let mut read = BufReader::new(said.chain(read));
    let upload = async {
        let mut said = vec![0; 64 * 1024];
        loop {
            let length = input.read(&mut said).await?;
            if length == 0 {
                let _ = write.shutdown().await;
                break Ok::<_, io::Error>(true);
            }
            if write.write_all(&said[..length]).await.is_err() {
                break Ok(false);
            }
        }
    };
    let download = async {
        loop {
            let said = match read.fill_buf().await {
                // A reset connection has ended, too.
                Ok([]) | Err(_) => return Ok::<_, io::Error>(()),
                Ok(said) => said,
            };
            output.write_all(said).await?;
            output.flush().await?;
            let length = said.len();
            read.consume(length);
        }
    };
    tokio::pin!(download, upload);
    tokio::select! {
        downloaded = &mut download => match downloaded {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                // The editor's last bytes are still forwarded.
                let _ = timeout(LAST_WORDS, upload).await;
                return Ok(());
            }
            downloaded => return downloaded.map_err(ClientError::Stdio).and(Err(gone())),
        },
        uploaded = &mut upload => if !uploaded.map_err(ClientError::Stdio)? {
            // The agent is gone: its last bytes are still forwarded.
            return download.await.map_err(ClientError::Stdio).and(Err(gone()));
        },
    }
    let _ = timeout(LAST_WORDS, download).await;
    Ok(())
}
