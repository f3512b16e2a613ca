//! The file beside the journal with the steps of a running undo, so that a killed one can be taken
//! back, or finished if its event was committed. Only the holder of the journal's lock may write
//! it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::path::FilePath;
use super::step::UndoStep;
use crate::journal::{EventType, Filter, OpenError, Store};
use crate::kept::{Durable, KeptFile};
use crate::model::{KeptFiles, KeptForm};

/// An undo that is under way, or that a kill ended.
pub const KEPT: [KeptFiles; 1] = [KeptFiles::new(
    "undo",
    KeptForm::Fixed,
    &["teams/*/journal.db.undo*", "teams/*/journal.db.drafts/*"],
)];

/// Bytes of an intent: a step of each of the most files, with the longest paths.
const MOST_BYTES: u64 = 1 << 30;

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

    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        file(path).replace(&serde_json::to_vec(self)?)
    }

    /// The intent that a killed undo left; None without one.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        file(path).read_json()
    }

    pub(super) fn remove(path: &Path) -> io::Result<()> {
        // Only without drafts that could not go back.
        let _ = fs::remove_dir(path.with_extension("drafts"));
        file(path).remove()
    }

    /// Whether the event is in the journal.
    pub(super) fn is_committed(&self, store: &Store) -> Result<bool, OpenError> {
        let types = [EventType::UNDO, EventType::REDO].map(|kind| kind.as_str().to_owned());
        let filter = Filter { types: types.into(), after: self.after.clone(), ..Filter::default() };
        let events = store.events(&filter)?.events;
        Ok(events.iter().any(|event| event.payload.get() == self.payload))
    }
}

/// The file of an intent, which survives a power cut.
fn file(path: &Path) -> KeptFile<Durable> {
    KeptFile::new(path, MOST_BYTES)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::kept::power_cut::survives;

    #[test]
    fn an_intent_is_on_the_disk_before_its_first_step_and_gone_after_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = intent_path(&folder.path().join("journal.db"));
        let intent = Intent { payload: "{}".to_owned(), after: None, steps: Vec::new() };
        survives(&path, || intent.write(&path).unwrap());
        assert_eq!(Intent::read(&path).unwrap().unwrap().payload, "{}");
        survives(&path, || Intent::remove(&path).unwrap());
    }
}
