//! `check`: validates and explains a configuration.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use super::config_file::ConfigFile;
use super::why::no_agent;
use super::{help, output};
use crate::access::{grants, route};
use crate::config;
use crate::home;
use crate::model::{Action, AgentId, Via};
use crate::program::Failure;
use crate::team_file;
use crate::team_state::tool_lines;
use crate::{app, kernel};

/// Validate a configuration and explain it, without starting anything
#[derive(Args, Debug)]
#[command(after_help = help::CHECK)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    file: ConfigFile,
    /// Show instead what becomes of an access to this path: the zone, and the rule of `[[routing]]`
    #[arg(long, value_name = "PATH", requires = "agent")]
    path: Option<PathBuf>,
    /// With `--path`: the id of the agent
    #[arg(long, value_name = "ID", requires = "path")]
    agent: Option<String>,
    /// With `--path`: only this action [default: both]
    #[arg(long, value_name = "ACTION", requires = "path", value_parser = Action::ALL.map(Action::as_str))]
    action: Option<String>,
    /// With `--path`: only this way of the access [default: all but `tool`]
    #[arg(long, value_name = "VIA", requires = "path", value_parser = Via::ALL.map(Via::as_str))]
    via: Option<String>,
    /// With `--path`: print one line of JSON for each action
    #[arg(long, requires = "path")]
    json: bool,
}

impl CheckArgs {
    pub(super) fn run(self, cwd: Option<PathBuf>) -> Result<(), Failure> {
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let file = self.file.find_or_make(cwd, &eisen_dir, &[])?;
        if let (Some(path), Some(agent)) = (&self.path, &self.agent) {
            return self.route(&file, &eisen_dir, path, &AgentId::new(agent.as_str()));
        }
        let layered = team_file::load(&file, &eisen_dir)?;
        let mut progress = progress();
        let limits = app::limit_enforcement();
        let mut hints = team_file::hints(&layered.config, &eisen_dir);
        hints.extend(app::journal_hint(&layered.config, &eisen_dir));
        let kernel = kernel::kernel();
        let mut report =
            config::check::check(&layered.config, &kernel, limits, hints, &mut progress);
        progress(0);
        report.add_kept(&layered);
        report.add_grants(&grants::of_config(&layered.config, &layered.overlay));
        report.add_tools(&tool_lines(&layered.config, &eisen_dir));
        report.add_journal(app::journal_line(&layered.config, &eisen_dir));
        output::print(output::escape_controls(&report.to_string()))
    }
}

impl CheckArgs {
    /// Shows what becomes of an access.
    fn route(
        &self,
        file: &Path,
        eisen_dir: &Path,
        path: &Path,
        agent: &AgentId,
    ) -> Result<(), Failure> {
        let config = team_file::read(file, eisen_dir)?.config;
        let via =
            self.via.as_ref().and_then(|name| Via::ALL.into_iter().find(|it| it.as_str() == name));
        let is_asked =
            |action: &Action| self.action.as_ref().is_none_or(|it| action.as_str() == it);
        for action in Action::ALL.into_iter().filter(is_asked) {
            let route = route(&config, agent, path, action, via).map_err(Failure::Usage)?;
            let route = route.ok_or_else(|| no_agent(&config, agent))?;
            if self.json {
                output::print(route.json())?;
            } else {
                route
                    .to_string()
                    .lines()
                    .try_for_each(|line| output::print(output::plain(line)))?;
            }
        }
        Ok(())
    }
}

/// Shows the number of files seen on a terminal, after the first second; 0 clears the line.
fn progress() -> impl FnMut(u64) {
    use std::io::IsTerminal;
    let (start, terminal) = (std::time::Instant::now(), std::io::stderr().is_terminal());
    move |files| {
        if terminal && start.elapsed().as_secs() >= 1 {
            let count = if files == 0 { String::new() } else { format!("{files} files …") };
            let _ = write!(std::io::stderr(), "\r\x1b[K{count}");
        }
    }
}
