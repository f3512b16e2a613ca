//! A real agent of the Agent Client Protocol that plays a script: for demos, rehearsals and tests.
//!
//! It owns the script's format (`docs/scripted-agent.md`) and the agent's side of the protocol. It
//! does what the script says whether or not that is wise, and knows nothing of teams, zones or
//! supervisors: to them it is an agent like any other.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

mod act;
mod agent;
mod fields;
mod methods;
mod parse;
mod pattern;
mod script;
mod search;
mod turn;
mod wire;

pub use parse::Invalid;
pub use script::Script;

/// How long the agent still tries to hand over what it said once its input has ended: a client
/// that reads no more must not keep it.
const PARTING: Duration = Duration::from_secs(2);

/// How a play ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlayEnd {
    /// The input ended, or the script says `exit`.
    Exit(u8),
    /// The script says `crash`: the process is to die by a signal.
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
    /// What the program exits with: 2 where the script is wrong, 1 where playing it failed.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Read { .. } | Self::Invalid { .. } => 2,
            Self::Start(_) | Self::Write(_) | Self::LongLine => 1,
        }
    }
}

/// Plays a script on stdin and stdout until stdin ends; returns the exit code. It brings its own
/// runtime, so it must not be called from within another.
pub fn run(script: &Path) -> Result<u8, ScriptError> {
    let script = Script::load(script)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ScriptError::Start)?;
    let ended = runtime.block_on(play(script, tokio::io::stdin(), tokio::io::stdout()));
    // Reading stdin blocks a thread until the client writes again; it is not waited for.
    runtime.shutdown_background();
    match ended? {
        PlayEnd::Exit(code) => Ok(code),
        PlayEnd::Crash => {
            // It only returns where the signal could not be sent.
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
    let reading = tokio::spawn(wire::read_lines(reader, line));
    let abort = reading.abort_handle();
    let parting = async {
        // Reading can't panic, and is aborted only below.
        let _ = reading.await;
        tokio::time::sleep(PARTING).await;
        if stay.is_cancelled() {
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        ended = agent.serve(lines) => ended,
        () = parting => Ok(PlayEnd::Exit(0)),
    };
    abort.abort();
    ended
}

#[cfg(test)]
mod tests;
