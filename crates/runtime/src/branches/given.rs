//! A worktree that a run is given: made, or taken as it is, and made ready by `setup`.

use std::path::{Path, PathBuf};

use super::command::{CommandFailed, run};
use super::repository_of;
use crate::app::team_file::RunOptions;
use crate::config::{SharedConfig, WorktreeSettings, build_folders};
use crate::home::environment;
use crate::lifecycle::{Bringing, WorktreeRequest, make};
use crate::program::Failure;
use crate::tree::{HeldWorktree, branch_of_task};

/// A worktree that a run works in. Nobody else gets it as long as this lives.
#[derive(Debug)]
pub struct Given {
    pub held: HeldWorktree,
    pub is_new: bool,
    /// Sentences for the person.
    pub notes: Vec<String>,
    setup: Option<String>,
}

/// Gives a run the worktree of the branch that it asks for; None: it asks for none.
pub fn give(options: &mut RunOptions, shared: &SharedConfig) -> Result<Option<Given>, Failure> {
    let spec = &options.spec;
    if spec.branch.is_none() && !spec.worktree {
        if spec.base.is_some() {
            let why = "`--base` says where a branch begins: name it by --branch, or use --worktree";
            return Err(Failure::Usage(anyhow::anyhow!(why)));
        }
        return Ok(None);
    }
    let (repository, trees) = repository_of(&options.workspace)?;
    let branch = spec.branch.clone().unwrap_or_else(|| branch_of_task(&repository, &spec.task));
    let WorktreeSettings { base, setup, copy, link, .. } = (*shared.worktree).clone();
    let top = repository.main().unwrap_or_else(|| repository.common());
    let request = WorktreeRequest {
        place: shared.worktree.place(top, &branch.replace('/', "-")),
        branch,
        base: spec.base.clone().or(base),
        only: Vec::new(),
        bringing: Bringing { copy, link },
        build: build_folders(),
        owner: agent_of(options),
        task: Some(spec.task.clone()),
    };
    let made = make(&trees, &repository, &request).map_err(|error| Failure::Usage(error.into()))?;
    let tree = &made.held.tree;
    options.workspace.clone_from(&tree.path);
    options.worktree = Some(tree.variables());
    let mut notes = Vec::new();
    if made.is_new {
        let mut brought = Vec::new();
        if !tree.copied.is_empty() {
            let names: Vec<_> = tree.copied.keys().take(3).map(String::as_str).collect();
            let more = if tree.copied.len() > 3 { ", …" } else { "" };
            brought.push(format!("copied {}{more}", names.join(", ")));
        }
        if !tree.linked.is_empty() {
            brought.push(format!("linked {}", tree.linked.join(", ")));
        }
        let brought =
            if brought.is_empty() { String::new() } else { format!(" ({})", brought.join("; ")) };
        notes.push(format!("branch {} in {}{brought}", tree.branch, tree.path.display()));
    } else {
        notes.push(format!("goes on with branch {} in {}", tree.branch, tree.path.display()));
    }
    notes.extend(made.notes);
    Ok(Some(Given { held: made.held, is_new: made.is_new, notes, setup }))
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

/// Whose work it is, for people: the profile, or the program.
fn agent_of(options: &RunOptions) -> String {
    let program = || options.spec.command.first().and_then(|it| Path::new(it).file_name());
    let named = options.profile.clone();
    named.or_else(|| Some(program()?.to_string_lossy().into_owned())).unwrap_or_default()
}

fn log_of(given: &Given, what: &str) -> Result<PathBuf, Failure> {
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    Ok(given.held.log(&eisen_dir, what))
}
