//! Lock files of slots and sessions whose holder is dead, and the folders of places that are not used again.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use serde::Deserialize;

use crate::care::garbage::files::{age, names_of, size};
use crate::care::garbage::{Garbage, Removal};
use crate::kept::{HeldLock, LockAt, try_lock};
use crate::process;
use crate::slots::Slots;

/// The folder with the locks, below `$EISEN_DIR`.
const FOLDER: &str = "slots";

/// Folders below it that are looked into, and files in all of them.
const DEEPEST: usize = 4;
const MOST: usize = 100_000;

/// Bytes of a lock.
const LONGEST: u64 = 64 << 10;

/// How long a file that says nothing is left alone: its holder may be about to write it.
const WRITING: Duration = Duration::from_mins(1);

/// The holder of a lock.
#[derive(Deserialize)]
struct Holder {
    pid: u32,
    pid_start_time_ticks: Option<u64>,
    tool_name: Option<String>,
}

/// The locks that are held by nobody.
pub(super) fn dead(eisen_dir: &Path) -> Vec<Garbage> {
    let mut files = Vec::new();
    lock_files(&eisen_dir.join(FOLDER), DEEPEST, &mut files);
    files.into_iter().filter_map(garbage).collect()
}

/// The folders of sessions and helpers that have no lock any more.
pub(super) fn unused(eisen_dir: &Path) -> Option<Garbage> {
    let folders = Slots::new(eisen_dir).unused();
    (!folders.is_empty()).then(|| Garbage {
        what: format!("{} folders in {}", folders.len(), eisen_dir.join(FOLDER).display()),
        reason: "nobody waits for the session, or for the agent".to_owned(),
        bytes: folders.iter().map(|folder| size(folder)).sum(),
        team: None,
        removal: Removal::Places(folders),
    })
}

fn garbage(file: PathBuf) -> Option<Garbage> {
    let (_lock, reason) = held_by_nobody(&file).ok()??;
    Some(Garbage {
        what: format!("lock {}", file.display()),
        reason,
        bytes: file.metadata().map_or(0, |it| it.len()),
        team: None,
        removal: Removal::Lock(file),
    })
}

/// Removes a lock, unless somebody holds it by now.
pub(super) fn remove(file: &Path) -> anyhow::Result<()> {
    let place = || file.display().to_string();
    match held_by_nobody(file) {
        Ok(Some((_lock, _))) => fs::remove_file(file).with_context(place),
        Ok(None) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(place),
    }
}

/// The lock of a file that nobody holds, and why it is nobody's.
fn held_by_nobody(file: &Path) -> io::Result<Option<(HeldLock, String)>> {
    let lock =
        try_lock(LockAt::Found(file))?.filter(|lock| lock.metadata().is_ok_and(|it| it.is_file()));
    let Some(lock) = lock else { return Ok(None) };
    let mut text = Vec::new();
    (&*lock).take(LONGEST).read_to_end(&mut text)?;
    let reason = match serde_json::from_slice::<Holder>(&text) {
        Ok(Holder { pid, pid_start_time_ticks: started, .. })
            if process::start_of(pid).is_some_and(|own| started.is_none_or(|it| it == own)) =>
        {
            return Ok(None);
        }
        Ok(Holder { pid, tool_name, .. }) => {
            let who = tool_name.unwrap_or_else(|| "a process".to_owned());
            format!("its holder is gone: {who}, pid {pid}")
        }
        Err(_) if age(file).is_none_or(|age| age < WRITING) => return Ok(None),
        Err(_) => "it can't be read, and nobody holds it".to_owned(),
    };
    Ok(Some((lock, reason)))
}

/// The lock files in a folder and those below it.
fn lock_files(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    for name in names_of(folder).unwrap_or_default() {
        if files.len() >= MOST {
            return;
        }
        let path = folder.join(&name);
        match path.symlink_metadata() {
            Ok(it) if it.is_dir() && depth > 0 => lock_files(&path, depth - 1, files),
            Ok(it) if it.is_file() && is_lock(&path) => files.push(path),
            _ => {}
        }
    }
}

fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "lock" || it == "json")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::File;
    use std::time::SystemTime;

    use nix::fcntl::{Flock, FlockArg};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lock_goes_once_its_holder_is_dead() {
        let eisen_dir = tempfile::tempdir().unwrap();
        let folder = eisen_dir.path().join("slots/codex");
        fs::create_dir_all(&folder).unwrap();
        let own = std::process::id();
        let holder = |pid: u32, started: Option<u64>| {
            let tool = "eisen-core run";
            json!({ "pid": pid, "pid_start_time_ticks": started, "tool_name": tool }).to_string()
        };
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        write("alive.lock", &holder(own, process::start_of(own)));
        write("dead.lock", &holder(1_999_999_999, Some(1)));
        write("recycled.lock", &holder(own, Some(1)));
        write("young.lock", "{");
        write("notes", "{");
        for name in ["corrupt.lock", "locked.lock"] {
            write(name, "{");
            let file = File::options().write(true).open(folder.join(name)).unwrap();
            file.set_modified(SystemTime::now() - WRITING * 2).unwrap();
        }
        let held = File::open(folder.join("locked.lock")).unwrap();
        let held = Flock::lock(held, FlockArg::LockExclusive).unwrap();
        let found = dead(eisen_dir.path());
        let named: Vec<_> = found.iter().map(|it| it.what.rsplit('/').next().unwrap()).collect();
        assert_eq!(named, ["corrupt.lock", "dead.lock", "recycled.lock"]);
        assert!(found[1].reason.contains("eisen-core run, pid 1999999999"), "{found:?}");
        // One that is taken meanwhile stays.
        write("dead.lock", &holder(own, process::start_of(own)));
        for lock in &found {
            let Removal::Lock(path) = &lock.removal else { panic!("{lock:?}") };
            remove(path).unwrap();
        }
        drop(held);
        let mut left = names_of(&folder).unwrap();
        left.sort();
        assert_eq!(left, ["alive.lock", "dead.lock", "locked.lock", "notes", "young.lock"]);
    }
}
