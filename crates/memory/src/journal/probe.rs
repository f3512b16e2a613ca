//! Checks whether a journal could be written, without writing it.

use std::io;
use std::path::Path;
use std::time::Duration;

use nix::unistd::{AccessFlags, access};
use rusqlite::{Connection, OpenFlags};

use super::OpenError;
use super::database::{damage, is_written, keep_log_at_end, open_to_read};
use super::trouble::{Trouble, TroubleKind, is_full};

/// How long a writer may hold the file: less than the team itself waits.
const PATIENCE: Duration = Duration::from_millis(500);

/// The reason that the journal at `path` can't be written; None if it can. `by_team`: its own team
/// writes it now.
pub fn probe(path: &Path, by_team: bool) -> Option<Trouble> {
    let trouble = |kind, why: &str| Some(Trouble::new(kind, path, why));
    if path.metadata().is_ok_and(|file| !file.is_file()) {
        return trouble(TroubleKind::Other, "it is no file");
    }
    let is_there = match open_to_read(path) {
        Ok(connection) => match damage(&connection, path) {
            Ok(None) => true,
            Ok(Some(found)) => return trouble(TroubleKind::Corrupt, &found),
            Err(error) => return Some(Trouble::of_sqlite(path, &error)),
        },
        Err(OpenError::Missing(_)) => false,
        Err(OpenError::Newer(_)) => return trouble(TroubleKind::Newer, "its version is not known"),
        Err(OpenError::Foreign(_)) => return trouble(TroubleKind::Other, "another program's file"),
        Err(OpenError::Sqlite { error, .. }) => return Some(Trouble::of_sqlite(path, &error)),
    };
    let folder = path.ancestors().skip(1).find(|folder| folder.exists())?;
    let writable = AccessFlags::W_OK | AccessFlags::X_OK;
    let reachable = access(folder, writable)
        .and_then(|()| if is_there { access(path, AccessFlags::W_OK) } else { Ok(()) });
    if let Err(errno) = reachable {
        return Some(Trouble::of_io(path, &io::Error::from(errno)));
    }
    if !folder.is_dir() {
        return trouble(TroubleKind::Other, &format!("{} is no folder", folder.display()));
    }
    if is_full(path) {
        return trouble(TroubleKind::DiskFull, "almost no bytes are free");
    }
    if !by_team && is_written(path) {
        return trouble(TroubleKind::Locked, "another process writes it");
    }
    if is_there { lock(path).err().map(|error| Trouble::of_sqlite(path, &error)) } else { None }
}

/// Takes the lock of a writer for a moment.
fn lock(path: &Path) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(PATIENCE)?;
    keep_log_at_end(&connection, true)?;
    connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK")
}
