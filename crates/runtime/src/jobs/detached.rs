//! `up -d`: starts a team that outlives its terminal, and waits until it serves its port.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::sleep;

use crate::app::{UpOptions, WebWish};
use crate::console::ConsoleFile;
use crate::home::environment;
use crate::program::{Failure, StopSignals};
use crate::serve::client::{ClientError, Connection};
use crate::serve::{RunInfo, live_teams};
use crate::team_file;
use crate::wire::{Empty, ListAgents};

/// How often the team is polled until it serves its port or has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum bytes shown of the output of a team that failed.
const SHOWN: usize = 64 * 1024;

/// A detached team that serves its port.
pub struct Detached {
    pub info: RunInfo,
    /// The path of its console file.
    pub console: PathBuf,
}

/// The lines of a team's output that a person gets while it starts.
struct StartLines<'a> {
    console: &'a Path,
    /// The bytes of the console file before the first that is to come.
    from: u64,
    said: &'a mut (dyn FnMut(&str) + Send),
}

impl StartLines<'_> {
    /// Gives the lines that are whole by now.
    fn go_on(&mut self) {
        let mut new = Vec::new();
        let read = File::open(self.console).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.from))?;
            file.take(SHOWN as u64).read_to_end(&mut new)
        });
        let end = new.iter().rposition(|byte| *byte == b'\n');
        let (Ok(_), Some(end)) = (read, end) else { return };
        self.from += end as u64 + 1;
        let whole = String::from_utf8_lossy(&new[..=end]);
        let is_port = |line: &&str| line.starts_with("eisen-core tcp port: ");
        let is_event = |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        let is_error = |line: &&str| line.starts_with("error: ");
        let lines = whole.lines().filter(|it| !is_port(it) && !is_event(it));
        lines.take_while(|line| !is_error(line)).for_each(&mut *self.said);
    }
}

/// Starts a team in a process of its own, without a terminal, and returns once it serves its port.
/// If it fails, its output and exit code become the error. `said` gets the lines that it writes meanwhile.
pub async fn up_detached(
    options: UpOptions,
    said: &mut (dyn FnMut(&str) + Send),
) -> Result<Detached, Failure> {
    environment::depth().map_err(|error| Failure::Usage(error.into()))?;
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let team = team_file::read(&options.config, &eisen_dir)?.config.team.name.clone();
    let console = ConsoleFile::path(&eisen_dir, &team);
    let mut stop = StopSignals::listen().map_err(|error| Failure::Run(error.into()))?;
    let before = std::fs::metadata(&console).map_or(0, |file| file.len());
    let mut child = start(&options, &console).map_err(Failure::Run)?;
    let pid = child.id();
    let mut shown = StartLines { console: &console, from: before, said };
    let ended = tokio::select! {
        info = serving(&eisen_dir, pid, &mut shown) => {
            return Ok(Detached { info, console });
        }
        ended = ended(&mut child) => ended,
        _ = stop.next() => {
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGTERM);
            ended(&mut child).await
        }
    };
    let ended = ended.map_err(|error| Failure::Run(error.into()))?;
    let output = output_after(&console, before);
    let output = output.lines().filter(|line| !line.starts_with("eisen-core tcp port: "));
    let output = output.collect::<Vec<_>>().join("\n");
    // Warnings may come before it.
    let error = output.strip_prefix("error: ").or_else(|| Some(output.split_once("\nerror: ")?.1));
    let error = match error.unwrap_or(&output).trim() {
        "" => anyhow!("the team `{team}` did not start ({ended})"),
        output => anyhow!("{output}"),
    };
    Err(if ended.code() == Some(2) { Failure::Usage(error) } else { Failure::Run(error) })
}

fn start(options: &UpOptions, console: &Path) -> anyhow::Result<Child> {
    let file = ConsoleFile::open(console)
        .with_context(|| format!("cannot write the console to {}", console.display()))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("up").arg("--config").arg(&options.config).arg("--console").arg(console);
    if let Some(port) = options.port {
        command.args(["--port", &port.to_string()]);
    }
    if options.mode.unattended {
        command.arg("--unattended");
    }
    if let Some(prompt) = &options.prompt {
        command.arg(format!("--prompt={prompt}"));
    }
    if options.mode.observe {
        command.arg("--observe");
    }
    match options.web {
        Some(WebWish { at: Some(address) }) => drop(command.arg(format!("--web={address}"))),
        Some(WebWish { at: None }) => drop(command.arg("--web")),
        None => {}
    }
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    Ok(command.spawn()?)
}

/// Waits until the team of a process responds on its port, and gives its lines as they come: a team that still makes
/// its worktrees takes the connection, and answers later.
async fn serving(eisen_dir: &Path, pid: u32, shown: &mut StartLines<'_>) -> RunInfo {
    let mut responds = pin!(responding(eisen_dir, pid));
    loop {
        let info = tokio::select! {
            info = &mut responds => Some(info),
            () = sleep(POLL_INTERVAL) => None,
        };
        shown.go_on();
        if let Some(info) = info {
            return info;
        }
    }
}

async fn responding(eisen_dir: &Path, pid: u32) -> RunInfo {
    loop {
        let teams = live_teams(eisen_dir).unwrap_or_default();
        if let Some(info) = teams.into_iter().find(|info| info.pid == pid)
            && ping(info.clone()).await.is_ok()
        {
            return info;
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Calls the team once. A team that can still fail to start does not respond.
async fn ping(info: RunInfo) -> Result<(), ClientError> {
    let mut team = Connection::open(&info.into()).await?;
    team.ask::<ListAgents>(&Empty {}).await.map(drop)
}

async fn ended(child: &mut Child) -> std::io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// The file's content after the first `before` bytes, at most the last [`SHOWN`] bytes of it.
fn output_after(file: &Path, before: u64) -> String {
    let all = std::fs::read(file).unwrap_or_default();
    let from = usize::try_from(before).unwrap_or(usize::MAX).min(all.len());
    let from = from.max(all.len().saturating_sub(SHOWN));
    String::from_utf8_lossy(&all[from..]).into_owned()
}
