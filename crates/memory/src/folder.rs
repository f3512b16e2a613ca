//! The way in for a program without a team: what changes in a folder becomes changes of a journal.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use crate::changes::{self, Asked, FileKind, FileState, SelectError, same};
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
    entries: BTreeMap<PathBuf, FolderEntry>,
}

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
}

/// The changes of a folder, in a journal of their own.
pub struct Recorded {
    journal: Journal,
    folder: PathBuf,
    by: String,
}

impl Folder {
    /// Reads a folder with all that is below it.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, FolderError> {
        let path = path.as_ref();
        let failed = |source| FolderError::Read { path: path.to_owned(), source };
        let path = path.canonicalize().map_err(failed)?;
        let (mut entries, mut left) = (BTreeMap::new(), MOST_BYTES);
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let here = path.join(&folder);
            let failed = |source| FolderError::Read { path: here.clone(), source };
            for found in fs::read_dir(&here).map_err(failed)? {
                let name = folder.join(found.map_err(failed)?.file_name());
                let place = path.join(&name);
                let entry = match read(&place, left) {
                    Ok(entry) => entry,
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
            }
            if entries.len() > MOST_FILES {
                return Err(FolderError::TooLarge(path));
            }
        }
        Ok(Self { path, entries })
    }

    /// Reads the folder again, and records what is different as changes `by` this name, in a new journal at a path
    /// outside of the folder.
    pub async fn record(self, journal: &Path, by: &str) -> Result<Recorded, FolderError> {
        let now = Self::read(&self.path)?;
        let events = events(self.entries, &now, by);
        let settings = Settings {
            team: by.to_owned(),
            path: journal.to_owned(),
            keep: Keep::default(),
            quotas: None,
        };
        let journal = open(settings).await?;
        if !events.is_empty() {
            journal.append_synced(events).await?;
        }
        Ok(Recorded { journal, folder: self.path, by: by.to_owned() })
    }
}

impl Recorded {
    /// The changes as a patch, as git writes one.
    pub fn diff(&self) -> Result<Vec<u8>, FolderError> {
        let store = Store::open(&self.journal.settings().path)?;
        let asked = Asked { agent: Some(self.by.clone()), session: None, turn: None, since: None };
        let scope = asked.scope(&store).map_err(|error| AppendError::Unknown(error.to_string()))?;
        let net = changes::net(&changes::select(&store, &scope)?, &store);
        let patches = net.files.iter().filter_map(|file| changes::patch(file, &store).ok());
        Ok(patches.flat_map(|patch| patch.lines.bytes().to_vec()).collect())
    }

    /// Takes the changes back. A file that was changed since then stays, and is named in the outcome.
    pub async fn undo(&self) -> Result<Outcome, UndoError> {
        let (session, turn, since) = (None, None, None);
        let aim = Aim::Agent { agent: self.by.clone(), session, turn, since };
        let undoer = Undoer::alone(self.journal.clone(), &self.folder);
        let (force, dry_run, outside, rewind) = (false, false, false, None);
        undoer.run(UndoRequest { aim, force, dry_run, outside, rewind }).await
    }
}

/// The removals, from the deepest path up; then the writes and creations.
fn events(mut entries: BTreeMap<PathBuf, FolderEntry>, now: &Folder, by: &str) -> Vec<NewEvent> {
    let gone = entries.keys().rev().filter(|path| !now.entries.contains_key(*path));
    let paths: Vec<_> = gone.chain(now.entries.keys()).cloned().collect();
    let changed = paths.into_iter().filter_map(|path| {
        let (before, after) = (entries.remove(&path), now.entries.get(&path));
        let states = [before.as_ref(), after].map(|it| it.map(|it| &it.state));
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
        let contents = [before.as_ref(), after].into_iter().flatten().filter_map(blob);
        let event = NewEvent::new(Place::Agent(AgentId::new(by)), kind, &payload);
        Some(event.with(contents.collect()))
    });
    changed.collect()
}

/// None: it is gone, or of a kind that is not kept.
fn read(path: &Path, most: u64) -> io::Result<Option<FolderEntry>> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if found.is_file() && found.len() > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let (kind, content) = match found.file_type() {
        kind if kind.is_dir() => (FileKind::Folder, Vec::new()),
        kind if kind.is_symlink() => {
            (FileKind::Symlink, fs::read_link(path)?.into_os_string().into_vec())
        }
        kind if kind.is_file() => (FileKind::File, fs::read(path)?),
        _ => return Ok(None),
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
