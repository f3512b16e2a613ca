//! A file with its content, and the merge of three states of one: content, mode and kind.

use std::path::{Path, PathBuf};

use super::contents::{ContentSource, Missing, content_of, is_there};
use super::merge::{MOST_MERGED, Merge, merge3};
use super::state::{FileKind, FileState, same};
use crate::journal::hash_of;

/// The place of an entry's content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EntrySource {
    /// In the journal, under the state's hash.
    Journal,
    /// In the tree, at this path.
    Tree(PathBuf),
    /// Here: merged from several.
    Merged(Vec<u8>),
}

/// A file as it will be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileEntry {
    /// Kind, mode, size and hash of the file. `stored` is false for a merged content.
    pub state: FileState,
    /// The place from which the content is read.
    pub source: EntrySource,
}

/// Why a change can't be taken back by merging.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ClashReason {
    /// The present content or mode differs from that after the change, and the two don't merge.
    #[error("it was changed since, in the same lines or as a whole")]
    Changed,
    /// The file that the change wrote is not there now.
    #[error("it is gone")]
    Removed,
    /// A rename can't be taken back, since another file has the old path.
    #[error("there is a file in its place")]
    Occupied,
    /// The journal has no content, as a `denied` pattern matches the path.
    #[error("its content is not in the journal, since a `denied` pattern matches it")]
    Denied,
    /// A content that is needed is not in the journal.
    #[error("{0}")]
    Missing(Missing),
    /// The present file can't be read; the text says why.
    #[error("cannot read it: {0}")]
    Unreadable(String),
}

/// Applies the change from `base` to `theirs` to `ours`. `read` gets the contents of a tree.
pub(super) fn three_way(
    base: Option<&FileState>,
    ours: Option<FileEntry>,
    theirs: Option<&FileState>,
    contents: &dyn ContentSource,
    read: &mut dyn FnMut(&Path) -> Result<Vec<u8>, ClashReason>,
) -> Result<Option<FileEntry>, ClashReason> {
    let state = ours.as_ref().map(|entry| &entry.state);
    if same(state, theirs) {
        return Ok(ours);
    }
    if same(state, base) {
        return match (ours, theirs) {
            // A content that stays need not be in the journal.
            (Some(ours), Some(theirs)) if ours.state.has_content_of(theirs) => {
                Ok(Some(FileEntry { state: theirs.clone(), source: ours.source }))
            }
            _ => in_journal(contents, theirs),
        };
    }
    let Some(ours) = ours else { return Err(ClashReason::Removed) };
    let (Some(base), Some(theirs)) = (base, theirs) else {
        return Err(ClashReason::Changed);
    };
    let mode = merged_mode(base, &ours.state, theirs).ok_or(ClashReason::Changed)?;
    let mut merged = if base.has_content_of(theirs) || ours.state.has_content_of(theirs) {
        ours
    } else if ours.state.has_content_of(base) {
        in_journal(contents, Some(theirs))?.ok_or(ClashReason::Changed)?
    } else {
        merged_lines(base, &ours, theirs, contents, read)?
    };
    merged.state.mode = mode;
    Ok(Some(merged))
}

/// An entry with its content in the journal.
pub(super) fn in_journal(
    contents: &dyn ContentSource,
    state: Option<&FileState>,
) -> Result<Option<FileEntry>, ClashReason> {
    let Some(state) = state else { return Ok(None) };
    is_there(contents, state).map_err(ClashReason::Missing)?;
    Ok(Some(FileEntry { state: state.clone(), source: EntrySource::Journal }))
}

fn merged_lines(
    base: &FileState,
    ours: &FileEntry,
    theirs: &FileState,
    contents: &dyn ContentSource,
    read: &mut dyn FnMut(&Path) -> Result<Vec<u8>, ClashReason>,
) -> Result<FileEntry, ClashReason> {
    let can_merge = |it: &FileState| it.kind == FileKind::File && it.size <= MOST_MERGED as u64;
    if ![base, &ours.state, theirs].into_iter().all(can_merge) {
        return Err(ClashReason::Changed);
    }
    let base = content_of(contents, base).map_err(ClashReason::Missing)?;
    let theirs = content_of(contents, theirs).map_err(ClashReason::Missing)?;
    let our = match &ours.source {
        EntrySource::Journal => content_of(contents, &ours.state).map_err(ClashReason::Missing)?,
        EntrySource::Tree(path) => read(path)?,
        EntrySource::Merged(content) => content.clone(),
    };
    let Merge::Clean(content) = merge3(&base, &our, &theirs) else {
        return Err(ClashReason::Changed);
    };
    let state = FileState {
        hash: Some(hash_of(&content)),
        size: content.len() as u64,
        stored: false,
        ..ours.state.clone()
    };
    Ok(FileEntry { state, source: EntrySource::Merged(content) })
}

/// The permissions, merged as one value; None if both sides changed them.
fn merged_mode(base: &FileState, ours: &FileState, theirs: &FileState) -> Option<u32> {
    let [base, our, their] = [base, ours, theirs].map(FileState::permissions);
    if base == our || our == their {
        Some(theirs.mode)
    } else if base == their || ours.kind == FileKind::Symlink {
        Some(ours.mode)
    } else {
        None
    }
}
