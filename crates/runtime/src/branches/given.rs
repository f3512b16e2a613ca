//! A worktree that a run is given: made, or taken as it is, and made ready by `setup`.

use std::path::{Path, PathBuf};

use super::command::{CommandFailed, run};
use super::repository_of;
use crate::config::{SharedConfig, WorktreeSettings, build_folders};
use crate::home::environment;
use crate::lifecycle::{Bringing, WorktreeRequest, make};
use crate::program::Failure;
use crate::recovery::RecoveryError;
use crate::repository::GitRepository;
use crate::runs::RunSpec;
use crate::team_file::RunOptions;
use crate::tree::{HeldWorktree, Worktree, Worktrees, branch_of_task};

/// Copied files that are named.
const MOST_NAMED: usize = 3;

/// A worktree that a run works in. Nobody else gets it as long as this lives.
#[derive(Debug)]
pub struct Given {
    pub held: HeldWorktree,
    pub is_new: bool,
    /// Sentences for the person.
    pub notes: Vec<String>,
    setup: Option<String>,
}

/// Gives a run the worktree of the branch that it asks for, in the repository around a folder; None: it asks for none.
pub fn give(
    spec: &RunSpec,
    folder: &Path,
    shared: &SharedConfig,
) -> Result<Option<Given>, Failure> {
    if spec.branch.is_none() && !spec.worktree {
        if spec.base.is_some() {
            let why = "`--base` says where a branch begins: name it by --branch, or use --worktree";
            return Err(Failure::Usage(anyhow::anyhow!(why)));
        }
        return Ok(None);
    }
    let (repository, trees) = repository_of(folder)?;
    let branch = spec.branch.clone().unwrap_or_else(|| branch_of_task(&repository, &spec.task));
    let mut settings = (*shared.worktree).clone();
    settings.base = spec.base.clone().or(settings.base);
    let (above, task) = (String::new(), Some(spec.task.clone()));
    let whose = Whose { zone: &spec.zone, above, owner: String::new(), task };
    let mut given = given(&trees, &repository, branch, settings, whose)
        .map_err(|error| Failure::Usage(error.into()))?;
    if !given.is_new && spec.base.is_some() {
        given.notes.push("--base is not used: the branch is there already".to_owned());
    }
    Ok(Some(given))
}

/// Whose a worktree is, and what for.
pub(super) struct Whose<'a> {
    /// The patterns of the zone; empty: all.
    pub(super) zone: &'a [String],
    /// The place in the repository that the patterns begin at: empty, or with a slash at its end.
    pub(super) above: String,
    pub(super) owner: String,
    pub(super) task: Option<String>,
}

/// Makes the worktree of a branch, or takes the one that it has.
pub(super) fn given(
    trees: &Worktrees,
    repository: &GitRepository,
    branch: String,
    settings: WorktreeSettings,
    Whose { zone, above, owner, task }: Whose<'_>,
) -> Result<Given, RecoveryError> {
    let top = repository.main().unwrap_or_else(|| repository.common());
    let place = settings.place(top, &trees.name_for(repository, &branch));
    let is_sparse = settings.sparse == Some(true);
    let only = if is_sparse { folders_of(zone) } else { None };
    let only: Option<Vec<_>> =
        only.map(|all| all.into_iter().map(|it| above.clone() + &it).collect());
    let WorktreeSettings { base, setup, copy, link, .. } = settings;
    let request = WorktreeRequest {
        branch,
        base,
        place,
        only: only.clone().unwrap_or_default(),
        bringing: Bringing { copy, link },
        build: build_folders(),
        owner,
        task,
    };
    let made = make(trees, repository, &request)?;
    let tree = &made.held.tree;
    let place = tree.path.display();
    let first = if made.is_new {
        format!("branch {} in {place}{}", tree.branch, brought(tree))
    } else {
        format!("goes on with branch {} in {place}", tree.branch)
    };
    let mut notes = vec![first];
    notes.extend(made.notes);
    if !made.is_new
        && let Err(why) = tree.is_settled()
    {
        notes.push(why);
    }
    if let (true, true) = (made.is_new, is_sparse) {
        notes.push(match &only {
            Some(folders) => format!(
                "sparse: it has {} and the files at the top. git keeps that in `extensions.worktreeConfig` of the repository",
                folders.join(", ")
            ),
            None => "`sparse` takes folders: a pattern of the zone is none, so all files are there".to_owned(),
        });
    }
    Ok(Given { held: made.held, is_new: made.is_new, notes, setup })
}

/// The folders that a zone consists of; None: it is all, or a pattern is no folder.
fn folders_of(zone: &[String]) -> Option<Vec<String>> {
    let folder = |pattern: &String| {
        let folder = pattern.strip_suffix("/**")?;
        let is_plain = !folder.starts_with('/') && !folder.contains(['*', '?', '[', '{', '\\']);
        (is_plain && !folder.is_empty()).then(|| folder.to_owned())
    };
    let folders: Vec<_> = zone.iter().map(folder).collect::<Option<_>>()?;
    (!folders.is_empty()).then_some(folders)
}

/// The files that came into a new worktree, for a person.
fn brought(tree: &Worktree) -> String {
    let mut brought = Vec::new();
    if !tree.copied.is_empty() {
        let names: Vec<_> = tree.copied.keys().take(MOST_NAMED).map(String::as_str).collect();
        let more = if tree.copied.len() > MOST_NAMED { ", …" } else { "" };
        brought.push(format!("copied {}{more}", names.join(", ")));
    }
    if !tree.linked.is_empty() {
        brought.push(format!("linked {}", tree.linked.join(", ")));
    }
    if brought.is_empty() { String::new() } else { format!(" ({})", brought.join("; ")) }
}

impl Given {
    /// Notes whose work it is: the profile, or the program.
    pub fn belongs_to(&mut self, options: &RunOptions) -> Result<(), Failure> {
        if !self.held.tree.owner.is_empty() {
            return Ok(());
        }
        let program = || options.spec.command.first().and_then(|it| Path::new(it).file_name());
        let named = options.profile.clone();
        let named = named.or_else(|| Some(program()?.to_string_lossy().into_owned()));
        self.held.tree.owner = named.unwrap_or_default();
        self.held.keep().map_err(|error| Failure::Run(error.into()))
    }

    /// Removes it again, where it was made for nothing.
    pub fn take_back(self) -> Result<(), Failure> {
        if !self.is_new {
            return Ok(());
        }
        self.held.discard().map_err(|error| Failure::Run(error.into()))
    }
}

/// Runs `setup` in a new worktree, or in one where it did not succeed yet.
pub async fn set_up(given: &mut Given, said: &mut (dyn FnMut(&str) + Send)) -> Result<(), Failure> {
    let Some(setup) = &given.setup else { return Ok(()) };
    let tree = &given.held.tree;
    if tree.setup == Some(true) {
        return Ok(());
    }
    said(&format!("$ {setup}"));
    let (path, variables) = (tree.path.clone(), tree.variables());
    let log = log_of(given, "setup")?;
    let done = run(setup, &path, variables, log, said).await;
    given.held.tree.setup = Some(done.is_ok());
    given.held.keep().map_err(|error| Failure::Run(error.into()))?;
    done.map(drop).map_err(|error: CommandFailed| {
        Failure::Run(anyhow::Error::from(error).context("the worktree is not ready"))
    })
}

fn log_of(given: &Given, what: &str) -> Result<PathBuf, Failure> {
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    Ok(given.held.log(&eisen_dir, what))
}
