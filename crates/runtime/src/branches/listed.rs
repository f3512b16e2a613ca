//! How the branches of tasks stand: to the branch that they began at, and to one another.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::repository_of;
use super::reviewed::last_checks;
use crate::home::environment;
use crate::landing::{Landing, Landings, between};
use crate::lifecycle::OF_CHECKS;
use crate::program::Failure;
use crate::repository::GitRepository;
use crate::tree::{
    BranchStanding, Occupant, Worktree, WorktreeState, Worktrees, is_below, occupants, standing,
};

/// Branches past which they are not compared with one another.
const MOST_COMPARED: usize = 50;

/// How long the size of a worktree is taken as it was.
const SIZE_LASTS: Duration = Duration::from_secs(60);

/// A branch of a task.
#[derive(Clone, Debug, Serialize)]
pub struct ListedBranch {
    pub branch: String,
    pub path: PathBuf,
    /// `working`, `needs_you`, `ready`, `merged`, `stale`, `cleaned`, `missing` or `broken`.
    pub state: &'static str,
    pub owner: String,
    pub task: Option<String>,
    #[serde(flatten)]
    pub standing: Option<BranchStanding>,
    /// Whom it cannot be merged with, and in which files.
    pub conflicts: Vec<Conflict>,
    pub processes: Vec<NamedProcess>,
    /// How the checks ended the last time; None: they did not run.
    pub checks: Option<ListedChecks>,
    /// Bytes on the disk; content that it shares with others counts too.
    pub disk_bytes: u64,
    pub made_at_ms: u64,
    /// Why its standing is not known.
    pub trouble: Option<String>,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Conflict {
    /// A branch: of a task, or the one that it is merged into.
    pub with: String,
    pub files: Vec<String>,
}

/// How the checks of a branch ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ListedChecks {
    pub passed: bool,
    /// Whether they ran on the commit that the branch has now.
    pub is_current: bool,
    pub at_ms: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NamedProcess {
    pub pid: u32,
    pub name: String,
}

/// The branches of tasks of the repository around a folder.
pub fn list(folder: &Path, into: Option<&str>) -> Result<Vec<ListedBranch>, Failure> {
    list_some(folder, into, usize::MAX, &mut DiskSizes::default()).map(|(all, _)| all)
}

/// As [`list`], but at most so many branches; returns how many were left out: those that were cleaned, then the oldest.
pub(crate) fn list_some(
    folder: &Path,
    into: Option<&str>,
    most: usize,
    sizes: &mut DiskSizes,
) -> Result<(Vec<ListedBranch>, usize), Failure> {
    let (repository, trees) = repository_of(folder)?;
    if let Some(into) = into.filter(|into| repository.tip(into).is_none()) {
        return Err(Failure::Usage(anyhow::anyhow!("there is no branch `{into}`")));
    }
    let mut list = trees.of(&repository);
    list.retain(|tree| tree.owner != OF_CHECKS);
    let omitted = list.len().saturating_sub(most);
    if omitted > 0 {
        list.sort_by_key(|tree| (tree.state != WorktreeState::Ready, Reverse(tree.made_at_ms)));
        list.truncate(most);
        list.sort_by(|one, other| one.branch.cmp(&other.branch));
    }
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let landings = Landings::known(&eisen_dir, &repository);
    sizes.0.retain(|path, _| list.iter().any(|tree| tree.path == *path));
    let mut one = |tree| one(&trees, tree, into, &landings, sizes);
    let mut all: Vec<_> = list.iter().map(&mut one).collect();
    compare(&repository, &mut all);
    Ok((all, omitted))
}

fn one(
    trees: &Worktrees,
    tree: &Worktree,
    into: Option<&str>,
    landings: &[Landing],
    sizes: &mut DiskSizes,
) -> ListedBranch {
    let is_there = tree.state == WorktreeState::Ready && tree.path.is_dir();
    let tip = tree.repository().tip(&tree.branch);
    let (mut stands, trouble) = match standing(tree, into) {
        Ok(standing) => (Some(standing), None),
        Err(_) if tip.is_none() && !is_there => (None, None),
        Err(error) => (None, Some(error.to_string())),
    };
    if let Some(stands) = &mut stands {
        // Squashed or rebased, its own commits are not in the other.
        stands.is_merged |= landings.iter().any(|it| {
            let is_into = stands.into.as_ref().is_none_or(|into| *into == it.into);
            is_into && Some(&it.tip) == tip.as_ref()
        });
    }
    let missing = tree.is_there().err().map(|error| error.to_string());
    let trouble =
        missing.clone().or(trouble).or_else(|| tree.is_settled().err().filter(|_| is_there));
    let inside = if is_there { occupants(&tree.path) } else { Vec::new() };
    let state = match &stands {
        _ if missing.is_some() => "missing",
        _ if !is_there => "cleaned",
        _ if !inside.is_empty() => "working",
        stands => at_rest(stands.as_ref()),
    };
    ListedBranch {
        branch: tree.branch.clone(),
        path: tree.path.clone(),
        state,
        owner: tree.owner.clone(),
        task: tree.task.as_ref().and_then(|task| task.lines().next().map(str::to_owned)),
        standing: stands,
        conflicts: Vec::new(),
        processes: inside
            .into_iter()
            .map(|Occupant { pid, name }| NamedProcess { pid, name })
            .collect(),
        checks: last_checks(trees, tree).map(|end| ListedChecks {
            passed: end.passed,
            is_current: Some(&end.commit) == tip.as_ref(),
            at_ms: end.at_ms,
        }),
        disk_bytes: if is_there { sizes.below(&tree.path) } else { 0 },
        made_at_ms: tree.made_at_ms,
        trouble,
    }
}

/// The state of a branch that nobody works on.
fn at_rest(stands: Option<&BranchStanding>) -> &'static str {
    match stands {
        None => "broken",
        Some(stands) if stands.is_merged && stands.uncommitted == 0 => "merged",
        Some(stands) if stands.behind > 0 => "stale",
        Some(_) => "ready",
    }
}

impl ListedBranch {
    /// The team and the agent that it was made for; None: it is a run's.
    pub fn team_and_agent(&self) -> Option<(&str, &str)> {
        self.owner.split_once('/')
    }

    /// Takes in what the agent does: the processes of an idle one, which are below its team's, are no work.
    pub fn of_agent(&mut self, is_running: bool, waits: bool, team_pid: u32) {
        if self.state != "working" {
            return;
        }
        self.state = match (waits, is_running) {
            (true, _) => "needs_you",
            (false, true) => "working",
            (false, false) => {
                let is_others = |process: &NamedProcess| !is_below(process.pid, team_pid);
                self.processes.retain(is_others);
                if self.processes.is_empty() { at_rest(self.standing.as_ref()) } else { "working" }
            }
        };
    }
}

/// Finds which branches can't be merged with their target, and which not with one another.
fn compare(repository: &GitRepository, all: &mut [ListedBranch]) {
    if repository.merges_in_memory().is_err() {
        return;
    }
    let name = |branch: &str| format!("refs/heads/{branch}");
    let open: Vec<usize> = (0..all.len())
        .filter(|at| all[*at].standing.as_ref().is_some_and(|it| it.ahead > 0 && !it.is_merged))
        .take(MOST_COMPARED)
        .collect();
    for (number, &at) in open.iter().enumerate() {
        let own = all[at].branch.clone();
        let into = all[at].standing.as_ref().and_then(|stands| stands.into.clone());
        if let Some(with) = into
            && let Some(files) = in_conflict(repository, &name(&with), &name(&own))
        {
            all[at].conflicts.push(Conflict { with, files });
        }
        for &other in &open[number + 1..] {
            let with = all[other].branch.clone();
            if let Some(files) = in_conflict(repository, &name(&with), &name(&own)) {
                all[at].conflicts.push(Conflict { with, files: files.clone() });
                all[other].conflicts.push(Conflict { with: own.clone(), files });
            }
        }
    }
}

fn in_conflict(repository: &GitRepository, one: &str, other: &str) -> Option<Vec<String>> {
    let merged = between(repository, one, other, None).ok()?;
    (!merged.conflicts.is_empty()).then_some(merged.conflicts)
}

/// The sizes of worktrees on the disk. All their files are walked for one, so it is not done for each list.
#[derive(Default, Debug)]
pub(crate) struct DiskSizes(HashMap<PathBuf, (Instant, u64)>);

impl DiskSizes {
    fn below(&mut self, folder: &Path) -> u64 {
        let known = self.0.get(folder).filter(|(at, _)| at.elapsed() < SIZE_LASTS);
        if let Some((_, bytes)) = known {
            return *bytes;
        }
        let bytes = bytes_below(folder);
        self.0.insert(folder.to_owned(), (Instant::now(), bytes));
        bytes
    }
}

fn bytes_below(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let mut walk = ignore::WalkBuilder::new(folder);
    walk.standard_filters(false);
    let files = walk.build().filter_map(Result::ok);
    files.filter_map(|entry| entry.metadata().ok()).map(|file| file.blocks() * 512).sum()
}
