//! `review`: a person looks at a branch of a task, hunk by hunk, and says what they think of it.

mod screen;
mod shown;

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::Global;
use super::format::counted;
use super::output::{is_terminal, note, plain, print};
use super::run::folder;
use crate::branches::{self, Reviewed};
use crate::home;
use crate::program::Failure;
use crate::runs::{RunState, find_run};
use crate::serve::client::{Connection, Target};
use crate::serve::live_teams;
use crate::team_file;
use crate::wire::{CommentHunk, CommentParams, GetReview, GetReviewParams};

/// Look at a branch of a task, hunk by hunk, before it lands
///
/// Shows all that the branch changes, committed or not, with the turn and the prompt behind each hunk. On a terminal it opens
/// a screen: j and k move, a accepts, x takes back, c comments, s sends the comments to the agent, t runs the checks, q
/// leaves. What came since the last look is marked. Comments go to the agent as one prompt; its answer is the next round.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core review fix/cart
  eisen-core review fix/cart --json | jq -r '.files[].path'
  eisen-core review fix/cart --revert 3fa8b2c1
  eisen-core review fix/cart --comment 3fa8b2c1 \"Round to cents\" --send
  eisen-core review fix/cart --test

Exit codes: 0 done, 1 refused or a check failed, 2 wrong usage.")]
pub(super) struct ReviewArgs {
    /// The branch [default: that of the worktree here, or the only one]
    #[arg(value_name = "BRANCH")]
    branch: Option<String>,
    /// Compare with this branch, in place of the one that it began at
    #[arg(long, value_name = "BRANCH")]
    into: Option<String>,
    /// Accept a hunk, by its id or the beginning of it, or all of a file (repeatable)
    #[arg(long, value_name = "HUNK")]
    accept: Vec<String>,
    /// Take a hunk back in the worktree, or all of a file (repeatable)
    #[arg(long, value_name = "HUNK")]
    revert: Vec<String>,
    /// Comment on a hunk (repeatable)
    #[arg(long, num_args = 2, value_names = ["HUNK", "TEXT"])]
    comment: Vec<String>,
    /// Send the comments to the agent, as one prompt
    #[arg(long)]
    send: bool,
    /// Run the checks of `[worktree]` in the worktree
    #[arg(long)]
    test: bool,
    /// Print all of it as JSON
    #[arg(long)]
    json: bool,
}

impl ReviewArgs {
    pub(super) async fn run(self, global: &Global) -> Result<u8, Failure> {
        let folder = folder(global.cwd.as_deref()).map_err(Failure::Usage)?;
        let look = || branches::reviewed(&folder, self.branch.as_deref(), self.into.as_deref());
        let mut reviewed = look()?;
        let does = !(self.accept.is_empty() && self.revert.is_empty() && self.comment.is_empty());
        for word in &self.accept {
            reviewed.accept(word)?;
        }
        for pair in self.comment.chunks(2) {
            let [id, text] = pair else { continue };
            reviewed.comment(id, text)?;
        }
        for word in &self.revert {
            for place in reviewed.revert(word)? {
                note(format_args!("taken back in {}", plain(&place.to_string_lossy())));
            }
        }
        if !self.revert.is_empty() {
            reviewed = look()?;
        }
        if self.test {
            let shared = team_file::shared_config(&folder)?;
            let passed = reviewed.check(&shared, &mut |line| note(plain(line))).await?;
            note(match passed {
                0 => "there are no checks: `[worktree] checks` names them".to_owned(),
                passed => format!("{} passed", counted(passed as u64, "check")),
            });
        }
        if self.send {
            send(&mut reviewed, &folder).await?;
        } else if self.json {
            print(json!(reviewed.review))?;
            reviewed.looked()?;
        } else if !does && !self.test {
            if is_terminal() && screen::is_possible() {
                return screen::show(reviewed, &folder, self.into.as_deref()).await;
            }
            shown::print_all(&reviewed)?;
            reviewed.looked()?;
        }
        Ok(0)
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

/// The zone of a run, as arguments of another one: comments open nothing.
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

/// Gives the comments to the agent of a running team that works on the branch; false: there is none.
async fn send_to_team(reviewed: &Reviewed) -> Result<bool, Failure> {
    let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
    let Some((team, agent)) = reviewed.tree.owner.split_once('/') else { return Ok(false) };
    let running = live_teams(&eisen_dir).unwrap_or_default();
    let Some(info) = running.into_iter().find(|info| info.team == team) else { return Ok(false) };
    let mut team = Connection::open(&Target::from(info)).await.map_err(super::team::failed)?;
    let branch = reviewed.tree.branch.clone();
    let look = GetReviewParams { branch: branch.clone(), into: None, looked: false };
    let found = team.call::<GetReview>(&look).await.map_err(super::team::failed)?;
    if found.agent_id.is_none() {
        // It left the team.
        return Ok(false);
    }
    let params = CommentParams { branch, hunk: None, text: None, send: true };
    team.call::<CommentHunk>(&params).await.map_err(super::team::failed)?;
    note(format_args!("`{}` gets them as its next prompt", plain(agent)));
    Ok(true)
}

/// Gives the comments to the agent: as a prompt where it is one of a running team, else as a run in the worktree, in its
/// last session where it takes that up again, else in a new one.
async fn send(reviewed: &mut Reviewed, folder: &Path) -> Result<(), Failure> {
    let Some(prompt) = reviewed.notes.prompt() else {
        note("there is no comment that the agent has not got");
        return Ok(());
    };
    if send_to_team(reviewed).await? {
        return Ok(());
    }
    let last = reviewed.last_run.clone().ok_or_else(|| {
        Failure::Run(anyhow!("no run in this worktree is known whose agent could be asked"))
    })?;
    reviewed.looked()?;
    let program = std::env::current_exe().context("cannot find this program");
    let program = program.map_err(Failure::Run)?;
    let bounds = bounds_of(&last)?;
    let ask = |goes_on: bool| {
        let mut command = Command::new(&program);
        command.args(["run", "--branch", &reviewed.tree.branch]).args(&bounds).current_dir(folder);
        if goes_on {
            command.args(["--session", &last.id]).arg(&prompt);
        } else if let Some(profile) = &last.profile {
            command.args(["--profile", profile]).arg(&prompt);
        } else {
            command.arg(&prompt).arg("--").args(&last.command);
        }
        command.status().context("cannot start the run").map_err(Failure::Run)
    };
    let first = if last.session_id.is_some() { Some(ask(true)?) } else { None };
    // Nothing was started: the agent takes no session up again.
    let is_new = first.is_none_or(|end| end.code().is_some_and(|code| NOT_STARTED.contains(&code)));
    let done = if is_new {
        note("it goes on in a new session");
        ask(false)?.success()
    } else {
        first.is_some_and(|end| end.success())
    };
    if !done {
        return Err(Failure::Run(anyhow!("the run did not succeed; the comments are kept")));
    }
    reviewed.notes.sent();
    reviewed.keep()
}
