//! The worktree of a task that has a branch.

use crate::branches;
use crate::program::Failure;
use crate::team_file;
use crate::team_file::RunOptions;

/// Gives a job the worktree of its branch, and makes it ready; returns what a person should know of it. A job without a
/// branch stays where it is.
pub(super) async fn give(options: &mut RunOptions) -> Result<Vec<String>, Failure> {
    if options.spec.branch.is_none() {
        return Ok(Vec::new());
    }
    let shared = team_file::shared_config(&options.workspace)?;
    let given = branches::give(&options.spec, &options.workspace, &shared)?;
    let Some(mut given) = given else { return Ok(Vec::new()) };
    given.belongs_to(options)?;
    options.workspace.clone_from(&given.held.tree.path);
    options.worktree = Some(given.held.tree.variables());
    branches::set_up(&mut given, &mut |_| {}).await?;
    Ok(given.notes)
}
