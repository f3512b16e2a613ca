//! How far a stream is in the journal, in a file that is replaced as a whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::journal::{OpenError, Store};

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
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text)?;
        Ok(Some(serde_json::from_str(&text)?))
    }

    /// Replaces a file.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let new = path.with_added_extension("new");
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_data()?;
        fs::rename(&new, path)
    }
}

/// What tells a journal from another one at its place.
pub(super) fn identity(store: &Store) -> Result<String, OpenError> {
    Ok(store.meta("created")?.unwrap_or_default())
}
