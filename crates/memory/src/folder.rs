//! The way in for a program without a team: what changes in a folder becomes changes of a journal.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::fcntl::OFlag;
use serde::Serialize;

use crate::changes::{self, Asked, FileKind, FileState, LeftOut, SelectError, same};
use crate::journal::{
    AppendError, Blob, EventType, Journal, Keep, NewEvent, OpenError, Place, Settings, Store,
    hash_of, open,
};
use crate::model::{AgentId, FileContent};
use crate::undo::{Aim, Outcome, UndoError, UndoRequest, Undoer};

/// Bytes of the files of a folder: they are held in memory.
const MOST_BYTES: u64 = 256 << 20;

/// Files and folders of a folder.
const MOST_FILES: usize = 100_000;

/// The files of a folder at one time, with their contents.
pub struct Folder {
    path: PathBuf,
    entries: Entries,
}

type Entries = BTreeMap<PathBuf, FolderEntry>;

/// A file, symbolic link or folder.
struct FolderEntry {
    state: FileState,
    content: Vec<u8>,
}

/// A change, as events of files have it.
#[derive(Serialize)]
struct FolderChange<'a> {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
    before: Option<&'a FileState>,
    after: Option<&'a FileState>,
    by: &'static str,
    cause: &'static str,
    restorable: bool,
}

/// Why the changes of a folder cannot be read, kept or shown.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file cannot be read.
    #[error("cannot read `{}`: {source}", .path.display())]
    Read {
        /// The file, or the folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder has more than is held in memory.
    #[error("`{}` has more than {MOST_FILES} files, or more than 256 MB", .0.display())]
    TooLarge(PathBuf),
    /// The journal cannot be written.
    #[error(transparent)]
    Write(#[from] AppendError),
    /// The journal cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The changes cannot be chosen.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// A journal would be a part of what it records, or have other changes, too.
    #[error("`{}` lies in the folder, or is there already", .0.display())]
    Journal(PathBuf),
}

/// The changes of a folder, in a journal of their own.
pub struct Recorded {
    journal: Journal,
    folder: PathBuf,
    by: String,
    is_empty: bool,
}

/// The changes of a folder as a patch.
#[derive(Default)]
pub struct FolderDiff {
    /// The patch, as git writes one.
    pub patch: Vec<u8>,
    /// The changes that a patch can't carry.
    pub left_out: Vec<LeftOut>,
}

impl Folder {
    /// Reads a folder with all that is below it. A file that goes meanwhile is left out.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, FolderError> {
        let path = path.as_ref();
        let failed = |source| FolderError::Read { path: path.to_owned(), source };
        let path = path.canonicalize().map_err(failed)?;
        let (mut entries, mut left) = (BTreeMap::new(), MOST_BYTES);
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let here = path.join(&folder);
            let failed = |source| FolderError::Read { path: here.clone(), source };
            let Some(listed) = unless_gone(fs::read_dir(&here)).map_err(failed)? else { continue };
            for found in listed {
                let name = folder.join(found.map_err(failed)?.file_name());
                let place = path.join(&name);
                let entry = match unless_gone(read(&place, left)) {
                    Ok(entry) => entry.flatten(),
                    Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                        return Err(FolderError::TooLarge(path));
                    }
                    Err(source) => return Err(FolderError::Read { path: place, source }),
                };
                let Some(entry) = entry else { continue };
                left -= entry.state.size;
                if entry.state.kind == FileKind::Folder {
                    folders.push(name.clone());
                }
                entries.insert(name, entry);
                if entries.len() > MOST_FILES {
                    return Err(FolderError::TooLarge(path));
                }
            }
        }
        Ok(Self { path, entries })
    }

    /// Reads the folder again, and records the differences as changes `by` this name, in a new journal at a path
    /// outside of the folder.
    pub async fn record(&self, journal: &Path, by: &str) -> Result<Recorded, FolderError> {
        let beside = journal.parent().map(Path::canonicalize).and_then(Result::ok);
        if journal.exists() || beside.is_none_or(|beside| beside.starts_with(&self.path)) {
            return Err(FolderError::Journal(journal.to_owned()));
        }
        let now = Self::read(&self.path)?;
        let events = events(&self.entries, &now.entries, by);
        let settings = Settings {
            team: by.to_owned(),
            path: journal.to_owned(),
            keep: Keep::default(),
            quotas: None,
        };
        let journal = open(settings).await?;
        let is_empty = events.is_empty();
        if !is_empty {
            journal.append_synced(events).await?;
        }
        Ok(Recorded { journal, folder: self.path.clone(), by: by.to_owned(), is_empty })
    }
}

impl Recorded {
    /// The changes as a patch.
    pub fn diff(&self) -> Result<FolderDiff, FolderError> {
        if self.is_empty {
            return Ok(FolderDiff::default());
        }
        let store = Store::open(&self.journal.settings().path)?;
        let asked = Asked { agent: Some(self.by.clone()), session: None, turn: None, since: None };
        let scope = asked.scope(&store).map_err(|error| AppendError::Unknown(error.to_string()))?;
        let net = changes::net(&changes::select(&store, &scope)?, &store);
        let mut diff = FolderDiff { left_out: changes::not_in_patch(&net), ..Default::default() };
        for file in net.files.iter().filter(|file| !file.is_folder()) {
            match changes::patch(file, &store) {
                Ok(patch) => diff.patch.extend_from_slice(patch.lines.bytes()),
                Err(left_out) => diff.left_out.push(left_out),
            }
        }
        Ok(diff)
    }

    /// Takes all changes back, or none. A later change of a file is kept if both can be merged. If they can't, nothing
    /// is done and the error names the file; with `force` the file gets its earlier content. Changes below `.git` stay.
    pub async fn undo(&self, force: bool) -> Result<Outcome, UndoError> {
        if self.is_empty {
            return Ok(Outcome::default());
        }
        let (session, turn, since) = (None, None, None);
        let aim = Aim::Agent { agent: self.by.clone(), session, turn, since };
        let undoer = Undoer::alone(self.journal.clone(), &self.folder);
        let (dry_run, outside, rewind) = (false, false, None);
        undoer.run(UndoRequest { aim, force, dry_run, outside, rewind }).await
    }
}

/// The removals, from the deepest path up; then the writes and creations.
fn events(earlier: &Entries, now: &Entries, by: &str) -> Vec<NewEvent> {
    let gone = earlier.keys().rev().filter(|path| !now.contains_key(*path));
    let paths: Vec<_> = gone.chain(now.keys()).cloned().collect();
    let changed = paths.into_iter().filter_map(|path| {
        let (before, after) = (earlier.get(&path), now.get(&path));
        let states = [before, after].map(|it| it.map(|it| &it.state));
        let kind = match states {
            [None, _] => EventType::FILE_CREATE,
            [_, None] => EventType::FILE_DELETE,
            [before, after] if same(before, after) => return None,
            _ => EventType::FILE_WRITE,
        };
        let payload = FolderChange {
            path: path.to_string_lossy().into_owned(),
            path_bytes: path
                .to_str()
                .is_none()
                .then(|| STANDARD.encode(path.as_os_str().as_bytes())),
            before: states[0],
            after: states[1],
            by: "watcher",
            cause: "agent",
            restorable: true,
        };
        let contents = [before, after].into_iter().flatten().filter_map(blob);
        let event = NewEvent::new(Place::Agent(AgentId::new(by)), kind, &payload);
        Some(event.with(contents.collect()))
    });
    changed.collect()
}

/// None: what was asked for is gone.
fn unless_gone<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Reads what is at a path, and no more than so many bytes; None: it is of a kind that is not kept.
fn read(path: &Path, most: u64) -> io::Result<Option<FolderEntry>> {
    let found = fs::symlink_metadata(path)?;
    let (found, kind, content) = if found.is_dir() {
        (found, FileKind::Folder, Vec::new())
    } else if found.is_symlink() {
        (found, FileKind::Symlink, fs::read_link(path)?.into_os_string().into_vec())
    } else if found.is_file() {
        // Something else may have taken its place: a link, or a pipe that nobody writes.
        let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
        let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Ok(None);
        }
        let mut content = Vec::new();
        file.take(most.saturating_add(1)).read_to_end(&mut content)?;
        (found, FileKind::File, content)
    } else {
        return Ok(None);
    };
    if content.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let has_content = kind != FileKind::Folder;
    let state = FileState {
        hash: has_content.then(|| hash_of(&content)),
        size: content.len() as u64,
        mode: found.permissions().mode() & 0o7777,
        kind,
        stored: has_content,
    };
    Ok(Some(FolderEntry { state, content }))
}

fn blob(entry: &FolderEntry) -> Option<Blob> {
    let hash = entry.state.hash.clone()?;
    Some(Blob { hash, data: FileContent::Bytes(entry.content.clone()) })
}
