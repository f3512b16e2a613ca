//! Merges branches of tasks one by one: in memory, then the checks on what comes out, then the branch moves.

use std::path::{Path, PathBuf};

use anyhow::anyhow;

use super::command::{CommandFailed, run};
use super::repository_of;
use super::reviewed::note_checks;
use crate::config::SharedConfig;
use crate::home::environment;
use crate::landing::{
    Landing, LandingError, Landings, MergeMessage, MergeWay, abort, begin, check, commit, land,
    preview, refuse_marks, refuse_unsettled, take_back, under_way,
};
use crate::lifecycle::{Bringing, OF_CHECKS, WorktreeRequest, make};
use crate::model::now_ms;
use crate::program::Failure;
use crate::repository::GitRepository;
use crate::review::{ChecksEnd, tree_now};
use crate::tree::{Worktree, Worktrees, default_folder, standing};

/// A branch to merge, and how.
#[derive(Clone, Debug)]
pub struct MergeOptions {
    pub folder: PathBuf,
    pub branch: String,
    /// The branch that moves; None: the one that `branch` began at.
    pub into: Option<String>,
    pub way: MergeWay,
    pub message: Option<String>,
    /// The tree of git that a person looked at: any other of the branch is not merged. None: whatever it has.
    pub looked_at: Option<String>,
}

/// News of a merge that is under way.
#[derive(Debug)]
pub enum MergeNews<'a> {
    /// A check begins.
    Check(&'a str),
    /// A line of its output.
    Output(&'a str),
}

/// A merge that was made.
#[derive(Debug)]
pub struct Merged {
    pub landing: Landing,
    pub checks: usize,
}

/// Merges a branch. What fails moves nothing.
pub async fn merge(
    options: &MergeOptions,
    shared: &SharedConfig,
    said: &mut (dyn FnMut(MergeNews<'_>) + Send),
) -> Result<Merged, Failure> {
    let (repository, trees) = repository_of(&options.folder)?;
    let refused = |error: LandingError| Failure::Run(error.into());
    let branch = &options.branch;
    let tree = trees.of_branch(&repository, branch);
    let into = target(&repository, tree.as_ref(), branch, options.into.as_deref())?;
    let is_there = |tree: &&Worktree| tree.is_there().unwrap_or_default();
    // What is not committed in one that was moved by hand would stay behind.
    tree.as_ref().map_or(Ok(false), Worktree::is_there).map_err(|error| refused(error.into()))?;
    if let Some(tree) = tree.as_ref().filter(is_there) {
        if under_way(tree).map_err(refused)?.is_some() {
            let (branch, place) = (branch.clone(), tree.path.clone());
            return Err(refused(LandingError::Merging { branch, into, place }));
        }
        // Amid a rebase of its own, its files are not to be committed.
        tree.is_settled().map_err(|why| refused(LandingError::Unsettled(why)))?;
        let stands = standing(tree, Some(&into)).map_err(|error| Failure::Run(error.into()))?;
        if stands.uncommitted > 0 {
            let branch = branch.clone();
            let count = match stands.uncommitted {
                1 => "1 file is".to_owned(),
                count => format!("{count} files are"),
            };
            return Err(refused(LandingError::Uncommitted { branch, count }));
        }
    }
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let missing = || refused(LandingError::NoBranch(branch.clone()));
    let tip = repository.tip(branch).ok_or_else(missing)?;
    if let Some(looked_at) = &options.looked_at
        && repository.reference(&format!("{tip}^{{tree}}")).as_ref() != Some(looked_at)
    {
        return Err(refused(LandingError::NotLookedAt(branch.clone())));
    }
    let known = Landings::known(&eisen_dir, &repository);
    // Squashed or rebased, its own commits are not in the target.
    if known.iter().any(|it| it.tip == tip && it.into == into) {
        return Err(refused(LandingError::Nothing(branch.clone(), into)));
    }
    if repository.tip(&into).is_some() {
        refuse_marks(&repository, (branch, &tip), &into).map_err(refused)?;
    }
    let message = message(options, tree.as_ref());
    let made = commit(&repository, (branch, &tip), &into, options.way, &message);
    let (old, new) = made.map_err(refused)?;
    let way = options.way;
    let landing =
        Landing { branch: branch.clone(), into, old, new, tip, landed_at_ms: now_ms(), way };
    check(&repository, &landing).map_err(refused)?;
    let checks = &shared.worktree.checks;
    if !checks.is_empty() {
        let done = run_checks(&repository, &trees, shared, &landing.new, said).await;
        if let Some(tree) = &tree {
            let end = ChecksEnd {
                passed: done.is_ok(),
                commit: landing.tip.clone(),
                is_clean: true,
                at_ms: now_ms(),
            };
            note_checks(&trees, tree, end);
        }
        done?;
    }
    let landings = Landings::of(&eisen_dir, &repository);
    let landings = landings.map_err(|error| Failure::Run(error.into()))?;
    land(&landings, &repository, &landing).map_err(refused)?;
    Ok(Merged { landing, checks: checks.len() })
}

/// Merges a branch in memory; returns the branch that would move, and the files in conflict.
pub(crate) fn try_out(
    folder: &Path,
    branch: &str,
    into: Option<&str>,
) -> Result<(String, Vec<String>), Failure> {
    let (repository, trees) = repository_of(folder)?;
    let tree = trees.of_branch(&repository, branch);
    let into = target(&repository, tree.as_ref(), branch, into)?;
    let merged = preview(&repository, branch, &into);
    let merged = merged.map_err(|error| Failure::Run(error.into()))?;
    Ok((into, merged.conflicts))
}

/// The branch that moves when another is merged. `into`: the one that was asked for.
fn target(
    repository: &GitRepository,
    tree: Option<&Worktree>,
    branch: &str,
    into: Option<&str>,
) -> Result<String, Failure> {
    let into = into.map(str::to_owned).or_else(|| tree?.base_branch.clone());
    let into = into.or_else(|| repository.main_branch()).ok_or_else(|| {
        Failure::Usage(anyhow!("`{branch}` began at no branch: name one by `--into`"))
    })?;
    if into == *branch {
        return Err(Failure::Usage(anyhow!("`{branch}` is merged into another branch: --into")));
    }
    Ok(into)
}

/// Takes the newest merge of a branch back.
pub fn undo_merge(folder: &Path, branch: &str) -> Result<Landing, Failure> {
    let (repository, _) = repository_of(folder)?;
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let landings =
        Landings::of(&eisen_dir, &repository).map_err(|error| Failure::Run(error.into()))?;
    take_back(&landings, &repository, branch).map_err(|error| Failure::Run(error.into()))
}

/// Commits all that is not committed in the worktree of a branch, as the person; returns whether there was anything.
/// `looked_at`: the tree of git that a person looked at, and nothing else is committed; None: whatever is there.
pub fn commit_all(
    folder: &Path,
    branch: &str,
    message: Option<&str>,
    looked_at: Option<&str>,
) -> Result<bool, Failure> {
    let (repository, trees) = repository_of(folder)?;
    let Some(tree) = trees.of_branch(&repository, branch) else { return Ok(false) };
    let failed = |error: LandingError| Failure::Run(error.into());
    if !tree.is_there().map_err(|error| failed(error.into()))? {
        return Ok(false);
    }
    if let Some(looked_at) = looked_at
        && tree_now(&tree).map_err(|error| Failure::Run(error.into()))? != looked_at
    {
        return Err(failed(LandingError::NotLookedAt(branch.to_owned())));
    }
    let merge = under_way(&tree).map_err(failed)?;
    let is_ready = if merge.is_some() { tree.is_on_branch() } else { tree.is_settled() };
    is_ready.map_err(|why| failed(LandingError::Unsettled(why)))?;
    let message = if let Some(files) = merge {
        refuse_unsettled(&tree, &files).map_err(failed)?;
        message
    } else {
        let task = || tree.task.as_deref().and_then(first_line);
        message.or_else(task).or(Some("Work of a task"))
    };
    tree.commit_all(message).map_err(|error| Failure::Run(error.into()))
}

/// A conflict that the agent of a branch is to settle. The merge is begun in its worktree.
#[derive(Debug)]
pub struct ConflictTask {
    tree: Worktree,
    /// The prompt for the agent.
    pub prompt: String,
}

/// Begins to merge a branch's target into it, in its worktree. `is_held`: a team holds that, and its agent rests.
pub fn begin_conflict(
    folder: &Path,
    branch: &str,
    into: &str,
    is_held: bool,
) -> Result<ConflictTask, Failure> {
    let (repository, trees) = repository_of(folder)?;
    let held = if is_held { Ok(None) } else { trees.hold(&repository, branch) };
    let _held = held.map_err(|error| Failure::Run(error.into()))?;
    let none = || Failure::Run(anyhow!("`{branch}` has no worktree of a task"));
    let tree = trees.of_branch(&repository, branch).ok_or_else(none)?;
    if !tree.is_there().map_err(|error| Failure::Run(error.into()))? {
        return Err(none());
    }
    let prompt = begin(&tree, into).map_err(|error| Failure::Run(error.into()))?;
    Ok(ConflictTask { tree, prompt })
}

impl ConflictTask {
    /// Takes back what was begun, where nobody got it.
    pub fn take_back(self) {
        if let Err(error) = abort(&self.tree) {
            let place = self.tree.path.display();
            tracing::warn!(%error, %place, "the merge in the worktree could not be taken back");
        }
    }
}

fn message(options: &MergeOptions, tree: Option<&Worktree>) -> MergeMessage {
    let task = tree.and_then(|tree| tree.task.clone());
    let mut trailers = Vec::new();
    if let Some(tree) = tree {
        trailers.push(("Eisen-Agent".to_owned(), tree.owner.clone()));
        let first = task.as_deref().and_then(first_line);
        trailers.extend(first.map(|first| ("Eisen-Task".to_owned(), first.to_owned())));
    }
    MergeMessage { text: options.message.clone(), task, trailers }
}

/// The first line of a task that is not empty.
fn first_line(task: &str) -> Option<&str> {
    task.lines().map(str::trim).find(|line| !line.is_empty())
}

/// Runs the checks in a worktree of the merged commit, which is removed then.
async fn run_checks(
    repository: &GitRepository,
    trees: &Worktrees,
    shared: &SharedConfig,
    new: &str,
    said: &mut (dyn FnMut(MergeNews<'_>) + Send),
) -> Result<(), Failure> {
    let failed = |error: anyhow::Error| Failure::Run(error);
    let branch = format!("eisen/check-{}", &new[..new.len().min(12)]);
    let folder = default_folder(repository).unwrap_or_default();
    let place = folder.join(format!("check-{}-{}", &new[..new.len().min(12)], std::process::id()));
    let request = WorktreeRequest {
        branch,
        base: Some(new.to_owned()),
        place: Some(place),
        only: Vec::new(),
        bringing: Bringing {
            copy: shared.worktree.copy.clone(),
            link: shared.worktree.link.clone(),
        },
        build: crate::config::build_folders(),
        owner: OF_CHECKS.to_owned(),
        task: None,
    };
    let made = make(trees, repository, &request).map_err(|error| failed(error.into()))?;
    let held = made.held;
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let mut outcome: Result<(), CommandFailed> = Ok(());
    for command in shared.worktree.setup.iter().chain(&shared.worktree.checks) {
        said(MergeNews::Check(command));
        let (path, variables) = (held.tree.path.clone(), held.tree.variables());
        let log = held.log(&eisen_dir, "check");
        let mut line = |line: &str| said(MergeNews::Output(line));
        outcome = run(command, &path, variables, log, &mut line).await.map(drop);
        if outcome.is_err() {
            break;
        }
    }
    if let Err(error) = held.discard() {
        tracing::warn!("the worktree of the checks stays: {error}");
    }
    outcome.map_err(|error| failed(anyhow::Error::from(error).context("nothing was merged")))
}
