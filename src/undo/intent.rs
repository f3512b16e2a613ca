//! The file beside the journal with the steps of a running undo, so that a killed one can be taken
//! back, or finished if its event was committed. Only the holder of the journal's lock may write
//! it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::path::FilePath;
use super::step::UndoStep;
use crate::journal::{EventType, Filter, OpenError, Store};
use crate::model::{KeptFiles, KeptForm};

/// An undo that is under way, or that a kill ended.
pub const KEPT: [KeptFiles; 1] = [KeptFiles::new(
    "undo",
    KeptForm::Fixed,
    &["teams/*/journal.db.undo*", "teams/*/journal.db.drafts/*"],
)];

/// An undo that is being carried out.
#[derive(Serialize, Deserialize, Debug)]
pub(super) struct Intent {
    /// The payload of the event that records it.
    pub(super) payload: String,
    /// The journal's last event before it.
    pub(super) after: Option<String>,
    pub(super) steps: Vec<UndoStep>,
}

/// The path of a journal's intent.
pub(super) fn intent_path(journal: &Path) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(".undo");
    name.into()
}

/// The folder of the drafts beside a journal.
pub(super) fn drafts_path(journal: &Path) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(".drafts");
    name.into()
}

impl Intent {
    /// All paths that it writes, with the drafts.
    pub(super) fn paths(&self) -> Vec<FilePath> {
        let paths = self.steps.iter().flat_map(|step| [Some(step.path()), step.draft()]);
        paths.flatten().cloned().collect()
    }

    /// Writes the file, so that it survives a power cut.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let mut draft = path.as_os_str().to_owned();
        draft.push(".tmp");
        let draft = PathBuf::from(draft);
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        fs::rename(&draft, path)?;
        sync_folder(path)
    }

    /// The intent that a killed undo left; None without one.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        match fs::read(path) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn remove(path: &Path) -> io::Result<()> {
        // Only without drafts that could not go back.
        let _ = fs::remove_dir(path.with_extension("drafts"));
        fs::remove_file(path)?;
        sync_folder(path)
    }

    /// Whether the event is in the journal.
    pub(super) fn is_committed(&self, store: &Store) -> Result<bool, OpenError> {
        let types = [EventType::UNDO, EventType::REDO].map(|kind| kind.as_str().to_owned());
        let filter = Filter { types: types.into(), after: self.after.clone(), ..Filter::default() };
        let events = store.events(&filter)?.events;
        Ok(events.iter().any(|event| event.payload.get() == self.payload))
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}
