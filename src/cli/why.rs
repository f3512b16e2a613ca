//! `why`: explains whether a configuration allows an agent to access a path.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, ValueEnum};

use super::config_file::ConfigFile;
use super::output::{plain, print};
use crate::access::grants;
use crate::branches;
use crate::config::Config;
use crate::home;
use crate::model::{Action, AgentId};
use crate::program::Failure;
use crate::team_file;

/// Explain whether an agent may access a path
///
/// Shows the pattern that decides, the owner of the path, and a change that would allow the access.
/// Reads only the configuration; no team needs to be running.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core why ui target/debug  may ui read it, and may it write it?
  eisen-core why ui package.json --action write
  eisen-core why ui src/api/cart.rs --json

What a person allowed for the team counts (`team grants`), what was allowed for a session does not.

Exit codes: 0 explained, allowed or not; 2 wrong usage or configuration.")]
pub(super) struct WhyArgs {
    /// Id of the agent
    agent: String,
    /// Path, relative to the workspace or absolute; it need not exist
    path: PathBuf,
    /// Only this action [default: both]
    #[arg(long, value_name = "ACTION", value_enum)]
    action: Option<Access>,
    #[command(flatten)]
    file: ConfigFile,
    /// Print one line of JSON for each action
    #[arg(long)]
    json: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Access {
    Read,
    Write,
}

impl WhyArgs {
    pub(super) fn run(self, folder: Option<PathBuf>) -> Result<(), Failure> {
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let file = self.file.find_or_kept(folder, &eisen_dir);
        let layered = team_file::read(&file, &eisen_dir)?;
        let mut config = layered.config;
        branches::placed(&mut config);
        let agent = AgentId::new(self.agent.as_str());
        let actions = match self.action {
            Some(Access::Read) => &[Action::Read][..],
            Some(Access::Write) => &[Action::Write],
            None => &[Action::Read, Action::Write],
        };
        for action in actions {
            let why = config.why(&agent, &self.path, *action);
            let mut why = why.ok_or_else(|| no_agent(&config, &agent))?;
            grants::explain(&mut why, &config, &layered.overlay);
            if self.json {
                print(why.json())?;
            } else {
                why.to_string().lines().try_for_each(|line| print(plain(line)))?;
            }
        }
        Ok(())
    }
}

/// The error for an agent that a configuration does not have.
pub(super) fn no_agent(config: &Config, agent: &AgentId) -> Failure {
    let ids: Vec<&str> = config.agents.iter().map(|agent| agent.id.as_str()).collect();
    let ids = ids.join(", ");
    Failure::Usage(anyhow!("there is no agent {}; there are: {ids}", plain(agent.as_str())))
}
