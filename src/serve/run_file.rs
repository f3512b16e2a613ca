//! Owns `$EISEN_DIR/run/NAME.json` and its lock: other processes find a running team by it, and the
//! remains of a killed one.

mod remains;

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::model::{KeptFiles, KeptForm};
pub use remains::{Ledger, Remains, StaleRun, stale_runs};

/// What a running team left for other processes to find it, and for the next start.
pub const KEPT: [KeptFiles; 1] = [KeptFiles::new("run file", KeptForm::Fixed, &["run/*"])];

/// Attempts to take a lock that another process may hold for a moment to test it.
const TRIES: u32 = 10;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// Extension of a run file that is being written.
const NEW: &str = "new";

/// The run file of this process; removed on drop. The team runs as long as `NAME.lock` is locked: a
/// pid may be used again, while a lock ends with its holder.
#[derive(Debug)]
pub struct RunFile {
    file: PathBuf,
    lock_file: PathBuf,
    ledger: Ledger,
    _lock: Flock<File>,
}

/// The content of a run file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RunInfo {
    pub team: String,
    pub pid: u32,
    pub port: u16,
    pub address: SocketAddr,
    /// The owner's control token.
    pub token: String,
    /// Whether a client may prove the token by a challenge, without sending it.
    #[serde(default)]
    pub challenge: bool,
    #[serde(default)]
    pub remains: Remains,
}

#[derive(Debug, thiserror::Error)]
pub enum RunFileError {
    #[error("the team `{team}` runs already{}", .pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default())]
    Running { team: String, pid: Option<u32> },
    #[error("`{0}` cannot be the name of a team: it must name a file of its own")]
    Name(String),
    #[error("{}: {cause}", .path.display())]
    Io { path: PathBuf, cause: io::Error },
}

impl RunFile {
    /// Announces this process as the team `name` at `address`; refuses while a live process has the
    /// name.
    pub fn create(
        eisen_dir: &Path,
        name: &str,
        address: SocketAddr,
        token: &str,
    ) -> Result<Self, RunFileError> {
        Self::with_remains(eisen_dir, (name, address, token), Remains::default())
    }

    /// As [`RunFile::create`], with the remains that are known by now.
    pub fn with_remains(
        eisen_dir: &Path,
        (name, address, token): (&str, SocketAddr, &str),
        remains: Remains,
    ) -> Result<Self, RunFileError> {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
            return Err(RunFileError::Name(name.to_owned()));
        }
        let dir = run_dir(eisen_dir);
        let at = |path: &Path| {
            let path = path.to_owned();
            move |cause| RunFileError::Io { path, cause }
        };
        private_dir(&dir).map_err(at(&dir))?;
        let lock_file = dir.join(format!("{name}.lock"));
        let mut lock = None;
        for attempt in 0..TRIES {
            if attempt > 0 {
                std::thread::sleep(BETWEEN_TRIES);
            }
            lock = try_lock(&lock_file).map_err(at(&lock_file))?;
            if lock.is_some() {
                break;
            }
        }
        let Some(lock) = lock else {
            let pid = fs::read_to_string(&lock_file).ok().and_then(|pid| pid.trim().parse().ok());
            return Err(RunFileError::Running { team: name.to_owned(), pid });
        };
        let pid = std::process::id();
        note_pid(&lock, pid).map_err(at(&lock_file))?;

        let file = dir.join(format!("{name}.json"));
        let (team, token) = (name.to_owned(), token.to_owned());
        let info =
            RunInfo { team, pid, port: address.port(), address, token, challenge: true, remains };
        let ledger = Ledger::new(file.clone(), info);
        let run_file = Self { file: file.clone(), lock_file, ledger, _lock: lock };
        run_file.ledger.note(|_| ()).map_err(at(&file))?;
        Ok(run_file)
    }

    /// The ledger in which this run records its remains.
    pub fn ledger(&self) -> Ledger {
        self.ledger.clone()
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        self.ledger.close();
        // Still under the lock, so that no successor's file is removed.
        let _ = fs::remove_file(&self.file);
        let _ = fs::remove_file(&self.lock_file);
    }
}

/// Keeps a team from being started as long as the result is held; None if it runs.
pub fn hold(eisen_dir: &Path, team: &str) -> io::Result<Option<Held>> {
    let dir = run_dir(eisen_dir);
    private_dir(&dir)?;
    let lock_file = dir.join(format!("{team}.lock"));
    Ok(try_lock(&lock_file)?.map(|lock| Held { lock_file, _lock: lock }))
}

/// See [`hold`].
#[derive(Debug)]
pub struct Held {
    lock_file: PathBuf,
    _lock: Flock<File>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.lock_file);
    }
}

/// Returns the running teams, by name. Files of dead ones are left to the next start.
pub fn live_teams(eisen_dir: &Path) -> io::Result<Vec<RunInfo>> {
    let dir = run_dir(eisen_dir);
    let entries = match fs::read_dir(&dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut teams = Vec::new();
    for entry in entries {
        let file = entry?.path();
        if file.extension().is_none_or(|extension| extension != "json") || is_stale(&file) {
            continue;
        }
        match fs::read(&file).map(|json| serde_json::from_slice(&json)) {
            Ok(Ok(info)) => teams.push(info),
            Ok(Err(error)) => warn!(file = %file.display(), %error, "run file makes no sense"),
            // The team ended just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => warn!(file = %file.display(), %error, "cannot read run file"),
        }
    }
    teams.sort_by(|a: &RunInfo, b| a.team.cmp(&b.team));
    Ok(teams)
}

fn run_dir(eisen_dir: &Path) -> PathBuf {
    eisen_dir.join("run")
}

/// Whether no process holds the lock of a run file.
fn is_stale(file: &Path) -> bool {
    let lock_file = file.with_extension("lock");
    match try_lock(&lock_file) {
        Ok(Some(_lock)) => {
            let _ = fs::remove_file(&lock_file);
            true
        }
        Ok(None) => false,
        Err(error) => {
            warn!(file = %lock_file.display(), %error, "cannot find out whether a team runs");
            false
        }
    }
}

/// Locks a file, and makes it if needed; None if another process holds it.
fn try_lock(path: &Path) -> io::Result<Option<Flock<File>>> {
    loop {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        let lock = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => lock,
            Err((_, Errno::EWOULDBLOCK)) => return Ok(None),
            Err((_, errno)) => return Err(errno.into()),
        };
        // The last holder may have removed the file between opening and locking, and then the lock
        // is void.
        let locked = lock.metadata()?;
        match fs::metadata(path) {
            Ok(there) if (there.dev(), there.ino()) == (locked.dev(), locked.ino()) => {
                return Ok(Some(lock));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes the pid for processes that find the lock taken.
fn note_pid(lock: &File, pid: u32) -> io::Result<()> {
    let line = format!("{pid}\n");
    lock.write_all_at(line.as_bytes(), 0)?;
    // Not cut before it is written: some filesystems then write the file out when it is closed.
    lock.set_len(line.len() as u64)
}

/// Replaces the file atomically, readable by its owner only. The holder of the lock is the only
/// writer, so an incomplete file has a known name.
fn write_private(file: &Path, info: &RunInfo) -> io::Result<()> {
    let new = file.with_extension(NEW);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut json = serde_json::to_vec(info)?;
    json.push(b'\n');
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?.write_all(&json)?;
    fs::rename(new, file)
}

fn private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    // The folder may have been made by hand.
    fs::set_permissions(dir, Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn address() -> SocketAddr {
        "127.0.0.1:4711".parse().unwrap()
    }

    #[test]
    fn a_running_team_is_found_and_then_gone() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(live_teams(dir.path()).unwrap(), []);
        let shop = RunFile::create(dir.path(), "shop", address(), "secret").unwrap();
        let _api = RunFile::create(dir.path(), "api", address(), "secret").unwrap();
        let teams = live_teams(dir.path()).unwrap();
        assert_eq!(
            teams.iter().map(|team| team.team.as_str()).collect::<Vec<_>>(),
            ["api", "shop"]
        );

        let json: serde_json::Value =
            serde_json::from_slice(&fs::read(dir.path().join("run/shop.json")).unwrap()).unwrap();
        assert_eq!(json["pid"], std::process::id());
        assert_eq!(json["port"], 4711);
        assert_eq!(json["token"], "secret");

        drop(shop);
        assert_eq!(live_teams(dir.path()).unwrap().len(), 1);
        let mut left: Vec<_> = fs::read_dir(dir.path().join("run"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["api.json", "api.lock"]);
    }

    #[test]
    fn nobody_else_may_read_the_token() {
        let dir = tempfile::tempdir().unwrap();
        let loose = dir.path().join("run");
        fs::create_dir(&loose).unwrap();
        fs::set_permissions(&loose, Permissions::from_mode(0o755)).unwrap();
        let _team = RunFile::create(dir.path(), "shop", address(), "secret").unwrap();
        let mode = |path: &str| fs::metadata(dir.path().join(path)).unwrap().mode() & 0o777;
        assert_eq!(mode("run"), 0o700);
        assert_eq!(mode("run/shop.json"), 0o600);
    }

    #[test]
    fn one_team_of_a_name_runs() {
        let dir = tempfile::tempdir().unwrap();
        let first = RunFile::create(dir.path(), "shop", address(), "first").unwrap();
        let error = RunFile::create(dir.path(), "shop", address(), "second").unwrap_err();
        let pid = std::process::id();
        assert_eq!(error.to_string(), format!("the team `shop` runs already (pid {pid})"));
        assert_eq!(live_teams(dir.path()).unwrap()[0].token, "first");
        drop(first);
        RunFile::create(dir.path(), "shop", address(), "second").unwrap();
    }

    #[test]
    fn what_a_killed_team_left_is_ignored_and_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        fs::create_dir(&run).unwrap();
        // The pid lives, but is another's: only the lock counts.
        let stale = format!(
            r#"{{"team":"shop","pid":{},"port":4711,"address":"127.0.0.1:4711","token":"t"}}"#,
            std::process::id()
        );
        for with_lock in [true, false] {
            fs::write(run.join("shop.json"), &stale).unwrap();
            if with_lock {
                fs::write(run.join("shop.lock"), "1\n").unwrap();
            }
            assert_eq!(live_teams(dir.path()).unwrap(), []);
            let stale = stale_runs(dir.path()).unwrap();
            assert_eq!(stale[0].info.team, "shop");
            stale.into_iter().for_each(StaleRun::forget);
            assert_eq!(fs::read_dir(&run).unwrap().count(), 0);
        }
        fs::write(run.join("shop.json"), &stale).unwrap();
        let _team = RunFile::create(dir.path(), "shop", address(), "new").unwrap();
        assert_eq!(live_teams(dir.path()).unwrap()[0].token, "new");
    }

    #[test]
    fn what_a_killed_team_had_half_written_goes_with_the_next_look() {
        let dir = tempfile::tempdir().unwrap();
        let team = RunFile::create(dir.path(), "shop", address(), "secret").unwrap();
        let run = dir.path().join("run");
        fs::write(run.join("shop.new"), "{\"team\"").unwrap();
        // It may be writing.
        assert!(stale_runs(dir.path()).unwrap().is_empty());
        assert!(run.join("shop.new").exists());
        team.ledger().note(|remains| remains.started = 7).unwrap();
        assert!(!run.join("shop.new").exists());
        drop(team);
        // Killed before and after the first was whole.
        for json in [None, Some("shop.json")] {
            fs::write(run.join("shop.new"), "{\"team\"").unwrap();
            if let Some(json) = json {
                fs::write(run.join(json), "{").unwrap();
            }
            assert!(stale_runs(dir.path()).unwrap().is_empty());
            assert_eq!(fs::read_dir(&run).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_name_stays_in_its_folder() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["", "..", "../x", "a/b", ".hidden", "nul\0"] {
            let error = RunFile::create(dir.path(), name, address(), "t").unwrap_err();
            assert!(matches!(error, RunFileError::Name(_)), "{name:?}: {error}");
        }
    }
}
