//! `acp`: the team as one ACP agent, on standard input and output.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::anyhow;
use clap::Args;

use super::output::note;
use super::team::{Which, failed};
use super::{Global, in_folder, stdio};
use crate::config::Config;
use crate::home;
use crate::program::Failure;
use crate::serve;
use crate::serve::client::{ClientError, Target, attach};
use crate::team_file;

/// Be the team as one ACP agent, on standard input and output
///
/// Configure this command as an agent of an editor or a platform. A session begins at the agent that
/// `[gateway] default` names, else at the orchestrator agent or the first agent of the
/// configuration; `/select AGENT` transfers it to another one. `/agents`, `/team`, `/blocked`, `/allow`
/// and `/deny` show and steer the team. docs/gateway.md describes it. With --config the command
/// starts the team if it does not run; the team goes on when the client leaves, and `eisen-core down`
/// stops it.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core team acp                     the only running team
  eisen-core team acp --team shop
  eisen-core team acp -c shop/eisen.toml  starts the team if it does not run

As an agent of Zed, in its settings.json:
  \"agent_servers\": { \"shop\": { \"type\": \"custom\", \"command\": \"eisen-core\", \"args\": [\"team\", \"acp\", \"-c\", \"/path/to/eisen.toml\"] } }

Exit codes: 0 the client disconnected, 1 the team has ended, was not found, or did not start, 2 wrong
usage or configuration.")]
pub(super) struct Acp {
    /// Start the team of this configuration if it does not run
    #[arg(short, long, value_name = "FILE", conflicts_with = "team")]
    config: Option<PathBuf>,
    #[command(flatten)]
    which: Which,
}

impl Acp {
    pub(super) async fn run(self, global: Global) -> Result<(), Failure> {
        let target = match self.config {
            Some(file) => started(in_folder(global.cwd, &file), global.port).await?,
            None => self.which.find(&global)?,
        };
        attach::attach_team(&target, stdio::input(), stdio::output()).await.map_err(failed)
    }
}

/// Finds the team of a configuration; starts it if it does not run.
async fn started(config: PathBuf, port: Option<u16>) -> Result<Target, Failure> {
    let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
    let wanted = team_file::read(&config, &eisen_dir)?.config;
    if let Some(running) = running(&eisen_dir, &wanted)? {
        return Ok(running);
    }
    // Somebody else may have started it meanwhile.
    let started = up_detached(&config, port).await;
    match (running(&eisen_dir, &wanted)?, started) {
        (Some(running), _) => Ok(running),
        (None, Err(failure)) => Err(failure),
        (None, Ok(())) => Err(Failure::Run(anyhow!("the team `{}` has ended", wanted.team.name))),
    }
}

/// Starts the team by `up --detach`, which ends then. A team that were a child of this process would end
/// with it: some clients end all processes that descend from the agent that they started.
async fn up_detached(config: &Path, port: Option<u16>) -> Result<(), Failure> {
    let io_failed = |error: std::io::Error| Failure::Run(error.into());
    let mut command = tokio::process::Command::new(std::env::current_exe().map_err(io_failed)?);
    command.args(["up", "--detach", "--config"]).arg(config);
    if let Some(port) = port {
        command.args(["--port", &port.to_string()]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let ended = command.stderr(Stdio::piped()).output().await.map_err(io_failed)?;
    // It has escaped what it says.
    let said = String::from_utf8_lossy(&ended.stderr);
    let said = said.trim_end();
    if ended.status.success() {
        if !said.is_empty() {
            note(said);
        }
        return Ok(());
    }
    let error = anyhow!("{}", said.strip_prefix("error: ").unwrap_or(said));
    Err(if ended.status.code() == Some(2) { Failure::Usage(error) } else { Failure::Run(error) })
}

/// Finds the team with the name of a configuration; an error if that one has another workspace.
fn running(eisen_dir: &Path, wanted: &Config) -> Result<Option<Target>, Failure> {
    let name = &wanted.team.name;
    let all = serve::live_teams(eisen_dir).map_err(|error| failed(ClientError::RunFiles(error)))?;
    let Some(info) = all.into_iter().find(|info| info.team == *name) else { return Ok(None) };
    let (own, other) = (&wanted.team.workspace, info.remains.workspace.as_ref());
    if let Some(other) = other.filter(|other| *other != own) {
        let (own, other) = (own.display(), other.display());
        return Err(Failure::Run(anyhow!(
            "the team `{name}` that runs is another one: it works in {other}, and this configuration is \
             for {own}. Give one of them another name in `[team]`"
        )));
    }
    Ok(Some(info.into()))
}
