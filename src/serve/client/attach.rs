//! `eisen-core attach`: carries an editor's bytes to an agent of a running team, and back.

use std::io;
use std::time::Duration;

use serde_json::json;
use tokio::io::BufReader;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
};
use tokio::time::timeout;

use super::{ClientError, Connection, Target};

/// How long an editor that has closed one side still has for the other.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Attaches to an agent, and carries bytes until the editor leaves, which is the good end, or the
/// agent does. An editor leaves by ending `input`, or `output` if it goes all at once: either may be
/// seen first. `output` gets the agent's bytes and nothing else.
pub async fn attach(
    target: &Target,
    agent: &str,
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> Result<(), ClientError> {
    let mut connection = Connection::open(target).await?;
    connection.call("attach", &json!({ "agent_id": agent })).await?;
    let (said, read, mut write) = connection.into_ends().await?;
    let mut read = BufReader::new(said.chain(read));
    let telling = async {
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
    let hearing = async {
        loop {
            let said = match read.fill_buf().await {
                // A connection that was reset has ended, too.
                Ok([]) | Err(_) => return Ok::<_, io::Error>(()),
                Ok(said) => said,
            };
            output.write_all(said).await?;
            output.flush().await?;
            let length = said.len();
            read.consume(length);
        }
    };
    tokio::pin!(hearing, telling);
    let gone = || ClientError::AgentGone(agent.to_owned());
    tokio::select! {
        heard = &mut hearing => match heard {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                // What it said as it went is still the agent's.
                let _ = timeout(LAST_WORDS, telling).await;
                return Ok(());
            }
            heard => return heard.map_err(ClientError::Stdio).and(Err(gone())),
        },
        told = &mut telling => if !told.map_err(ClientError::Stdio)? {
            // The agent is gone: its last words are still to be heard.
            return hearing.await.map_err(ClientError::Stdio).and(Err(gone()));
        },
    }
    let _ = timeout(LAST_WORDS, hearing).await;
    Ok(())
}
