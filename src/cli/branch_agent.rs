//! The agent of a branch, as a command can ask it for more: one of a running team, else that of the last run.

use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, anyhow};
use serde::Deserialize;

use super::output::note;
use super::team::failed;
use crate::branches::Reviewed;
use crate::home;
use crate::program::Failure;
use crate::runs::{RunState, find_run};
use crate::serve::client::{Connection, Target};
use crate::serve::live_teams;
use crate::wire::{Empty, TeamStatus};

/// The agent of a branch.
pub(super) enum BranchAgent {
    Member { team: Box<Connection>, id: String, is_running: bool },
    Run(LastRun),
}

impl BranchAgent {
    pub(super) async fn of(reviewed: &Reviewed) -> Result<Self, Failure> {
        if let Some(member) = member(&reviewed.tree.owner).await? {
            return Ok(member);
        }
        let last = reviewed.last_run.clone().ok_or_else(|| {
            Failure::Run(anyhow!("no run in this worktree is known whose agent could be asked"))
        })?;
        Ok(Self::Run(LastRun(Box::new(last))))
    }
}

/// The agent of a running team that owns a worktree; None: it does not run, or the agent left it.
async fn member(owner: &str) -> Result<Option<BranchAgent>, Failure> {
    let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
    let Some((team, agent)) = owner.split_once('/') else { return Ok(None) };
    let running = live_teams(&eisen_dir).unwrap_or_default();
    let Some(info) = running.into_iter().find(|info| info.team == team) else { return Ok(None) };
    let mut team = Connection::open(&Target::from(info)).await.map_err(failed)?;
    let report = team.call::<TeamStatus>(&Empty {}).await.map_err(failed)?;
    let row = report.agents.iter().find(|row| row.agent_id == agent);
    Ok(row.map(|row| BranchAgent::Member {
        team: Box::new(team),
        id: agent.to_owned(),
        is_running: row.running,
    }))
}

/// The newest run in the worktree of a branch.
pub(super) struct LastRun(Box<RunState>);

impl LastRun {
    /// Gives its agent a further prompt, by a run in its last session where the agent takes that up again, else in a new
    /// one. Returns whether that succeeded.
    /// `is_aside`: its answer goes to standard error.
    pub(super) fn again(
        &self,
        branch: &str,
        folder: &Path,
        prompt: &str,
        is_aside: bool,
    ) -> Result<bool, Failure> {
        let Self(last) = self;
        let program = std::env::current_exe().context("cannot find this program");
        let program = program.map_err(Failure::Run)?;
        let bounds = bounds_of(last)?;
        let ask = |goes_on: bool| {
            let mut command = Command::new(&program);
            command.args(["run", "--branch", branch]).args(&bounds).current_dir(folder);
            if is_aside {
                let aside = io::stderr().as_fd().try_clone_to_owned();
                let aside = aside.context("cannot start the run").map_err(Failure::Run)?;
                command.stdout(aside);
            }
            if goes_on {
                command.args(["--session", &last.id]).arg(prompt);
            } else if let Some(profile) = &last.profile {
                command.args(["--profile", profile]).arg(prompt);
            } else {
                command.arg(prompt).arg("--").args(&last.command);
            }
            command.status().context("cannot start the run").map_err(Failure::Run)
        };
        let first = if last.session_id.is_some() { Some(ask(true)?) } else { None };
        // Nothing was started: the agent takes no session up again.
        let is_new =
            first.is_none_or(|end| end.code().is_some_and(|code| NOT_STARTED.contains(&code)));
        if !is_new {
            return Ok(first.is_some_and(|end| end.success()));
        }
        note("it goes on in a new session");
        Ok(ask(false)?.success())
    }
}

/// Exit codes of a run that did not begin its turn.
const NOT_STARTED: [i32; 2] = [2, 125];

/// The zone in the configuration of a run.
#[derive(Deserialize)]
struct KeptTeam {
    agents: Vec<KeptAgent>,
}

#[derive(Deserialize)]
struct KeptAgent {
    #[serde(default)]
    zone: KeptZone,
}

#[derive(Default, Deserialize)]
struct KeptZone {
    #[serde(default)]
    allowed: Vec<String>,
    #[serde(default)]
    denied: Vec<String>,
}

/// The zone of a run, as arguments of another one: a further prompt opens nothing.
fn bounds_of(run: &RunState) -> Result<Vec<String>, Failure> {
    let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
    let kept = find_run(&eisen_dir, &run.id).map_err(|error| Failure::Run(error.into()))?;
    let text = std::fs::read_to_string(kept.config());
    let text = text.context("the last run's zone is not known").map_err(Failure::Run)?;
    let kept: KeptTeam = toml::from_str(&text).map_err(|error| Failure::Run(error.into()))?;
    let zone = kept.agents.into_iter().next().map(|agent| agent.zone).unwrap_or_default();
    // A dollar is written twice there.
    let plain = |list: Vec<String>| list.into_iter().map(|it| it.replace("$$", "$"));
    let allowed = plain(zone.allowed).flat_map(|it| ["--zone".to_owned(), it]);
    let denied = plain(zone.denied).flat_map(|it| ["--deny".to_owned(), it]);
    let model = run.model.iter().flat_map(|it| ["--model".to_owned(), it.clone()]);
    Ok(allowed.chain(denied).chain(model).collect())
}
