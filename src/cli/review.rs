//! `review`: a person looks at a branch of a task, hunk by hunk, and says what they think of it.

mod screen;
mod shown;

use std::path::Path;

use anyhow::anyhow;
use clap::Args;
use serde_json::json;

use super::Global;
use super::branch_agent::BranchAgent;
use super::format::counted;
use super::output::{is_terminal, note, plain, print};
use super::run::folder;
use crate::branches::{self, Reviewed};
use crate::program::Failure;
use crate::team_file;
use crate::wire::{CommentHunk, CommentParams};

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

/// Gives the comments to the agent of the branch.
async fn send(reviewed: &mut Reviewed, folder: &Path) -> Result<(), Failure> {
    let Some(prompt) = reviewed.notes.prompt() else {
        note("there is no comment that the agent has not got");
        return Ok(());
    };
    match BranchAgent::of(reviewed).await? {
        BranchAgent::Member { mut team, id, .. } => {
            let branch = reviewed.tree.branch.clone();
            let params = CommentParams { branch, hunk: None, text: None, send: true };
            team.call::<CommentHunk>(&params).await.map_err(super::team::failed)?;
            note(format_args!("`{}` gets them as its next prompt", plain(&id)));
            Ok(())
        }
        BranchAgent::Run(last) => {
            reviewed.looked()?;
            let told = reviewed.notes.comments.clone();
            if !last.again(&reviewed.tree.branch, folder, &prompt, false)? {
                return Err(Failure::Run(anyhow!(
                    "the run did not succeed; the comments are kept"
                )));
            }
            reviewed.note(|notes| {
                notes.sent(&told);
                Ok(())
            })
        }
    }
}
