//! Opens pull requests: by `merge --pr` as a program of its own, which asks nobody anything and ends in time.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use eisen_base::task;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::TeamBranches;
use super::merges::check_name;
use crate::branches::port::reviews;
use crate::branches::repository_of;
use crate::model::masked_line;
use crate::serve::{Refused, blocking};
use crate::wire::{OpenPullRequestParams, PullRequest};

/// How long the push and `gh` may take together.
const DEADLINE: Duration = Duration::from_secs(120);

/// Bytes of what the command prints, and of what it says, that are read.
const LONGEST: u64 = 64 << 10;

/// How long its output is read after its end.
const AFTER_END: Duration = Duration::from_secs(1);

impl TeamBranches {
    /// Pushes a branch and opens a pull request. It goes on if the returned future is dropped.
    pub(crate) async fn open_pull_request(
        &self,
        params: OpenPullRequestParams,
    ) -> Result<PullRequest, Refused> {
        check_name("branch", &params.branch)?;
        if let Some(into) = &params.into {
            check_name("into", into)?;
        }
        // A push publishes what it names: a task's branch alone, by its exact name.
        let listed = self.listed().await?;
        if !listed.0.iter().any(|it| it.branch == params.branch) {
            let message = format!("`{}` is no branch of a task", params.branch);
            return Err(Refused::new(404, message));
        }
        let Ok(alone) = Arc::clone(&self.requesting).try_lock_owned() else {
            let message = "a pull request is opened already: try again when that is done";
            return Err(Refused::new(409, message));
        };
        let folder = self.workspace.clone();
        let opened = task::spawn(async move {
            let _alone = alone;
            let place = folder.clone();
            blocking(move || refuse_hooks(&place)).await??;
            open(&folder, &params).await
        });
        opened.await.map_err(Refused::fault)?
    }
}

/// Refuses where git's hooks lie in the workspace: what an agent wrote there would run outside of its zone.
fn refuse_hooks(folder: &Path) -> Result<(), Refused> {
    let (repository, _) = repository_of(folder).map_err(|it| reviews::refused(&it))?;
    let mut ask = repository.git();
    ask.args(["rev-parse", "--path-format=absolute", "--git-path", "hooks"]);
    let hooks = PathBuf::from(ask.text().map_err(Refused::fault)?.trim_end());
    if hooks.starts_with(folder) && !hooks.starts_with(repository.common()) {
        let message = "git's hooks lie in the workspace, and agents may have written them: `eisen-core merge --pr` in a terminal runs them";
        return Err(Refused::new(409, message));
    }
    Ok(())
}

async fn open(folder: &Path, params: &OpenPullRequestParams) -> Result<PullRequest, Refused> {
    let mut command = Command::new(std::env::current_exe().map_err(Refused::fault)?);
    command.args(["merge", "--pr", "--json"]);
    if let Some(into) = &params.into {
        command.args(["--into", into]);
    }
    command.args(["--", &params.branch]).current_dir(folder);
    // Nobody is there who could type a password or confirm a host.
    command.env("GIT_TERMINAL_PROMPT", "0").env("GH_PROMPT_DISABLED", "1");
    command.env("SSH_ASKPASS", "false").env("SSH_ASKPASS_REQUIRE", "force");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.process_group(0).kill_on_drop(true).spawn().map_err(Refused::fault)?;
    let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
    let Ok(ended) = timeout(DEADLINE, outcome(&mut child)).await else {
        // git, ssh and `gh` are its children.
        let _ = group.map(|group| killpg(group, Signal::SIGKILL));
        let message = format!(
            "it did not end within {} s, and may have been opened: `eisen-core merge --pr {}` in a terminal shows what it waits for",
            DEADLINE.as_secs(),
            params.branch
        );
        return Err(Refused::new(409, message));
    };
    let ended = ended.map_err(Refused::fault)?;
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr);
        let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
        let last = last.unwrap_or("it failed without a word");
        let last = last.strip_prefix("error: ").unwrap_or(last);
        return Err(Refused::new(409, masked_line(last)));
    }
    let opened: Vec<PullRequest> = serde_json::from_slice(&ended.stdout).map_err(Refused::fault)?;
    opened.into_iter().next().ok_or_else(|| Refused::new(500, "it printed no pull request"))
}

/// Waits for the end of a command, and reads what it writes.
async fn outcome(child: &mut Child) -> std::io::Result<Output> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = {
        let mut reading =
            pin!(async { tokio::try_join!(read(stdout, &mut out), read(stderr, &mut err)) });
        tokio::select! {
            status = child.wait() => {
                // What it began in the background may keep its output open.
                let _ = timeout(AFTER_END, reading).await;
                status?
            }
            done = reading.as_mut() => {
                done?;
                child.wait().await?
            }
        }
    };
    Ok(Output { status, stdout: out, stderr: err })
}

/// Reads up to so many bytes, and passes over what comes behind them.
async fn read(from: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> std::io::Result<()> {
    if let Some(mut from) = from {
        (&mut from).take(LONGEST).read_to_end(into).await?;
        tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    }
    Ok(())
}
