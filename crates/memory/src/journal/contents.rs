//! Stores, reads and removes the contents that events name, each once; large ones as chunks, which
//! contents share.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::chunks::{HASH_BYTES, LEAST_CHUNKED, chunks, packed, unpacked};
use super::event::Blob;
use super::{Keep, OpenError, Store, kept};
use crate::model::{FileContent, OutsideFiles};

/// The encoding of a content that is a file beside the journal.
const KEPT: &str = "kept";

/// The key of `meta` for what is kept of files outside the workspace.
pub(super) const OUTSIDE: &str = "outside";

/// The encoding of a content whose `data` is the hashes of its chunks.
const CHUNKS: &str = "chunks";

/// Maximum bytes of a content that chunks make.
const LARGEST: usize = 1 << 30;

/// A row of `contents`.
pub(super) struct StoredContent {
    size: usize,
    encoding: String,
    data: Vec<u8>,
}

impl Store {
    /// The content with this hash; None if it is not stored.
    pub fn content(&self, hash: &str) -> Result<Option<Vec<u8>>, OpenError> {
        let read = || -> rusqlite::Result<Option<Vec<u8>>> {
            let stored = StoredContent::find(&self.connection, hash)?;
            stored.map_or(Ok(None), |stored| stored.whole(&self.connection, hash))
        };
        read().map_err(|error| self.failed(error))
    }

    /// Whether there is a content with this hash.
    pub fn has_content(&self, hash: &str) -> Result<bool, OpenError> {
        let found: Vec<i64> =
            self.all("SELECT 1 FROM contents WHERE hash = ?1", [hash], |row| row.get(0))?;
        Ok(!found.is_empty())
    }

    /// The team's [`Keep`], as far as the journal shows it.
    pub fn keep(&self) -> Result<Keep, OpenError> {
        let found: Vec<i64> = self.all("SELECT 1 FROM contents LIMIT 1", [], |row| row.get(0))?;
        let outside = self.meta(OUTSIDE)?;
        let outside =
            OutsideFiles::ALL.into_iter().find(|it| Some(it.as_str()) == outside.as_deref());
        Ok(Keep { texts: !found.is_empty(), outside: outside.unwrap_or_default() })
    }
}

impl StoredContent {
    /// The columns of [`Self::of_row`].
    pub(super) const COLUMNS: &str = "size, encoding, data";

    /// Reads a row whose columns from `first` on are [`Self::COLUMNS`].
    pub(super) fn of_row(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        let (size, encoding) = (row.get(first)?, row.get(first + 1)?);
        Ok(Self { size, encoding, data: row.get(first + 2)? })
    }

    /// The bytes of a content; None if it is not stored.
    pub(super) fn size(connection: &Connection, hash: &str) -> rusqlite::Result<Option<u64>> {
        let sql = "SELECT size FROM contents WHERE hash = ?1";
        connection.prepare_cached(sql)?.query_row([hash], |row| row.get(0)).optional()
    }

    fn find(connection: &Connection, hash: &str) -> rusqlite::Result<Option<Self>> {
        let sql = format!("SELECT {} FROM contents WHERE hash = ?1", Self::COLUMNS);
        connection.prepare_cached(&sql)?.query_row([hash], |row| Self::of_row(row, 0)).optional()
    }

    /// The original bytes; None if a chunk or the file is missing, or for an encoding of a later version.
    pub(super) fn whole(
        self,
        connection: &Connection,
        hash: &str,
    ) -> rusqlite::Result<Option<Vec<u8>>> {
        let Self { size, encoding, data } = self;
        if encoding == KEPT {
            return Ok(kept::read(connection, hash));
        }
        if encoding != CHUNKS {
            return Ok(unpacked(&encoding, size, data));
        }
        if size > LARGEST {
            return Ok(None);
        }
        let sql = format!("SELECT {} FROM chunks WHERE hash = ?1", Self::COLUMNS);
        let mut statement = connection.prepare_cached(&sql)?;
        let mut whole = Vec::with_capacity(size);
        for hash in data.chunks(HASH_BYTES) {
            let found = statement.query_row([hash], |row| Self::of_row(row, 0)).optional()?;
            let chunk = found.and_then(|it| unpacked(&it.encoding, it.size, it.data));
            let Some(chunk) = chunk.filter(|chunk| whole.len() + chunk.len() <= size) else {
                return Ok(None);
            };
            whole.extend(chunk);
        }
        Ok((whole.len() == size).then_some(whole))
    }
}

/// Stores a content that is not there yet.
pub(super) fn insert_content(connection: &Connection, blob: &Blob) -> rusqlite::Result<()> {
    let mut known = connection.prepare_cached("SELECT 1 FROM contents WHERE hash = ?1")?;
    if known.exists([&blob.hash])? {
        return Ok(());
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO contents(hash, size, encoding, data, created) \
         VALUES (?1, ?2, ?3, ?4, unixepoch('subsec') * 1000)",
    )?;
    let Blob { hash, data } = blob;
    let data = match data {
        FileContent::Bytes(data) => data,
        // The file may have been removed since, with the last event that named it.
        FileContent::Kept { size } => {
            if kept::is_there(connection, hash) {
                insert.execute(params![hash, size, KEPT, &[] as &[u8]])?;
            }
            return Ok(());
        }
    };
    if data.len() >= LEAST_CHUNKED {
        let mut hashes = Vec::new();
        for chunk in chunks(data) {
            hashes.extend_from_slice(insert_chunk(connection, chunk)?.as_bytes());
        }
        insert.execute(params![hash, data.len(), CHUNKS, hashes])?;
    } else {
        let (encoding, packed) = packed(data);
        insert.execute(params![hash, data.len(), encoding, packed.as_ref().unwrap_or(data)])?;
    }
    Ok(())
}

/// Counts a use of a chunk, and stores it with the first one.
fn insert_chunk(connection: &Connection, chunk: &[u8]) -> rusqlite::Result<blake3::Hash> {
    let hash = blake3::hash(chunk);
    let mut count = connection.prepare_cached(
        "INSERT INTO chunk_uses(hash, uses) VALUES (?1, 1) \
         ON CONFLICT(hash) DO UPDATE SET uses = uses + 1 RETURNING uses",
    )?;
    let uses: i64 = count.query_row([hash.as_bytes()], |row| row.get(0))?;
    if uses == 1 {
        let (encoding, packed) = packed(chunk);
        let data = packed.as_deref().unwrap_or(chunk);
        let mut insert = connection.prepare_cached(
            "INSERT OR REPLACE INTO chunks(hash, size, encoding, data) VALUES (?1, ?2, ?3, ?4)",
        )?;
        insert.execute(params![hash.as_bytes(), chunk.len(), encoding, data])?;
    }
    Ok(hash)
}

/// Removes a content, with the chunks that no other content has; returns whether it was there.
pub(super) fn delete_content(connection: &Connection, hash: &str) -> rusqlite::Result<bool> {
    let Some(stored) = StoredContent::find(connection, hash)? else { return Ok(false) };
    connection.prepare_cached("DELETE FROM contents WHERE hash = ?1")?.execute([hash])?;
    if stored.encoding == KEPT {
        kept::remove(connection, hash);
    }
    if stored.encoding == CHUNKS {
        let mut count = connection.prepare_cached(
            "UPDATE chunk_uses SET uses = uses - 1 WHERE hash = ?1 RETURNING uses",
        )?;
        let mut forget = connection.prepare_cached("DELETE FROM chunk_uses WHERE hash = ?1")?;
        let mut delete = connection.prepare_cached("DELETE FROM chunks WHERE hash = ?1")?;
        for chunk in stored.data.chunks(HASH_BYTES) {
            let left: Option<i64> = count.query_row([chunk], |row| row.get(0)).optional()?;
            if left.is_some_and(|left| left <= 0) {
                forget.execute([chunk])?;
                delete.execute([chunk])?;
            }
        }
    }
    Ok(true)
}
