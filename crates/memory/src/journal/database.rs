//! Opens the file of a journal: its lock, mode, settings and version; sets a corrupt one aside.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::migrations::{VERSION, migrate};
use super::trouble::{Trouble, TroubleKind, kind};
use super::wal;
use crate::kept::{self, HeldLock, LockAt};
use crate::model::now_ms;

/// `eisJ`, in the header of the file.
pub const APPLICATION_ID: i32 = 0x6569_734a;

/// How long a writer waits for another process to release the file.
const BUSY: Duration = Duration::from_millis(1_000);

/// Bytes that the write-ahead log keeps after a checkpoint.
const LOG_BYTES: i64 = 16 << 20;

/// Bytes of the write-ahead log at which it is emptied.
const EMPTIED_LOG_BYTES: u64 = if cfg!(test) { 1 << 20 } else { 64 << 20 };

/// Bytes of the log, held open by a reader, at which writing stops.
const MOST_LOG_BYTES: u64 = if cfg!(test) { 4 << 20 } else { 512 << 20 };

/// A file up to this size is checked as a whole when it is opened.
const CHECKED_BYTES: u64 = 16 << 20;

/// Why a journal can't be read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path has no file.
    #[error("there is no journal at {}", .0.display())]
    Missing(PathBuf),
    /// The file is empty, or a database of another program.
    #[error("{} is no journal of eisen-core", .0.display())]
    Foreign(PathBuf),
    /// The version of the file's schema is higher than this program's.
    #[error("{} is from a newer version of eisen-core: update this program", .0.display())]
    Newer(PathBuf),
    /// `SQLite` can't open or read the file.
    #[error("cannot read the journal {}: {error}", path.display())]
    Sqlite {
        /// The file of the journal.
        path: PathBuf,
        /// The error as `SQLite` reports it.
        error: rusqlite::Error,
    },
}

/// Why a command can't change a journal.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The file can't be opened for reading, which a change does first.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file can't be written, or a query of it fails.
    #[error("{0}")]
    Trouble(Trouble),
    /// Another program kept the write-ahead log from being emptied for 10 s. The path is the journal's.
    #[error(
        "a program reads the journal {} and keeps what was purged readable in its write-ahead log: \
         end that program, and purge again",
        .0.display()
    )]
    HeldByReader(PathBuf),
}

/// A journal that is open for writing; no other process writes it meanwhile.
pub(super) struct Database {
    pub(super) connection: Connection,
    /// The identity of the file: device and inode.
    file: Option<(u64, u64)>,
    /// The file was made now, and not brought to the disk yet.
    is_new: bool,
    _lock: HeldLock,
}

impl Database {
    /// Opens or creates the file at `path`; sets a corrupt one aside and begins a new one.
    pub(super) fn open(path: &Path) -> Result<Self, Trouble> {
        if let Some(folder) = folder(path) {
            kept::make_folder(folder).map_err(|error| Trouble::of_io(path, &error))?;
        }
        let lock = lock(path)?;
        keep_damaged_log(path)?;
        let (connection, is_new) = match connect(path) {
            Err(trouble) if trouble.kind == TroubleKind::Corrupt => {
                set_aside(path, &trouble.why)?;
                connect(path)
            }
            opened => opened,
        }?;
        Ok(Self { connection, file: identity(path), is_new, _lock: lock })
    }

    /// Brings a file that was made now to the disk, before the first transaction that must outlive a loss of
    /// power. Those before it may be lost, as all that are not synced.
    pub(super) fn sync_if_new(&mut self, path: &Path) -> Result<(), Trouble> {
        if self.is_new {
            sync(path).map_err(|error| Trouble::of_io(path, &error))?;
            self.is_new = false;
        }
        Ok(())
    }

    /// Closes the file, which brings its log into it. A new one goes to the disk once, when it is complete.
    pub(super) fn close(self, path: &Path) {
        let Self { connection, is_new, _lock, .. } = self;
        if is_new {
            let _ = connection.pragma_update(None, "synchronous", "OFF");
        }
        drop(connection);
        if is_new && let Err(error) = sync(path) {
            tracing::warn!(%error, "the journal {} is not on the disk yet", path.display());
        }
    }

    /// Whether the file at `path` was replaced or removed.
    pub(super) fn was_moved(&self, path: &Path) -> bool {
        identity(path) != self.file
    }

    /// Empties the write-ahead log when it has grown: `SQLite` itself can't while readers hold it.
    pub(super) fn bound_log(&self, path: &Path) -> Result<(), Trouble> {
        let size = || fs::metadata(with_suffix(path, "-wal")).map_or(0, |log| log.len());
        if size() < EMPTIED_LOG_BYTES {
            return Ok(());
        }
        // Without waiting for readers: the next batch tries it again.
        let _ = self.connection.busy_timeout(Duration::ZERO);
        let _ = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        let _ = self.connection.busy_timeout(BUSY);
        if size() > MOST_LOG_BYTES {
            let why = "a program that reads it keeps its write-ahead log from being emptied";
            return Err(Trouble::new(TroubleKind::Locked, path, why));
        }
        Ok(())
    }

    /// Sets the file aside after it turned out to be corrupt.
    pub(super) fn set_aside(self, path: &Path, why: &str) -> Result<(), Trouble> {
        // Closing must not write the log into the file.
        let _ = keep_log_at_end(&self.connection, true);
        drop(self.connection);
        set_aside(path, why)
    }
}

/// Sets a value of `meta`.
pub(super) fn note(connection: &Connection, key: &str, value: &str) -> rusqlite::Result<()> {
    let set = "INSERT INTO meta(key, value) VALUES (?1, ?2) \
               ON CONFLICT(key) DO UPDATE SET value = ?2 WHERE value <> ?2";
    connection.execute(set, [key, value]).map(drop)
}

/// Opens the file for reading, also while a team writes it.
pub(super) fn open_to_read(path: &Path) -> Result<Connection, OpenError> {
    if !path.exists() {
        return Err(OpenError::Missing(path.to_owned()));
    }
    let failed = |error| OpenError::Sqlite { path: path.to_owned(), error };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY * 2).map_err(failed)?;
    let id: i32 = pragma(&connection, "application_id").map_err(failed)?;
    let version: i32 = pragma(&connection, "user_version").map_err(failed)?;
    if id != APPLICATION_ID || version < 1 {
        return Err(OpenError::Foreign(path.to_owned()));
    }
    if version > VERSION {
        return Err(OpenError::Newer(path.to_owned()));
    }
    Ok(connection)
}

/// Opens the file for a short change by a command, also while a team writes it: the writer sees
/// that another connection wrote. A file of an earlier version is migrated first.
pub(super) fn open_to_change(path: &Path) -> Result<Connection, ChangeError> {
    let mut read = open_to_read(path)?;
    let of_sqlite = |error| ChangeError::Trouble(Trouble::of_sqlite(path, &error));
    if pragma(&read, "user_version").map_err(of_sqlite)? < VERSION {
        Database::open(path).map_err(ChangeError::Trouble)?;
        read = open_to_read(path)?;
    }
    drop(read);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(of_sqlite)?;
    connection.busy_timeout(BUSY * 10).map_err(of_sqlite)?;
    connection.pragma_update(None, "trusted_schema", false).map_err(of_sqlite)?;
    Ok(connection)
}

/// Whether a process writes the journal at `path`.
pub fn is_written(path: &Path) -> bool {
    kept::is_locked(&with_suffix(path, ".lock")).unwrap_or_default()
}

fn lock(path: &Path) -> Result<HeldLock, Trouble> {
    kept::lock(LockAt::File(&with_suffix(path, ".lock")), Duration::ZERO)
        .map_err(|error| Trouble::of_io(path, &error))
}

/// Opens or creates the file; also returns whether it was created.
fn connect(path: &Path) -> Result<(Connection, bool), Trouble> {
    let of_io = |error: io::Error| Trouble::of_io(path, &error);
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let file = fs::metadata(path).map_err(of_io)?;
            if !file.is_file() {
                return Err(Trouble::new(TroubleKind::Other, path, "it is no file"));
            }
            let mode = file.permissions();
            if mode.mode() & 0o077 != 0 {
                fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(of_io)?;
            }
        }
        Err(error) => return Err(of_io(error)),
    }
    let of_sqlite = |error: rusqlite::Error| Trouble::of_sqlite(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(of_sqlite)?;
    keep_log_at_end(&connection, true).map_err(of_sqlite)?;
    let version = settle(&connection, path)?;
    keep_log_at_end(&connection, false).map_err(of_sqlite)?;
    migrate(&mut connection, version).map_err(of_sqlite)?;
    if version == 0 {
        connection.pragma_update(None, "synchronous", "NORMAL").map_err(of_sqlite)?;
    }
    Ok((connection, version == 0))
}

/// The folder of a path; None: the working directory.
fn folder(path: &Path) -> Option<&Path> {
    path.parent().filter(|folder| !folder.as_os_str().is_empty())
}

/// Brings a file that was made now, its log if there is one, and their names to the disk.
fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()?;
    match File::open(with_suffix(path, "-wal")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        log => log?.sync_all()?,
    }
    folder(path).map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Checks that the file is a sound journal, and sets how it is written; returns its version.
fn settle(connection: &Connection, path: &Path) -> Result<i32, Trouble> {
    let of_sqlite = |error: rusqlite::Error| Trouble::of_sqlite(path, &error);
    connection.busy_timeout(BUSY).map_err(of_sqlite)?;
    let id: i32 = pragma(connection, "application_id").map_err(of_sqlite)?;
    let version: i32 = pragma(connection, "user_version").map_err(of_sqlite)?;
    let count = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = connection.query_row(count, [], |row| row.get(0)).map_err(of_sqlite)?;
    if id != APPLICATION_ID && (id != 0 || tables > 0) {
        let why = "another program's database";
        return Err(Trouble::new(TroubleKind::Other, path, why));
    }
    if version > VERSION {
        let why = format!("version {version}, and this program knows {VERSION}");
        return Err(Trouble::new(TroubleKind::Newer, path, why));
    }
    if let Some(found) = damage(connection, path).map_err(of_sqlite)? {
        return Err(Trouble::new(TroubleKind::Corrupt, path, found));
    }
    let set = || {
        // A file that is made now has nothing to lose: see `sync_if_new`.
        connection.pragma_update(
            None,
            "synchronous",
            if version == 0 { "OFF" } else { "NORMAL" },
        )?;
        if tables == 0 {
            connection.pragma_update_and_check(None, "journal_mode", "MEMORY", |_| Ok(()))?;
            // Lets free pages be given back in steps; possible only in a new file.
            connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        }
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        if id != APPLICATION_ID {
            connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        }
        connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_| Ok(()))?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "cache_size", -16_000)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(())
    };
    set().map_err(of_sqlite)?;
    Ok(version)
}

/// The damage of a file that is small enough to be checked as a whole.
pub(super) fn damage(connection: &Connection, path: &Path) -> rusqlite::Result<Option<String>> {
    if fs::metadata(path).map_or(0, |file| file.len()) > CHECKED_BYTES {
        return Ok(None);
    }
    let check = "PRAGMA quick_check(1)";
    let found: String = connection.query_row(check, [], |row| row.get(0))?;
    Ok(Some(found).filter(|found| found != "ok"))
}

/// Keeps the last connection from writing the log into the file when it is closed.
pub(super) fn keep_log_at_end(connection: &Connection, keep: bool) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep).map(drop)
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Copies a damaged write-ahead log before it is overwritten. The file itself is sound without it.
fn keep_damaged_log(path: &Path) -> Result<(), Trouble> {
    let log = with_suffix(path, "-wal");
    let Some(damage) = wal::damage(&log).map_err(|error| Trouble::of_io(path, &error))? else {
        return Ok(());
    };
    let aside = with_suffix(&free_name(path), "-wal");
    fs::copy(&log, &aside).map_err(|error| Trouble::of_io(path, &error))?;
    tracing::warn!(
        "the write-ahead log of the journal {} is damaged ({damage}): what is behind the damage is \
         lost; a copy is {}",
        path.display(),
        aside.display()
    );
    Ok(())
}

/// A free name for a file that is set aside.
fn free_name(path: &Path) -> PathBuf {
    let name = |at: u64| with_suffix(path, &format!(".corrupt-{at}"));
    let mut at = now_ms();
    while ["", "-wal", "-shm"].iter().any(|log| with_suffix(&name(at), log).exists()) {
        at += 1;
    }
    name(at)
}

/// Renames a corrupt file and its logs, so that nothing is overwritten.
fn set_aside(path: &Path, why: &str) -> Result<(), Trouble> {
    let failed = |error: io::Error| {
        Trouble::new(TroubleKind::Corrupt, path, format!("{why}; cannot set it aside: {error}"))
    };
    let aside = free_name(path);
    fs::rename(path, &aside).map_err(failed)?;
    for log in ["-wal", "-shm", ".kept"] {
        match fs::rename(with_suffix(path, log), with_suffix(&aside, log)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    tracing::warn!(
        "the journal {} is corrupt ({why}): it was set aside as {}, and a new one begins",
        path.display(),
        aside.display()
    );
    Ok(())
}

/// The files that were set aside for a journal.
pub fn files_set_aside(path: &Path) -> Vec<PathBuf> {
    let mut beside = path.file_name().unwrap_or_default().to_owned();
    beside.push(".corrupt-");
    let entries = path.parent().and_then(|folder| fs::read_dir(folder).ok());
    let entries = entries.into_iter().flatten().flatten();
    let is_aside = |entry: &fs::DirEntry| {
        entry.file_name().as_encoded_bytes().starts_with(beside.as_encoded_bytes())
    };
    entries.filter(is_aside).map(|entry| entry.path()).collect()
}

/// Whether the error says that the file is damaged.
pub(super) fn is_corrupt(error: &rusqlite::Error) -> bool {
    kind(error) == TroubleKind::Corrupt
}

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}
