//! Reads the contents that events name.

use rusqlite::{Connection, OptionalExtension as _, Row};

use super::{OpenError, Store, kept};

/// The encoding of a content that is a file beside the journal.
pub(super) const KEPT: &str = "kept";

/// Maximum bytes of a decompressed content.
const LARGEST_CONTENT: usize = 1 << 30;

impl Store {
    /// The content with this hash; None if it is not stored.
    pub fn content(&self, hash: &str) -> Result<Option<Vec<u8>>, OpenError> {
        let sql = "SELECT size, encoding, data FROM contents WHERE hash = ?1";
        let read = |row: &Row<'_>| {
            let (size, encoding): (usize, String) = (row.get(0)?, row.get(1)?);
            let data: Vec<u8> = row.get(2)?;
            Ok(unpacked(&self.connection, hash, &encoding, size, data))
        };
        let found = self.connection.query_row(sql, [hash], read).optional();
        Ok(found.map_err(|error| self.failed(error))?.flatten())
    }

    /// Whether there is a content with this hash.
    pub fn has_content(&self, hash: &str) -> Result<bool, OpenError> {
        let found: Vec<i64> =
            self.all("SELECT 1 FROM contents WHERE hash = ?1", [hash], |row| row.get(0))?;
        Ok(!found.is_empty())
    }

    /// Whether it has the contents of any files.
    pub fn keeps_contents(&self) -> Result<bool, OpenError> {
        let found: Vec<i64> = self.all("SELECT 1 FROM contents LIMIT 1", [], |row| row.get(0))?;
        Ok(!found.is_empty())
    }
}

/// The original bytes of a content; None for an encoding of a later version.
pub(super) fn unpacked(
    connection: &Connection,
    hash: &str,
    encoding: &str,
    size: usize,
    data: Vec<u8>,
) -> Option<Vec<u8>> {
    match encoding {
        KEPT => kept::read(connection, hash),
        "raw" => Some(data),
        "zstd" if size <= LARGEST_CONTENT => zstd::bulk::decompress(&data, size).ok(),
        _ => None,
    }
}
