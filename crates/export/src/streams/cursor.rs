//! How far a stream is in the journal, in a file that is replaced as a whole.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::journal::{OpenError, Store};
use crate::kept::{KeptFile, Whole};

/// Bytes of a cursor's file.
const LONGEST: u64 = 4096;

/// The last event that was delivered, or passed over.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Default, Debug)]
pub(super) struct Cursor {
    /// When the journal was created: another one has other events.
    pub(super) journal: String,
    /// 0: before the first event.
    pub(super) number: u64,
    pub(super) id: String,
}

impl Cursor {
    /// The beginning of a journal.
    pub(super) fn start(store: &Store) -> Result<Self, OpenError> {
        Ok(Self { journal: identity(store)?, ..Self::default() })
    }

    /// The present end of a journal.
    pub(super) fn end(store: &Store) -> Result<Self, OpenError> {
        let (number, id) = store.end()?.unwrap_or_default();
        Ok(Self { journal: identity(store)?, number, id })
    }

    /// Reads a file; None if there is none.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        file(path).read_json()
    }

    /// Replaces a file.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        file(path).replace(&serde_json::to_vec(self)?)
    }
}

/// The file of a cursor. From an earlier one events are delivered again, which streams promise.
fn file(path: &Path) -> KeptFile<Whole> {
    KeptFile::new(path, LONGEST)
}

/// The mark that tells a journal from another one at its place.
pub(super) fn identity(store: &Store) -> Result<String, OpenError> {
    Ok(store.meta("created")?.unwrap_or_default())
}
