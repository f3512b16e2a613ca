//! `branches`: lists the branches of tasks, cleans their worktrees, and brings them back.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use anstyle::{AnsiColor, Style};
use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::json;

use super::Global;
use super::format::{bytes, counted};
use super::output::{note, plain, print};
use super::run::folder;
use super::table::{Cell, Table};
use crate::branches::{self, ListedBranch};
use crate::landing::Landings;
use crate::lifecycle::{self, Survey};
use crate::program::Failure;
use crate::recovery::{LeftOut, RecoveryError};
use crate::tree::WorktreeState;

/// Show how the branches of tasks stand, clean their worktrees, and bring them back
///
/// `run --branch` makes a worktree for a branch. STATE is `working` while a process is in it, `needs you` while its agent
/// waits for a decision, `stale` where the branch that
/// it began at has moved, `merged` where that one has all of it, else `ready`; `cleaned` is a worktree whose files are gone,
/// and can be restored. CONFLICTS names the branches that change the same lines, found without touching any of them.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  eisen-core branches
  eisen-core branches --json | jq -r '.[] | select(.conflicts != []) | .branch'
  eisen-core branches clean fix/cart     keep what is not committed, then remove the worktree
  eisen-core branches restore fix/cart   bring it back, exactly as it was

Exit codes: 0 done, 1 refused, 2 wrong usage."
)]
pub(super) struct BranchesGroup {
    #[command(subcommand)]
    part: Option<BranchesPart>,
    /// Print all that is known as JSON, of cleaned ones too
    #[arg(long)]
    json: bool,
    /// List those that are cleaned, too
    #[arg(short, long)]
    all: bool,
    /// Compare with this branch, in place of the one that each began at
    #[arg(long, value_name = "BRANCH")]
    into: Option<String>,
}

#[derive(Subcommand, Debug)]
enum BranchesPart {
    Clean(CleanArgs),
    Restore(RestoreArgs),
}

/// Remove the worktrees of branches, and lose nothing
///
/// First all that no commit has goes into a recovery below refs/eisen/trees. Left out are folders that builds fill and that
/// git ignores, copies that are as they came, and what was linked in: these are listed before it asks. A worktree that a
/// process is in stays. A branch that is merged goes too, any other stays.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core branches clean fix/cart
  eisen-core branches clean --merged --yes  all that are merged, without a question

Exit codes: 0 done, 1 refused: it stays as it is; 2 wrong usage.")]
struct CleanArgs {
    /// Branches whose worktrees are removed
    #[arg(value_name = "BRANCH", required_unless_present = "merged")]
    branches: Vec<String>,
    /// All whose commits are in the branch that they began at
    #[arg(long, conflicts_with = "branches")]
    merged: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Show what would be kept and left out, and change nothing
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
}

/// Bring a worktree back that was cleaned, with its branch and all its files
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core branches restore fix/cart

Exit codes: 0 done, 1 refused, 2 wrong usage.")]
struct RestoreArgs {
    /// The branch whose worktree comes back
    #[arg(value_name = "BRANCH")]
    branch: String,
}

impl BranchesGroup {
    pub(super) async fn run(self, global: &Global) -> Result<u8, Failure> {
        let folder = folder(global.cwd.as_deref()).map_err(Failure::Usage)?;
        match self.part {
            None => {
                let mut all = branches::list(&folder, self.into.as_deref())?;
                branches::ask_teams(&mut all, None).await;
                let is_any = !all.is_empty();
                list(all, self.all, self.json)?;
                let (repository, _) = branches::repository_of(&folder)?;
                if let (true, Err(why)) = (is_any, repository.merges_in_memory()) {
                    note(format_args!("CONFLICTS is empty: {}", plain(&why)));
                }
                Ok(0)
            }
            Some(BranchesPart::Clean(clean)) => clean.run(&folder),
            Some(BranchesPart::Restore(restore)) => restore.run(&folder),
        }
    }
}

fn list(mut all: Vec<ListedBranch>, all_too: bool, is_json: bool) -> Result<(), Failure> {
    let cleaned = all.iter().filter(|branch| branch.state == "cleaned").count();
    if !all_too && !is_json {
        all.retain(|branch| branch.state != "cleaned");
        if cleaned > 0 {
            note(format_args!("{cleaned} cleaned: --all lists them too"));
        }
    }
    if is_json {
        return print(json!(all));
    }
    if all.is_empty() && cleaned == 0 {
        note("there are no branches of tasks: `eisen-core run --branch NAME \"…\"` makes one");
        return Ok(());
    }
    if all.is_empty() {
        return Ok(());
    }
    let titles = [
        "BRANCH",
        "STATE",
        ">AHEAD",
        ">BEHIND",
        ">FILES",
        ">+",
        ">−",
        ">DISK",
        "CHECKS",
        "CONFLICTS",
        "TASK",
    ];
    let mut table = Table::new(&titles);
    for branch in &all {
        table.row(row(branch));
    }
    print(table.lines(None).join("\n"))?;
    for branch in all.iter().filter(|branch| branch.trouble.is_some()) {
        let why = branch.trouble.as_deref().unwrap_or_default();
        note(format_args!("{}: {}", plain(&branch.branch), plain(why)));
    }
    Ok(())
}

/// Letters of a task that are shown.
const LONGEST_TASK: usize = 60;

fn row(branch: &ListedBranch) -> Vec<Cell> {
    let number = |number: Option<u64>| number.map_or("-".to_owned(), |it| it.to_string());
    let stands = branch.standing.as_ref();
    let conflicts: Vec<_> = branch.conflicts.iter().map(|conflict| plain(&conflict.with)).collect();
    let uncommitted = stands.map_or(0, |stands| stands.uncommitted);
    let state = match (branch.state, uncommitted) {
        ("needs_you", _) => "needs you".to_owned(),
        ("working", _) => {
            let names: Vec<_> = branch.processes.iter().map(|it| it.name.as_str()).collect();
            format!("working ({})", plain(names.first().copied().unwrap_or_default()))
        }
        (state, 0) => state.to_owned(),
        (state, count) => format!("{state}, {count} not committed"),
    };
    let color = match branch.state {
        "working" => AnsiColor::Cyan.on_default(),
        "merged" => AnsiColor::Green.on_default(),
        "stale" | "needs_you" => AnsiColor::Yellow.on_default(),
        "broken" | "missing" => AnsiColor::Red.on_default(),
        _ => Style::new(),
    };
    let (checks, of_checks) = match &branch.checks {
        None => ("", Style::new()),
        Some(end) if !end.is_current => ("older", Style::new()),
        Some(end) if end.passed => ("passed", AnsiColor::Green.on_default()),
        Some(_) => ("failed", AnsiColor::Red.on_default()),
    };
    vec![
        plain(&branch.branch).into(),
        Cell::styled(&state, color),
        number(stands.map(|it| it.ahead)).into(),
        number(stands.map(|it| it.behind)).into(),
        number(stands.map(|it| it.diff.files)).into(),
        number(stands.map(|it| it.diff.added)).into(),
        number(stands.map(|it| it.diff.removed)).into(),
        bytes(branch.disk_bytes).into(),
        Cell::styled(checks, of_checks),
        Cell::styled(&conflicts.join(", "), AnsiColor::Red.on_default()),
        plain(
            &branch
                .task
                .as_deref()
                .unwrap_or_default()
                .chars()
                .take(LONGEST_TASK)
                .collect::<String>(),
        )
        .into(),
    ]
}

impl CleanArgs {
    fn run(self, folder: &Path) -> Result<u8, Failure> {
        let (repository, trees) = branches::repository_of(folder)?;
        let names = if self.merged {
            let all = branches::list(folder, None)?;
            let merged = all.into_iter().filter(|branch| {
                let stands = branch.standing.as_ref();
                branch.state != "cleaned"
                    && stands.is_some_and(|it| it.is_merged && it.uncommitted == 0)
            });
            merged.map(|branch| branch.branch).collect()
        } else {
            self.branches.clone()
        };
        if names.is_empty() {
            note("there is no worktree of a merged branch");
        }
        let eisen_dir = crate::home::eisen_dir().map_err(Failure::Usage)?;
        let landings = Landings::known(&eisen_dir, &repository);
        let mut code = 0;
        for name in names {
            let tip = repository.tip(&name);
            let is_landed = landings.iter().any(|it| Some(&it.tip) == tip.as_ref());
            let held =
                trees.hold(&repository, &name).map_err(|error| Failure::Run(error.into()))?;
            if held.as_ref().is_some_and(|held| held.tree.state == WorktreeState::Gone) {
                let name = plain(&name);
                note(format_args!(
                    "{name} is cleaned already: `eisen-core branches restore {name}` brings it back"
                ));
                continue;
            }
            let held =
                held.filter(|held| held.tree.state == WorktreeState::Ready).ok_or_else(|| {
                    let known: Vec<_> =
                        trees.of(&repository).into_iter().map(|it| it.branch).collect();
                    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                    Failure::Usage(anyhow!("no worktree of `{name}` is there; known are: {known}"))
                })?;
            let survey =
                lifecycle::survey(&held.tree).map_err(|error| Failure::Run(error.into()))?;
            tell(&held.tree.path, &survey, is_landed);
            if self.dry_run {
                continue;
            }
            if !survey.occupants.is_empty() {
                // The next ones are cleaned all the same.
                note(RecoveryError::Occupied(survey.occupants));
                code = 1;
                continue;
            }
            if !self.yes && !confirmed(&held.tree.path)? {
                note("nothing was changed");
                return Ok(1);
            }
            let cleaned =
                lifecycle::clean(held, is_landed).map_err(|error| Failure::Run(error.into()))?;
            let tree = &cleaned.tree;
            if survey.is_missing {
                print(format_args!("{} is given up", plain(&tree.path.to_string_lossy())))?;
                continue;
            }
            let what =
                if cleaned.branch_gone { " and its branch, whose commits others have" } else { "" };
            print(format_args!("removed {}{what}", plain(&tree.path.to_string_lossy())))?;
            note(format_args!(
                "kept in {}: `eisen-core branches restore {}` brings it back",
                tree.recovery.as_deref().unwrap_or_default(),
                plain(&name)
            ));
        }
        Ok(code)
    }
}

/// Says what would be kept, and lists what would not.
fn tell(path: &Path, survey: &Survey, is_landed: bool) {
    let kept = match survey.files {
        _ if survey.is_missing => "it is not there. If you moved it, `git worktree repair NEW_PLACE` has it known again; else it is given up, with what was not committed".to_owned(),
        0 if survey.deleted > 0 => {
            let files = counted(survey.deleted as u64, "deleted file");
            format!("kept: {files}, which a commit has")
        }
        0 => "all of it is committed".to_owned(),
        1 => format!("1 file that no commit has is kept ({})", bytes(survey.bytes)),
        files => format!("{files} files that no commit has are kept ({})", bytes(survey.bytes)),
    };
    note(format_args!("{}: {kept}", plain(&path.to_string_lossy())));
    for LeftOut { path, bytes: size, why } in &survey.left_out {
        note(format_args!("  not kept: {} ({}, {})", plain(path), bytes(*size), why.as_str()));
    }
    if survey.unmerged > 0 && !is_landed {
        let commits = counted(survey.unmerged as u64, "commit");
        note(format_args!("  {commits} that no other branch has: the branch stays"));
    }
}

fn confirmed(path: &Path) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::Usage(anyhow!("--yes is needed where nobody can be asked")));
    }
    let mut answer = String::new();
    let asked = write!(io::stderr(), "Remove {}? [y/N] ", path.display())
        .and_then(|()| io::stdin().lock().read_line(&mut answer));
    asked.map_err(|error| Failure::Run(error.into()))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

impl RestoreArgs {
    fn run(&self, folder: &Path) -> Result<u8, Failure> {
        let (repository, trees) = branches::repository_of(folder)?;
        let back = lifecycle::restore(&trees, &repository, &self.branch);
        let back = back.map_err(|error| Failure::Run(error.into()))?;
        print(plain(&back.held.tree.path.to_string_lossy()))?;
        for sentence in back.notes {
            note(plain(&sentence));
        }
        Ok(0)
    }
}
