//! Runs a command of a shell in a worktree, confined as an agent is that may write all of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::runs::RunSpec;
use crate::sandbox::{Sandbox, SandboxError};
use crate::team_file::load;
use crate::team_file::of_run::{RunOptions, team_file};
use crate::zone::{Bounds, Zone};

/// Bytes of a line of output that are shown; the log has all.
const LONGEST_LINE: u64 = 64 << 10;

/// How long a command may take.
const LONGEST: Duration = Duration::from_mins(30);

/// How long what a command left running may go on writing.
const LINGERS: Duration = Duration::from_secs(2);

/// Paths that are named in an error.
const MOST_NAMED: usize = 5;

/// Why a command in a worktree did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum CommandFailed {
    #[error("`{command}` {how}{denied}; its output is in {}", .log.display())]
    GitEnd { command: String, how: String, denied: String, log: PathBuf },
    #[error("`{command}` cannot be started: {why}")]
    Start { command: String, why: String },
}

/// A command that succeeded.
#[derive(Debug)]
pub struct CommandEnd {
    pub log: PathBuf,
}

/// The bounds of a command in a worktree: those of an agent of a run there.
fn bounds(
    options: &RunOptions,
    eisen_dir: &Path,
    private: &Path,
    closed: &Path,
) -> Result<Bounds, String> {
    let text = team_file(options, "worktree").map_err(|error| error.to_string())?;
    let file = closed.join("eisen.toml");
    std::fs::write(&file, text).map_err(|error| error.to_string())?;
    let layered = load::read(&file, eisen_dir);
    let layered = layered.map_err(|failure| format!("{:#}", failure.error()))?;
    let agent = &layered.config.agents[0];
    let zone = Zone::compile(&agent.zone.spec).map_err(|error| error.to_string())?;
    let bounds = Bounds::new(zone.into(), agent.reach(private, None));
    bounds.map_err(|error| error.to_string())
}

/// Runs a command to its end. Its output goes to a log, and line by line to `said`.
pub(super) async fn run(
    command: &str,
    folder: &Path,
    variables: BTreeMap<String, String>,
    log: PathBuf,
    said: &mut (dyn FnMut(&str) + Send),
) -> Result<CommandEnd, CommandFailed> {
    let failed = |why: String| CommandFailed::Start { command: command.to_owned(), why };
    let eisen_dir = crate::home::environment::eisen_dir();
    let eisen_dir = eisen_dir.map_err(|error| failed(format!("{error:#}")))?;
    let options = RunOptions {
        spec: RunSpec { command: vec!["sh".to_owned()], ..RunSpec::default() },
        workspace: folder.to_owned(),
        profile: None,
        candidate: None,
        begins_with: None,
        known: toml::Table::new(),
        worktree: None,
    };
    let rules =
        |_: &Path, private: &Path, closed: &Path| bounds(&options, &eisen_dir, private, closed);
    let sandbox = Sandbox::with_rules(folder, rules);
    let sandbox = sandbox.map_err(|error: SandboxError| failed(error.to_string()))?;
    let started = sandbox.with_variables(variables).spawn("sh", ["-c", command]).await;
    let mut started = started.map_err(|error| failed(error.to_string()))?;
    let mut kept = log_file(&log).await.map_err(|error| failed(error.to_string()))?;
    let mut output = BufReader::new(&mut started.output);
    let mut line = Vec::new();
    let reading = async {
        loop {
            line.clear();
            let mut bounded = tokio::io::AsyncReadExt::take(&mut output, LONGEST_LINE);
            if bounded.read_until(b'\n', &mut line).await.unwrap_or_default() == 0 {
                break;
            }
            let _ = kept.write_all(&line).await;
            said(String::from_utf8_lossy(&line).trim_end());
        }
    };
    // What it left running may hold its output open for ever.
    let left_behind = async {
        started.process.wait().await;
        tokio::time::sleep(LINGERS).await;
    };
    let reading = async {
        tokio::select! {
            () = reading => false,
            () = left_behind => true,
        }
    };
    let (is_late, is_left) = match tokio::time::timeout(LONGEST, reading).await {
        Ok(is_left) => (false, is_left),
        Err(_) => (true, false),
    };
    if is_left {
        said("what it left running is ended: start a server in the task, not here");
    }
    let _ = kept.flush().await;
    if is_late {
        let _ = started.end().await;
        let how = format!("did not end within {} minutes", LONGEST.as_secs() / 60);
        let (command, denied) = (command.to_owned(), String::new());
        return Err(CommandFailed::GitEnd { command, how, denied, log });
    }
    let exit = started.process.wait().await;
    let mut denied = Vec::new();
    while let Ok(denial) = started.denied.try_recv() {
        if denied.len() < MOST_NAMED && !denied.contains(&denial.path) {
            denied.push(denial.path);
        }
    }
    let _ = started.end().await;
    if exit.success() {
        return Ok(CommandEnd { log });
    }
    let denied = match &denied[..] {
        [] => String::new(),
        paths => format!(", and was denied {}", paths.join(", ")),
    };
    Err(CommandFailed::GitEnd { command: command.to_owned(), how: exit.to_string(), denied, log })
}

async fn log_file(log: &Path) -> std::io::Result<tokio::fs::File> {
    if let Some(folder) = log.parent() {
        crate::kept::make_folder(folder)?;
    }
    let mut options = tokio::fs::OpenOptions::new();
    options.create(true).write(true).truncate(true).mode(0o600).open(log).await
}
