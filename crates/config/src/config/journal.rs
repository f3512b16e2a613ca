//! `[journal]`: whether the team keeps a journal, where, how long, and how much of it.

use std::path::{Path, PathBuf};

use super::errors::quoted;
use super::fault::Fault;
use super::read::Table;
use crate::model::{OutsideFiles, named};

/// The default of `max_mb`.
pub const MAX_MB: u64 = 2048;

/// The default place of a team's journal.
pub fn journal_path(eisen_dir: &Path, team: &str) -> PathBuf {
    eisen_dir.join("teams").join(team).join("journal.db")
}

/// The journal of a team.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Journal {
    pub enabled: bool,
    /// Absolute. None: the default place, see [`journal_path`].
    pub path: Option<PathBuf>,
    /// Days that ended sessions are kept; 0: forever.
    pub keep_days: u64,
    /// Size of the file past which the oldest sessions go; 0: no limit.
    pub max_mb: u64,
    /// Its size past which it takes no more contents of files, unless `max_mb` has its default.
    pub full_mb: Option<u64>,
    pub on_full: OnFull,
    pub content: JournalContent,
    /// The record that is kept of files outside the workspace.
    pub outside: OutsideFiles,
}

named! {
    /// The treatment of a call that would destroy a content which the journal can't take.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum OnFull {
        /// The call goes on, and that is said.
        Warn = "warn",
        /// The call waits for a decision.
        Hold = "hold",
    }
}

named! {
    /// Whether texts are kept.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum JournalContent {
        Full = "full",
        Metadata = "metadata",
    }
}

pub(super) fn journal(table: &Table<'_>) -> Journal {
    let max_mb = table.count("max_mb", 0..=1_000_000_000, MAX_MB);
    Journal {
        enabled: table.flag("enabled", true),
        path: path(table),
        keep_days: table.count("keep_days", 0..=36_500, 0),
        max_mb,
        full_mb: Some(max_mb).filter(|most| ![0, MAX_MB].contains(most)),
        on_full: table.choice("on_full"),
        content: table.choice("content"),
        outside: table.choice("outside"),
    }
}

fn path(table: &Table<'_>) -> Option<PathBuf> {
    let text = table.word("path")?;
    let path = table.reader.path(&text.value);
    if path.is_dir() {
        let message = format!("the journal {} is a folder", quoted(&text.value));
        let help =
            format!("name a file in it, such as {}", quoted(&format!("{}/journal.db", text.value)));
        table.fault(Fault::new(text.span, message).help(help));
    }
    Some(path)
}
