//! Owns `$EISEN_DIR/run/NAME.json` and its lock: other processes find a running team by it, and the
//! remains of a killed one.

mod remains;

use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::kept::{self, HeldLock, KeptFile, LockAt, Volatile, make_private, try_lock};
use crate::model::{KeptFiles, KeptForm};
pub use remains::{Ledger, Remains, StaleRun, stale_runs};

/// The files that a running team leaves for other processes to find it, and for the next start.
pub const KEPT: [KeptFiles; 1] = [KeptFiles::new("run file", KeptForm::Fixed, &["run/*"])];

/// How long another process may hold a lock to test it.
const PATIENCE: Duration = Duration::from_millis(100);

/// Bytes of a run file: one of its temporary folders has a path.
const MOST_BYTES: u64 = 16 << 20;

/// The run file of this process; removed on drop. The team runs as long as `NAME.lock` is locked: a
/// pid may be used again, while a lock ends with its holder.
#[derive(Debug)]
pub struct RunFile {
    file: PathBuf,
    lock_file: PathBuf,
    ledger: Ledger,
    _lock: HeldLock,
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
        make_private(&dir).map_err(at(&dir))?;
        let lock_file = dir.join(format!("{name}.lock"));
        let lock = match kept::lock(LockAt::File(&lock_file), PATIENCE) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let pid = fs::read_to_string(&lock_file).ok();
                let pid = pid.and_then(|pid| pid.trim().parse().ok());
                return Err(RunFileError::Running { team: name.to_owned(), pid });
            }
            lock => lock.map_err(at(&lock_file))?,
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
    make_private(&dir)?;
    let lock_file = dir.join(format!("{team}.lock"));
    Ok(try_lock(LockAt::File(&lock_file))?.map(|lock| Held { lock_file, _lock: lock }))
}

/// See [`hold`].
#[derive(Debug)]
pub struct Held {
    lock_file: PathBuf,
    _lock: HeldLock,
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
        match kept_at(&file).read_json() {
            // Without it the team ended just now.
            Ok(info) => teams.extend(info),
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
    match try_lock(LockAt::File(&lock_file)) {
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

/// Writes the pid for processes that find the lock taken.
fn note_pid(lock: &File, pid: u32) -> io::Result<()> {
    let line = format!("{pid}\n");
    lock.write_all_at(line.as_bytes(), 0)?;
    // Not cut before it is written: some filesystems then write the file out when it is closed.
    lock.set_len(line.len() as u64)
}

/// A run file, which nobody needs after a power cut.
fn kept_at(file: &Path) -> KeptFile<Volatile> {
    KeptFile::new(file, MOST_BYTES)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs::Permissions;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

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
        let draft = run.join(".draft-0");
        fs::write(&draft, "{\"team\"").unwrap();
        // It is writing.
        let writer = try_lock(LockAt::Found(&draft)).unwrap().unwrap();
        assert!(stale_runs(dir.path()).unwrap().is_empty());
        assert!(draft.exists());
        drop(writer);
        drop(team);
        // Killed before and after the first was whole.
        for json in [None, Some("shop.json")] {
            fs::write(run.join(".draft-0"), "{\"team\"").unwrap();
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
