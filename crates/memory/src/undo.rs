//! Takes back an agent's changes of files, and takes an undo back: plans it from the journal and
//! the disk, shows it, and carries it out, all or nothing.
//!
//! ```text
//! aim ─▶ choose (changes that still count) ─▶ plan (revert, what is in the way) ─▶ preview
//!                                               └▶ arrange (steps) ─▶ apply: keep, intent, stage,
//!                                                  steps, event, discard ─▶ recover, if killed
//! ```
//!
//! Works on the files beneath the workspace by descriptors, never follows a symlink, and runs no
//! program. A repository's own files are never touched. Knows no running agents: it asks a
//! [`LiveAgents`] whether they are in the way of an undo.

mod aim;
mod apply;
mod arrange;
mod disk;
mod intent;
mod log;
mod path;
mod plan;
mod preview;
mod step;
mod undoer;
mod writers;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

pub use self::aim::{Aim, UndoRequest};
pub use self::apply::Recovered;
pub use self::intent::KEPT;
pub use self::path::ShownPath;
pub use self::plan::{Obstacle, ObstacleKind, UndonePath};
pub use self::undoer::{LiveAgents, Outcome, Undoer, preview};
use crate::changes::{AskError, Missing, SelectError};
use crate::journal::{AppendError, OpenError};

/// Why nothing was undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    #[error(transparent)]
    Asked(#[from] AskError),
    #[error("there is no undo{} to take back", of_agent(agent.as_ref()))]
    NothingUndone { agent: Option<String> },
    #[error("these are more than {most} files: name a turn, or an event to begin from")]
    TooMany { most: usize },
    #[error("{}", in_the_way(obstacles))]
    InTheWay { obstacles: Vec<Obstacle> },
    #[error("`{path}` is open for writing in process {pid} ({name}): end it, or wait for it")]
    Open { path: String, pid: i32, name: String },
    #[error("{0}")]
    Busy(String),
    #[error("`{path}` changed meanwhile: nothing was undone, try again")]
    Changed { path: String },
    #[error("cannot write `{path}`: {error}; nothing was undone")]
    Io { path: String, error: io::Error },
    #[error(
        "an undo could not be completed, and `{path}` could not be set back: {error}; it is tried \
         again by the next undo or redo, and when the team next starts"
    )]
    Half { path: String, error: io::Error },
    #[error(
        "an undo was killed half-way: run `undo` or `redo` without --dry-run, or start the team"
    )]
    Unfinished,
    #[error("the record of an unfinished undo, {}: {error}", path.display())]
    Intent { path: PathBuf, error: io::Error },
    #[error("cannot use the workspace {}: {error}", path.display())]
    Workspace { path: PathBuf, error: io::Error },
    #[error("cannot restore a file: {0}; nothing was undone")]
    Content(Missing),
    #[error("nothing was undone: {0}")]
    Journal(AppendError),
    #[error(transparent)]
    Unreadable(#[from] OpenError),
    #[error(transparent)]
    Select(#[from] SelectError),
}

impl UndoError {
    fn io(path: String, error: io::Error) -> Self {
        Self::Io { path, error }
    }
}

fn of_agent(agent: Option<&String>) -> String {
    agent.map(|agent| format!(" of `{agent}`")).unwrap_or_default()
}

/// Obstacles that an error lists.
const MOST_LISTED: usize = 50;

fn in_the_way(obstacles: &[Obstacle]) -> String {
    let mut text = "nothing was undone, since it can't all be undone:".to_owned();
    for obstacle in obstacles.iter().take(MOST_LISTED) {
        let _ = write!(text, "\n  {}: {}", obstacle.path(), obstacle.why);
    }
    if obstacles.len() > MOST_LISTED {
        let _ = write!(text, "\n  … and {} more", obstacles.len() - MOST_LISTED);
    }
    text.push_str("\n--force gives files that clash the content from before the agent's change");
    text
}
