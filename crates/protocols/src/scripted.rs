//! An agent of the Agent Client Protocol that plays a script: for demos, rehearsals and tests.
//!
//! Owns the script's format (`docs/scripted-agent.md`) and the agent's side of the protocol. Knows
//! nothing of teams, zones or supervisors, which treat it like any other agent.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use eisen_base::task;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

mod act;
mod agent;
mod methods;
mod parse;
mod script;
mod search;
mod turn;
mod wire;

pub use parse::Invalid;
pub use script::Script;

/// How long the agent still writes its output after its input has ended: the client may have
/// stopped reading.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// How a play ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlayEnd {
    /// The input ended, or the script says `exit`.
    Exit(u8),
    /// The script says `crash`: the process kills itself by a signal.
    Crash,
}

#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("cannot read the script {}: {source}", .file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("{}:{line}:{column}: {message}", .file.display())]
    Invalid { file: PathBuf, line: usize, column: usize, message: String },
    #[error("cannot start: {0}")]
    Start(io::Error),
    #[error("cannot write to the client: {0}")]
    Write(io::Error),
    #[error("the client sent a line of more than {} MiB", wire::MAX_LINE >> 20)]
    LongLine,
}

impl ScriptError {
    /// The exit code: 2 for an invalid script, 1 if playing it failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Read { .. } | Self::Invalid { .. } => 2,
            Self::Start(_) | Self::Write(_) | Self::LongLine => 1,
        }
    }
}

/// Plays a script on stdin and stdout until stdin ends; returns the exit code. Creates a runtime,
/// so it must not be called from within another.
pub fn run(script: &Path) -> Result<u8, ScriptError> {
    let script = Script::load(script)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ScriptError::Start)?;
    let ended = runtime.block_on(play(script, tokio::io::stdin(), tokio::io::stdout()));
    // Don't wait for the thread that is blocked reading stdin.
    runtime.shutdown_background();
    match ended? {
        PlayEnd::Exit(code) => Ok(code),
        PlayEnd::Crash => {
            // Returns only if the signal could not be sent.
            let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
            Ok(137)
        }
    }
}

/// Plays a script over a pair of pipes.
pub async fn play<R, W>(script: Script, reader: R, writer: W) -> Result<PlayEnd, ScriptError>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin,
{
    let (line, lines) = mpsc::channel(wire::LINES_AHEAD);
    let stay = CancellationToken::new();
    let mut agent = agent::ScriptedAgent::new(script, writer, stay.clone());
    let reading = task::spawn(wire::read_lines(reader, line));
    let abort = reading.abort_handle();
    let flush_timeout = async {
        // Reading can't panic, and is aborted only below.
        let _ = reading.await;
        tokio::time::sleep(FLUSH_TIMEOUT).await;
        if stay.is_cancelled() {
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        ended = agent.serve(lines) => ended,
        () = flush_timeout => Ok(PlayEnd::Exit(0)),
    };
    abort.abort();
    ended
}

#[cfg(test)]
mod tests;
