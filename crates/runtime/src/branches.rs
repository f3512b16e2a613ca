//! Owns the branches of tasks: a worktree that a run is given, its set-up, how all of them stand, and how they are merged
//! and cleaned.

mod command;
mod given;
mod listed;
mod merge;
mod of_team;
pub(crate) mod port;
mod reviewed;
pub(crate) mod shared_changes;
mod team_reports;
mod work;

use std::path::Path;

pub use self::command::{CommandEnd, CommandFailed};
pub use self::given::{Given, give, set_up};
pub use self::listed::{Conflict, ListedBranch, list};
pub(crate) use self::listed::{DiskSizes, list_some};
pub(crate) use self::merge::try_out;
pub use self::merge::{
    ConflictTask, MergeNews, MergeOptions, Merged, begin_conflict, commit_all, merge, undo_merge,
};
pub use self::of_team::placed;
pub(crate) use self::of_team::{TeamTrees, is_free_for, named_by};
pub use self::reviewed::{Reviewed, reviewed};
pub use self::team_reports::ask_teams;
pub use self::work::BranchWork;
use crate::home::environment;
use crate::landing::{self, Landings};
use crate::lifecycle;
use crate::program::Failure;
use crate::repository::GitRepository;
use crate::tree::Worktrees;

/// The repository around a folder, and the worktrees of tasks. What killed processes left is brought to an end.
pub fn repository_of(folder: &Path) -> Result<(GitRepository, Worktrees), Failure> {
    let repository = GitRepository::find(folder).map_err(|error| Failure::Usage(error.into()))?;
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    environment::prepare(&eisen_dir).map_err(Failure::Usage)?;
    let trees = Worktrees::new(&eisen_dir);
    let run = |error: anyhow::Error| Failure::Run(error);
    lifecycle::settle_all(&trees, &repository).map_err(|error| run(error.into()))?;
    let landings = Landings::of(&eisen_dir, &repository).map_err(|error| run(error.into()))?;
    landing::finish(&landings, &repository).map_err(|error| run(error.into()))?;
    Ok((repository, trees))
}
