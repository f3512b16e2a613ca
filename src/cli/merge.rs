//! `merge`: merges branches of tasks, one after the other, each checked on top of the last.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use serde_json::json;

use super::Global;
use super::branch_agent::BranchAgent;
use super::columns::cut;
use super::format::counted;
use super::output::{note, plain, print};
use super::run::folder;
use super::team::failed;
use crate::branches::{self, BranchWork, ListedBranch, MergeNews, MergeOptions, Merged};
use crate::config::SharedConfig;
use crate::landing::{LandingError, MergeWay};
use crate::lifecycle;
use crate::model::one_line;
use crate::program::Failure;
use crate::providers::withdraw_keys;
use crate::team_file;
use crate::tree::{HeldWorktree, WorktreeState};
use crate::wire::{DelegateParams, DelegateTask};

/// Merge branches of tasks
///
/// A branch is merged in memory first: where it conflicts, nothing moves. Then the checks of `[worktree]` run on what comes
/// out, in a worktree of their own. Then the target moves, if it is where it was; a worktree that has it checked out is
/// brought along, and has to be clean for that. Several branches land one by one, each on top of the last; the first that
/// fails ends it. A trailer of the commit names the agent and the task.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core merge fix/cart
  eisen-core merge fix/cart --squash --message \"Fix the rounding of totals\" --rm
  eisen-core merge --all                    all branches of tasks, those with the fewest conflicts first
  eisen-core merge fix/cart --send          a conflict goes to its agent, as a task with both sides
  eisen-core merge --undo fix/cart          take its merge back, while nothing was built on it
  eisen-core merge --pr fix/cart            push it, and open a pull request by `gh`

Exit codes: 0 done, 1 refused: what is named has not moved; 2 wrong usage.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct MergeArgs {
    /// Branches, in the order in which they land
    #[arg(value_name = "BRANCH", required_unless_present = "all")]
    branches: Vec<String>,
    /// All branches of tasks that have commits
    #[arg(long, conflicts_with_all = ["branches", "undo", "pr"])]
    all: bool,
    /// The branch that moves [default: the one that the branch began at]
    #[arg(long, value_name = "BRANCH")]
    into: Option<String>,
    /// A commit with both as its parents; this is the default
    #[arg(long, conflicts_with_all = ["squash", "rebase"])]
    merge: bool,
    /// One commit with all changes
    #[arg(long, conflicts_with = "rebase")]
    squash: bool,
    /// Each commit again, behind those of the target
    #[arg(long)]
    rebase: bool,
    /// Text of the commit
    #[arg(short, long, value_name = "TEXT", conflicts_with = "rebase")]
    message: Option<String>,
    /// Commit first what is not committed in the worktree, as the task
    #[arg(long)]
    commit: bool,
    /// Where it conflicts, begin the opposite merge in its worktree, and have its agent settle that
    #[arg(long, conflicts_with_all = ["undo", "pr", "rebase"])]
    send: bool,
    /// Clean the worktree after the merge, as `branches clean` does
    #[arg(long)]
    rm: bool,
    /// Take the newest merge of the branch back
    #[arg(long, conflicts_with_all = ["squash", "rebase", "message", "commit", "rm", "pr", "into"])]
    undo: bool,
    /// Push the branch, and open a pull request by `gh`, in place of a merge
    #[arg(long, conflicts_with_all = ["squash", "rebase", "rm"])]
    pr: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

impl MergeArgs {
    pub(super) async fn run(self, global: &Global) -> Result<u8, Failure> {
        let folder = folder(global.cwd.as_deref()).map_err(Failure::Usage)?;
        let shared = team_file::shared_config(&folder)?;
        // Its checks run what agents wrote.
        withdraw_keys(&shared)?;
        let names = if self.all { in_order(&folder, self.commit)? } else { self.branches.clone() };
        if names.is_empty() {
            note("no branch of a task has commits to merge");
        }
        let mut done = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let outcome = self.one(&folder, &shared, name).await;
            match outcome {
                Ok(merged) => done.extend(merged),
                Err(failure) => {
                    let rest = &names[at + 1..];
                    if !rest.is_empty() {
                        note(format_args!("not tried: {}", plain(&rest.join(", "))));
                    }
                    if self.json {
                        print(json!(done))?;
                    }
                    return Err(failure);
                }
            }
        }
        if self.json {
            print(json!(done))?;
        }
        Ok(0)
    }

    async fn one(
        &self,
        folder: &Path,
        shared: &SharedConfig,
        branch: &str,
    ) -> Result<Option<serde_json::Value>, Failure> {
        if self.undo {
            let landing = branches::undo_merge(folder, branch)?;
            if !self.json {
                let (into, old) = (plain(&landing.into), short(&landing.old));
                print(format_args!("{into} is at {old} again, as before {}", plain(branch)))?;
            }
            return Ok(Some(json!(landing)));
        }
        if self.commit && branches::commit_all(folder, branch, self.message.as_deref(), None)? {
            note(format_args!("committed what was not committed on {}", plain(branch)));
        }
        if self.pr {
            let text = self.message.as_deref();
            let opened = pull_request(folder, branch, self.into.as_deref(), text);
            let (into, link) = opened.map_err(Failure::Run)?;
            if !self.json {
                print(plain(&link))?;
            }
            return Ok(Some(json!({ "branch": branch, "into": into, "link": link })));
        }
        let way = match (self.squash, self.rebase) {
            (true, _) => MergeWay::Squash,
            (_, true) => MergeWay::Rebase,
            _ => MergeWay::Merge,
        };
        let options = MergeOptions {
            folder: folder.to_owned(),
            branch: branch.to_owned(),
            into: self.into.clone(),
            way,
            message: self.message.clone(),
            looked_at: None,
        };
        let mut said = |news: MergeNews<'_>| match news {
            MergeNews::Check(command) => note(format_args!("$ {}", plain(command))),
            MergeNews::Output(line) => note(format_args!("  {}", plain(line))),
        };
        let mut merged = branches::merge(&options, shared, &mut said).await;
        if self.send
            && let Err(failure) = &merged
            && let Some(LandingError::Conflicts { into, .. }) = failure.error().downcast_ref()
        {
            let into = into.clone();
            note(format_args!("{:#}", failure.error()));
            if let Some(task) = send_conflict(folder, branch, &into, self.json).await? {
                return Err(Failure::Run(anyhow!("merge `{branch}` again when {task} is done")));
            }
            branches::commit_all(folder, branch, None, None)?;
            merged = branches::merge(&options, shared, &mut said).await;
        }
        let Merged { landing, checks } = merged?;
        if !self.json {
            let checked = match checks {
                0 => String::new(),
                count => format!(", {} passed", counted(count as u64, "check")),
            };
            print(format_args!(
                "merged {} into {} ({} to {}{checked})",
                plain(branch),
                plain(&landing.into),
                short(&landing.old),
                short(&landing.new)
            ))?;
        }
        if self.rm
            && let Err(failure) = remove(folder, branch)
        {
            // The merge is made.
            note(format_args!("its worktree stays: {:#}", failure.error()));
        }
        Ok(Some(json!(landing)))
    }
}

/// Has the agent of a branch settle a conflict. Returns the task of a team's agent; None: a run has done it.
/// `is_json`: standard output is for the results alone.
async fn send_conflict(
    folder: &Path,
    branch: &str,
    into: &str,
    is_json: bool,
) -> Result<Option<String>, Failure> {
    let reviewed = branches::reviewed(folder, Some(branch), Some(into))?;
    let agent = BranchAgent::of(&reviewed).await?;
    if let BranchAgent::Member { id, is_running: true, .. } = &agent {
        return Err(Failure::Run(anyhow!(
            "`{id}` works in the worktree: merge again when its turn has ended"
        )));
    }
    let is_held = matches!(agent, BranchAgent::Member { .. });
    let conflict = branches::begin_conflict(folder, branch, into, is_held)?;
    let sent = match agent {
        BranchAgent::Member { mut team, id, .. } => {
            let params = DelegateParams {
                agent: id.clone().into(),
                task: conflict.prompt.clone(),
                files: Vec::new(),
                branch: None,
                key: None,
            };
            let given = team.call::<DelegateTask>(&params).await.map_err(failed);
            given.map(|given| Some(format!("task {} of `{id}`", given.id)))
        }
        BranchAgent::Run(last) => match last.again(branch, folder, &conflict.prompt, is_json) {
            Ok(true) => Ok(None),
            Ok(false) => {
                let place = reviewed.tree.path.display();
                return Err(Failure::Run(anyhow!(
                    "the run did not succeed. The merge in {place} is as it left it: settle it there, or `git -C {place} merge --abort`"
                )));
            }
            Err(failure) => Err(failure),
        },
    };
    if sent.is_err() {
        conflict.take_back();
    }
    sent
}

fn short(commit: &str) -> &str {
    &commit[..commit.len().min(12)]
}

/// The branches that have commits, those with the fewest conflicts first, then the oldest.
fn in_order(folder: &Path, commits: bool) -> Result<Vec<String>, Failure> {
    let mut all = branches::list(folder, None)?;
    all.retain(|branch| {
        let stands = branch.standing.as_ref();
        stands.is_some_and(|it| it.ahead > 0 && !it.is_merged || commits && it.uncommitted > 0)
    });
    all.sort_by_key(|branch| (branch.conflicts.len(), branch.made_at_ms));
    Ok(all.into_iter().map(|branch| branch.branch).collect())
}

fn remove(folder: &Path, branch: &str) -> Result<(), Failure> {
    let (repository, trees) = branches::repository_of(folder)?;
    let held = trees.hold(&repository, branch).map_err(|error| Failure::Run(error.into()))?;
    let is_there = |held: &HeldWorktree| held.tree.state == WorktreeState::Ready;
    let Some(held) = held.filter(is_there) else { return Ok(()) };
    let cleaned = lifecycle::clean(held, true).map_err(|error| Failure::Run(error.into()))?;
    for left in &cleaned.left_out {
        note(format_args!("not kept: {} ({})", plain(&left.path), left.why.as_str()));
    }
    note(format_args!("removed {}", plain(&cleaned.tree.path.to_string_lossy())));
    Ok(())
}

/// Pushes a branch, and opens a pull request with the person's own login. Returns its target and its link.
fn pull_request(
    folder: &Path,
    branch: &str,
    into: Option<&str>,
    text: Option<&str>,
) -> anyhow::Result<(Option<String>, String)> {
    let listed =
        branches::list(folder, into).map_err(|failure| anyhow!("{:#}", failure.error()))?;
    let listed = listed.into_iter().find(|it| it.branch == branch);
    let (repository, _) =
        branches::repository_of(folder).map_err(|failure| anyhow!("{:#}", failure.error()))?;
    // A name with a pattern would push more than one.
    if repository.tip(branch).is_none() {
        bail!("there is no branch `{branch}`");
    }
    let into = into.map(str::to_owned);
    let into = into.or_else(|| listed.as_ref()?.standing.as_ref()?.into.clone());
    if let Some(stands) = listed.as_ref().and_then(|listed| listed.standing.as_ref()) {
        if stands.uncommitted > 0 {
            let files = counted(stands.uncommitted, "file");
            bail!("not committed: {files}; `--commit` commits all of it");
        }
        if stands.ahead == 0 || stands.is_merged {
            bail!("`{branch}` has nothing that its target lacks");
        }
    }
    let gh =
        Command::new("gh").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    gh.context("cannot start `gh`: install it, or open the request by hand")?;
    let top = repository.main().unwrap_or_else(|| repository.common()).to_owned();
    let pushed = Command::new("git")
        .args(["push", "--set-upstream", "origin"])
        .arg(format!("refs/heads/{branch}:refs/heads/{branch}"))
        .current_dir(&top)
        // Standard output gets the link alone.
        .stdout(Stdio::null())
        .status()
        .context("cannot start git")?;
    if !pushed.success() {
        bail!("`{branch}` could not be pushed to `origin`");
    }
    let task = listed.as_ref().and_then(|listed| listed.task.clone());
    let title =
        text.and_then(|text| text.lines().next()).map(str::to_owned).or_else(|| task.clone());
    let title = title.unwrap_or_else(|| branch.to_owned());
    let work = branches::reviewed(folder, Some(branch), into.as_deref());
    let work = work.map(|reviewed| reviewed.work()).ok();
    let body = body(&top, branch, into.as_deref(), listed.as_ref(), work.as_ref());
    let mut open = Command::new("gh");
    open.args(["pr", "create", "--head", branch, "--title", title.trim(), "--body-file", "-"]);
    if let Some(into) = &into {
        open.args(["--base", into]);
    }
    open.current_dir(&top).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut opened =
        open.spawn().context("cannot start `gh`: install it, or open the request by hand")?;
    if let Some(mut stdin) = opened.stdin.take() {
        // One that ends early says why by its exit code.
        let _ = stdin.write_all(body.as_bytes());
    }
    let opened = opened.wait_with_output()?;
    let link = String::from_utf8_lossy(&opened.stdout).trim().to_owned();
    if !opened.status.success() {
        bail!("`gh pr create` failed; the branch is pushed");
    }
    Ok((into, link))
}

/// Prompts and refusals that a pull request lists, and letters of one.
const MOST_LISTED: usize = 20;
const LONGEST_LISTED: usize = 200;

/// The first line of a text that an agent or a person wrote, in which nothing names a person or closes an issue.
fn as_code(text: &str) -> String {
    format!("`{}`", cut(&one_line(text).replace('`', "'"), LONGEST_LISTED))
}

/// Adds what was done on a branch: its turns, its checks, and what was refused.
fn add_work(body: &mut String, listed: &ListedBranch, work: &BranchWork) {
    let more = |body: &mut String, all: usize, listed: usize| {
        if all > listed {
            let _ = writeln!(body, "- … and {} more", all - listed);
        }
    };
    let _ = write!(body, "\n**Turns:** {}\n\n", work.turns);
    let shown = work.prompts.iter().take(MOST_LISTED);
    for prompt in shown.clone() {
        let _ = writeln!(body, "- {}", as_code(prompt));
    }
    more(body, work.turns, shown.len());
    let checks = match &listed.checks {
        None => "did not run",
        Some(checks) if !checks.is_current => "ran on an earlier commit",
        Some(checks) if checks.passed => "passed",
        Some(_) => "failed",
    };
    let _ = write!(body, "\n**Checks:** {checks}\n\n**Refused:** ");
    if work.refused.is_empty() {
        body.push_str("nothing\n");
        return;
    }
    let _ = write!(body, "{}\n\n", counted(work.refused.len() as u64, "path"));
    for (access, times) in work.refused.iter().take(MOST_LISTED) {
        let times = if *times > 1 { format!(" ×{times}") } else { String::new() };
        let _ = writeln!(body, "- {}{times}", as_code(access));
    }
    more(body, work.refused.len(), MOST_LISTED);
}

/// The text of a pull request: the task, the commits, what the branch changes, and how that was done.
fn body(
    top: &Path,
    branch: &str,
    into: Option<&str>,
    listed: Option<&ListedBranch>,
    work: Option<&BranchWork>,
) -> String {
    let mut body = String::new();
    if let Some(task) = listed.and_then(|listed| listed.task.as_deref()) {
        let _ = write!(body, "**Task:** {task}\n\n");
    }
    if let Some(into) = into {
        let range = format!("{into}..{branch}");
        let log = Command::new("git")
            .args(["log", "--reverse", "--format=- %s", &range, "--"])
            .current_dir(top)
            .output();
        if let Ok(log) = log {
            let commits = String::from_utf8_lossy(&log.stdout);
            let _ = write!(body, "**Commits:**\n\n{commits}\n");
        }
    }
    if let Some(stands) = listed.and_then(|listed| listed.standing.as_ref()) {
        let diff = stands.diff;
        let files = counted(diff.files, "file");
        let _ = writeln!(body, "{files} changed, +{} −{}.", diff.added, diff.removed);
    }
    if let Some(listed) = listed {
        if let Some(work) = work {
            add_work(&mut body, listed, work);
        }
        let _ = write!(body, "\nEisen-Agent: {}\n", listed.owner);
    }
    body
}
