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
    /// The names in the request can't be looked up.
    #[error(transparent)]
    Asked(#[from] AskError),
    /// A redo finds no undo that still counts.
    #[error("there is no undo{} to take back", of_agent(agent.as_ref()))]
    NothingUndone {
        /// The agent that was named; None: any agent.
        agent: Option<String>,
    },
    /// The undo would write more files than one may.
    #[error("these are more than {most} files: name a turn, or an event to begin from")]
    TooMany {
        /// Maximum files of one undo: 100,000.
        most: usize,
    },
    /// Some files can't be set back, and the request has no `force`.
    #[error("{}", in_the_way(obstacles))]
    InTheWay {
        /// All obstacles, also those that the message leaves out.
        obstacles: Vec<Obstacle>,
    },
    /// A process of an agent may still write a file of the undo.
    #[error("`{path}` is open for writing in process {pid} ({name}): end it, or wait for it")]
    Open {
        /// As the wire shows it: relative to the workspace, absolute outside.
        path: String,
        /// The process that has the file open for writing, or mapped so.
        pid: i32,
        /// The process's name as the system has it, up to 15 bytes; empty if it is gone.
        name: String,
    },
    /// The agent can't be disturbed now, or the work on the undo broke off; the text says why.
    #[error("{0}")]
    Busy(String),
    /// A file changed after the plan was made. All was taken back.
    #[error("`{path}` changed meanwhile: nothing was undone, try again")]
    Changed {
        /// As the wire shows it: relative to the workspace, absolute outside.
        path: String,
    },
    /// A file can't be read or written. All was taken back.
    #[error("cannot write `{path}`: {error}; nothing was undone")]
    Io {
        /// As the wire shows it: relative to the workspace, absolute outside.
        path: String,
        /// The error as the system reports it.
        error: io::Error,
    },
    /// An undo failed or was killed, and its files can't be set back. Its record stays for the next try.
    #[error(
        "an undo could not be completed, and `{path}` could not be set back: {error}; it is tried \
         again by the next undo or redo, and when the team next starts"
    )]
    Half {
        /// The first path that could not be set back, as the wire shows it.
        path: String,
        /// The error as the system reports it.
        error: io::Error,
    },
    /// A dry run finds the record of an undo that was killed. It takes nothing back itself.
    #[error(
        "an undo was killed half-way: run `undo` or `redo` without --dry-run, or start the team"
    )]
    Unfinished,
    /// The record of an undo can't be read, written or removed.
    #[error("the record of an unfinished undo, {}: {error}", path.display())]
    Intent {
        /// The record, `journal.db.undo`.
        path: PathBuf,
        /// The error as the system reports it.
        error: io::Error,
    },
    /// The folder of the workspace can't be opened.
    #[error("cannot use the workspace {}: {error}", path.display())]
    Workspace {
        /// The workspace as it was given.
        path: PathBuf,
        /// The error as the system reports it.
        error: io::Error,
    },
    /// A content that the undo needs can't be read from the journal. All was taken back.
    #[error("cannot restore a file: {0}; nothing was undone")]
    Content(Missing),
    /// The journal does not take the contents or the event. All was taken back.
    #[error("nothing was undone: {0}")]
    Journal(AppendError),
    /// The journal can't be read.
    #[error(transparent)]
    Unreadable(#[from] OpenError),
    /// The changes can't be selected.
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
