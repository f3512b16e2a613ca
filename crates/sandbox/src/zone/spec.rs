//! The specification of a zone: its lists of patterns, and its other settings.

use std::path::PathBuf;
use std::slice;

use super::uncovered;
use crate::model::named;

/// The specification of a zone. Patterns are globs relative to the workspace, or absolute.
#[derive(Clone, Debug)]
pub struct ZoneSpec {
    /// Absolute.
    pub workspace: PathBuf,
    /// The agent's own.
    pub allowed: Vec<String>,
    /// The team's `shared`, added to `allowed` but owned by no agent.
    pub shared: Vec<String>,
    /// The team's and the agent's; they override all other lists.
    pub denied: Vec<String>,
    /// Overrides the lists that allow, as `denied` does, but somebody may be asked: files with secrets.
    pub asked: Vec<String>,
    /// The patterns of the team, the agent and `base` for paths that may be read, not written.
    pub readable: Vec<String>,
    /// The access to the git folder of the workspace's repository.
    pub git: GitAccess,
    /// With [`GitAccess::Commit`] in a worktree of a task: the branch that it may move, and those whose names begin
    /// with this one and a slash. Of what all worktrees of the repository share, only that part is written. None: the
    /// workspace is no such worktree, and all that commits write is open.
    pub branch: Option<String>,
    /// Other worktrees of the repository: closed but for what a pattern allows.
    pub beside: Vec<PathBuf>,
    /// Whether the agent is offered terminals.
    pub terminals: bool,
    /// `$EISEN_DIR`: denied to every agent.
    pub eisen_dir: PathBuf,
    /// The team's configuration and the files that it names. No agent may write them.
    pub sealed: Vec<PathBuf>,
    /// Journals outside `eisen_dir`: denied to every agent, with the files beside them whose names
    /// begin with theirs (`SQLite`'s log, the lock, a corrupt one).
    pub journals: Vec<PathBuf>,
}

named! {
    /// An agent's access to the repository's git folder. No pattern allows more. Other
    /// repositories below the workspace need a pattern as well.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum GitAccess {
        /// Its contents may be read, and nothing in it written.
        Read = "read",
        /// Nothing in it may be read or written.
        None = "none",
        /// Objects, index, refs and logs may be written; never hooks, config or info.
        Commit = "commit",
    }
}

impl ZoneSpec {
    /// A zone with one list of patterns, with terminals, and without git.
    pub fn new(
        workspace: impl Into<PathBuf>,
        allowed: Vec<String>,
        eisen_dir: impl Into<PathBuf>,
    ) -> Self {
        Self {
            workspace: workspace.into(),
            allowed,
            shared: Vec::new(),
            denied: Vec::new(),
            asked: Vec::new(),
            readable: Vec::new(),
            git: GitAccess::None,
            branch: None,
            beside: Vec::new(),
            terminals: true,
            eisen_dir: eisen_dir.into(),
            sealed: Vec::new(),
            journals: Vec::new(),
        }
    }

    /// As long as its agent is observed and not stopped: all of the workspace is open but what no list opens, and
    /// commits are. What `secrets` names is asked for, but patterns all of which is allowed. It owns what it owned.
    pub(super) fn opened(&self, secrets: &[String]) -> Self {
        let mut open = self.clone();
        let (closed, writable) = (self.closed(), [&self.allowed[..], &self.shared].concat());
        let is_allowed = |one| matches!(uncovered(&writable, slice::from_ref(one)), Ok(None));
        let asked = secrets.iter().filter(|one| !closed.contains(one) && !is_allowed(*one));
        open.asked.extend(asked.cloned());
        open.shared.push("**".to_owned());
        if open.git == GitAccess::Read {
            open.git = GitAccess::Commit;
        }
        open
    }

    /// The patterns that no allowing list opens.
    pub(super) fn closed(&self) -> Vec<String> {
        [&self.denied[..], &self.asked].concat()
    }
}
