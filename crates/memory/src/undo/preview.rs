//! Shows the changes of an undo as a patch.

use std::io;
use std::path::PathBuf;

use super::UndoError;
use super::arrange::PathChange;
use super::disk::{Disk, MOST_READ};
use super::path::FilePath;
use super::plan::Plan;
use crate::changes::{
    EntrySource, FileEntry, FileKind, FilePatch, FileState, LeftOut, NetChange, patch,
};
use crate::journal::Store;

/// Bytes of a preview.
const LONGEST: usize = 64 << 20;

/// A patch, and the changes that it can't carry.
#[derive(Default)]
pub(super) struct Preview {
    pub(super) patch: Vec<u8>,
    /// Each with its path.
    pub(super) left_out: Vec<String>,
}

/// The patch of a plan.
pub(super) fn preview_of(plan: &Plan, store: &Store, disk: &Disk) -> Result<Preview, UndoError> {
    let mut preview = Preview::default();
    for (path, target) in &plan.targets {
        let tree = plan.trees.iter().find(|tree| path.as_path().starts_with(tree));
        let left_out = match patch_of(path, target, tree, store, disk)? {
            Ok(patch) if preview.patch.len() + patch.lines.bytes().len() <= LONGEST => {
                preview.patch.extend_from_slice(patch.lines.bytes());
                patch.note
            }
            Ok(_) => Some("the preview would be too long".to_owned()),
            Err(left_out) => Some(left_out.why),
        };
        preview.left_out.extend(left_out.map(|why| format!("{path}: {why}")));
    }
    Ok(preview)
}

fn patch_of(
    path: &FilePath,
    target: &PathChange,
    tree: Option<&PathBuf>,
    store: &Store,
    disk: &Disk,
) -> Result<Result<FilePatch, LeftOut>, UndoError> {
    let place = path.as_path().to_owned();
    let unread = |why: io::Error| LeftOut { path: place.clone(), why: why.to_string() };
    let (before, after) = match (before(path, target, store, disk)?, after(target, disk)) {
        (Ok(before), Ok(after)) => (before, after),
        (Err(error), _) | (_, Err(error)) => return Ok(Err(unread(error))),
    };
    let (from, to) = (place.clone(), place);
    let change = NetChange {
        from,
        to,
        before,
        after,
        tree: tree.cloned(),
        ignored: false,
        contested: Vec::new(),
        is_further: false,
    };
    Ok(patch(&change, store))
}

fn before(
    path: &FilePath,
    target: &PathChange,
    store: &Store,
    disk: &Disk,
) -> Result<io::Result<Option<FileEntry>>, UndoError> {
    let Some(state) = &target.before else { return Ok(Ok(None)) };
    let is_known = state.hash.as_deref().map(|hash| store.has_content(hash)).transpose()?;
    if state.kind == FileKind::Folder || is_known == Some(true) {
        return Ok(Ok(Some(FileEntry { state: state.clone(), source: EntrySource::Journal })));
    }
    Ok(read(path, state, disk).map(Some))
}

fn after(target: &PathChange, disk: &Disk) -> io::Result<Option<FileEntry>> {
    match &target.after {
        Some(FileEntry { state, source: EntrySource::Tree(from) })
            if state.kind != FileKind::Folder =>
        {
            let from = FilePath::new(from.clone());
            from.map(|from| read(&from, state, disk)).transpose()
        }
        after => Ok(after.clone()),
    }
}

/// The file as it is on the disk.
fn read(path: &FilePath, state: &FileState, disk: &Disk) -> io::Result<FileEntry> {
    let content = disk.read(path, MOST_READ)?;
    let content = content.ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))?;
    Ok(FileEntry { state: state.clone(), source: EntrySource::Merged(content) })
}
