//! Turns the planned files into steps: removals, deepest first; exchanges; additions, folders
//! first.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::disk::Disk;
use super::path::FilePath;
use super::step::UndoStep;
use crate::changes::{EntrySource, FileEntry, FileKind, FileState};

/// The mode of a missing folder that is needed and not known.
const FOLDER_MODE: u32 = 0o755;

/// The rights that a folder's owner needs to change its entries.
const OWNER: u32 = 0o700;

/// The planned change of a path.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct PathChange {
    pub(super) before: Option<FileState>,
    pub(super) after: Option<FileEntry>,
}

pub(super) type PathChanges = BTreeMap<FilePath, PathChange>;

/// The steps, and the contents of drafts.
#[derive(Default, Debug)]
pub(super) struct Arranged {
    pub(super) steps: Vec<UndoStep>,
    /// The drafts to write before the first step, and the file that each will replace.
    pub(super) drafts: Vec<Draft>,
}

#[derive(Debug)]
pub(super) struct Draft {
    pub(super) path: FilePath,
    pub(super) replaces: Option<FilePath>,
    pub(super) entry: FileEntry,
}

/// The reason that a path can't be changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct InTheWay {
    pub(super) path: FilePath,
    pub(super) why: String,
}

fn is_folder(state: Option<&FileState>) -> bool {
    state.is_some_and(|state| state.kind == FileKind::Folder)
}

impl PathChange {
    fn goes(&self) -> bool {
        self.before.is_some() && self.is_replaced()
    }

    fn comes(&self) -> bool {
        self.after.is_some() && self.is_replaced()
    }

    /// Whether only one side is a folder, or one side is missing.
    fn is_replaced(&self) -> bool {
        let after = self.after.as_ref().map(|entry| &entry.state);
        self.before.is_none()
            || after.is_none()
            || is_folder(self.before.as_ref()) != is_folder(after)
    }

    fn is_folder_that_goes(&self) -> bool {
        is_folder(self.before.as_ref()) && self.goes()
    }
}

/// Adds the missing folders that are needed; takes out and returns the folders that stay, since
/// they have other entries. Takes out the changes that are not possible, and returns them as in the
/// way.
pub(super) fn complete(disk: &Disk, targets: &mut PathChanges) -> (Vec<FilePath>, Vec<InTheWay>) {
    let mut in_the_way = Vec::new();
    let coming: Vec<_> =
        targets.iter().filter(|(_, it)| it.after.is_some()).map(|(path, _)| path.clone()).collect();
    for path in coming {
        if let Err(why) = add_parents(disk, targets, &path) {
            targets.remove(&path);
            in_the_way.push(InTheWay { path, why });
        }
    }
    let mut stay = Vec::new();
    let goes = targets.iter().filter(|(_, target)| target.is_folder_that_goes());
    let mut folders: Vec<_> = goes.map(|(path, _)| path.clone()).collect();
    folders.sort_by_key(|path| std::cmp::Reverse(path.depth()));
    for path in folders {
        let is_emptied = disk.names(&path).is_ok_and(|names| {
            names.iter().all(|name| targets.get(name).is_some_and(|it| it.after.is_none()))
        });
        if is_emptied {
            continue;
        }
        if targets.remove(&path).is_some_and(|target| target.after.is_none()) {
            stay.push(path);
        } else {
            let why = "a folder with other files is in its place".to_owned();
            in_the_way.push(InTheWay { path, why });
        }
    }
    (stay, in_the_way)
}

/// Adds the missing folders above an added path; a folder planned for removal stays instead.
fn add_parents(disk: &Disk, targets: &mut PathChanges, path: &FilePath) -> Result<(), String> {
    let mut missing = Vec::new();
    for parent in path.parents() {
        let Some(target) = targets.get(&parent) else {
            match disk.is_folder(&parent).map_err(|error| error.to_string())? {
                Some(true) => break,
                Some(false) => return Err(format!("`{parent}` is no folder")),
                None => missing.push(parent),
            }
            continue;
        };
        let after = target.after.as_ref().map(|entry| &entry.state);
        if is_folder(after) {
            break;
        }
        if after.is_some() || !is_folder(target.before.as_ref()) {
            return Err(format!("`{parent}` is no folder"));
        }
        targets.remove(&parent);
        break;
    }
    for folder in missing {
        let kind = FileKind::Folder;
        let state = FileState { hash: None, size: 0, mode: FOLDER_MODE, kind, stored: true };
        let after = Some(FileEntry { state, source: EntrySource::Journal });
        targets.insert(folder, PathChange { before: None, after });
    }
    Ok(())
}

/// Arranges the steps. The names of drafts begin at `nonce`. They are in the folder `away`, where
/// files can be moved from there.
pub(super) fn arrange(targets: &PathChanges, nonce: u64, away: Option<&Away<'_>>) -> Arranged {
    let (moved, arranged) = (HashMap::new(), Arranged::default());
    let mut work = Arranging { targets, nonce, away, moved, arranged };
    let mut goes: Vec<_> = targets.iter().filter(|(_, target)| target.goes()).collect();
    goes.sort_by_key(|(path, _)| std::cmp::Reverse(path.depth()));
    work.open_folders();
    for (path, target) in goes {
        work.take_out(path, target);
    }
    for (path, target) in targets.iter().filter(|(_, target)| !target.is_replaced()) {
        work.replace(path, target);
    }
    // Paths are sorted, so that folders come before their entries.
    for (path, target) in targets.iter().filter(|(_, target)| target.comes()) {
        work.put_in(path, target);
    }
    work.close_folders();
    work.arranged
}

/// A folder of the program's own for drafts, which nobody else sees.
pub(super) struct Away<'a> {
    disk: &'a Disk,
    folder: FilePath,
    mount: u64,
}

impl<'a> Away<'a> {
    /// None if the system does not say from where files can be moved there.
    pub(super) fn new(disk: &'a Disk, folder: &Path) -> Option<Self> {
        let folder = FilePath::new(folder.canonicalize().ok()?)?;
        let mount = disk.mount(folder.as_path())?;
        Some(Self { disk, folder, mount })
    }

    /// Whether files can be moved between it and a folder; None: the workspace's.
    fn is_near(&self, folder: Option<&FilePath>) -> bool {
        let folder = folder.map_or(Path::new(""), FilePath::as_path);
        self.disk.mount(folder) == Some(self.mount)
    }
}

struct Arranging<'a> {
    targets: &'a PathChanges,
    nonce: u64,
    away: Option<&'a Away<'a>>,
    /// Drafts of files that are moved, not removed, by their old paths.
    moved: HashMap<&'a FilePath, FilePath>,
    arranged: Arranged,
}

impl<'a> Arranging<'a> {
    fn step(&mut self, step: UndoStep) {
        self.arranged.steps.push(step);
    }

    /// A new name in the folder for drafts, else in the nearest folder that exists before and after
    /// the undo.
    fn draft(&mut self, path: &FilePath) -> FilePath {
        self.nonce = self.nonce.wrapping_add(1);
        let stays =
            |folder: &FilePath| self.targets.get(folder).is_none_or(|target| !target.is_replaced());
        let nearest = path.parents().find(stays);
        if let Some(away) = self.away.filter(|away| away.is_near(nearest.as_ref())) {
            return away.folder.join(&draft_name(self.nonce));
        }
        nearest.map_or_else(
            || path.beside_first(&draft_name(self.nonce)),
            |folder| folder.join(&draft_name(self.nonce)),
        )
    }

    /// Gives the owner the rights in folders that are changed or removed.
    fn open_folders(&mut self) {
        for (path, target) in self.targets {
            let Some(before) = &target.before else { continue };
            if before.kind == FileKind::Folder && before.mode & OWNER != OWNER {
                let (path, is) = (path.clone(), before.mode | OWNER);
                self.step(UndoStep::Chmod { path, was: before.mode, is });
            }
        }
    }

    /// Sets the modes of folders, the deepest first, after all changes in them.
    fn close_folders(&mut self) {
        for (path, target) in self.targets.iter().rev() {
            let Some(after) = target.after.as_ref().map(|entry| &entry.state) else { continue };
            let was = match &target.before {
                Some(before) if before.kind == FileKind::Folder => before.mode | OWNER,
                _ => after.mode | OWNER,
            };
            if after.kind == FileKind::Folder && was != after.mode {
                self.step(UndoStep::Chmod { path: path.clone(), was, is: after.mode });
            }
        }
    }

    fn take_out(&mut self, path: &'a FilePath, target: &PathChange) {
        let Some(before) = &target.before else { return };
        if before.kind == FileKind::Folder {
            return self.step(UndoStep::Rmdir { path: path.clone(), mode: before.mode | OWNER });
        }
        let draft = self.draft(path);
        self.moved.insert(path, draft.clone());
        self.step(UndoStep::Out { path: path.clone(), draft, was: before.clone() });
    }

    fn replace(&mut self, path: &FilePath, target: &PathChange) {
        let (Some(before), Some(entry)) = (&target.before, &target.after) else { return };
        let is = entry.state.clone();
        if is.kind == FileKind::Folder {
            return;
        }
        if is.has_content_of(before) && is.kind == FileKind::File {
            let (was, is) = (before.permissions(), is.permissions());
            return self.step(UndoStep::Chmod { path: path.clone(), was, is });
        }
        let draft = self.draft(path);
        self.stage(&draft, Some(path), entry);
        self.step(UndoStep::Swap { path: path.clone(), draft, was: before.clone(), is });
    }

    fn put_in(&mut self, path: &FilePath, target: &PathChange) {
        let Some(entry) = &target.after else { return };
        let is = entry.state.clone();
        if is.kind == FileKind::Folder {
            return self.step(UndoStep::Mkdir { path: path.clone(), mode: is.mode | OWNER });
        }
        if let Some((draft, moved)) = self.moved_file(entry) {
            let (was, is) = (moved.permissions(), is.permissions());
            self.step(UndoStep::In { path: path.clone(), draft, is: moved });
            if was != is {
                self.step(UndoStep::Chmod { path: path.clone(), was, is });
            }
            return;
        }
        let draft = self.draft(path);
        self.stage(&draft, None, entry);
        self.step(UndoStep::In { path: path.clone(), draft, is });
    }

    /// The draft of a file from another path, if that file is to come here.
    fn moved_file(&mut self, entry: &FileEntry) -> Option<(FilePath, FileState)> {
        let EntrySource::Tree(from) = &entry.source else { return None };
        let from = FilePath::new(from.clone())?;
        let moved = self.targets.get(&from)?.before.clone()?;
        let is_it = moved.kind == FileKind::File && moved.has_content_of(&entry.state);
        is_it.then(|| self.moved.remove(&from)).flatten().map(|draft| (draft, moved))
    }

    fn stage(&mut self, draft: &FilePath, replaces: Option<&FilePath>, entry: &FileEntry) {
        let (path, replaces, entry) = (draft.clone(), replaces.cloned(), entry.clone());
        self.arranged.drafts.push(Draft { path, replaces, entry });
    }
}

/// Names a draft like those of other writes of this program.
fn draft_name(number: u64) -> String {
    format!(".eisen-{number:016x}.tmp")
}
