//! Finds what a killed run had written and not recorded any more: the disk is compared with the states
//! that the journal knows. Whose changes they are is not known.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::team::CaptureTeam;
use crate::model::FileState;

/// Entries of the workspace that are looked at.
const MOST_ENTRIES: usize = 1_000_000;

/// The states that the journal knows, by real paths; None: nothing is there.
pub type KnownStates = HashMap<PathBuf, Option<FileState>>;

impl CaptureTeam {
    /// Records what changed since a time, in milliseconds since 1970, and is not known.
    pub(super) fn catch_up(&self, known: KnownStates, since_ms: u64) {
        let since = UNIX_EPOCH + Duration::from_millis(since_ms);
        let mut new = self.changed_since(since);
        new.retain(|(path, _)| !known.contains_key(path));
        for (path, state) in known {
            let found = fs::symlink_metadata(&path);
            let is_changed = match (&state, &found) {
                (None, Err(_)) => false,
                (_, Ok(found)) => changed(found) >= since,
                (Some(_), Err(_)) => true,
            };
            if is_changed {
                self.compare(&path, state);
            }
        }
        for (path, is_new) in new {
            self.noticed(&path, is_new);
        }
    }

    /// The files that changed since a time and that git does not ignore, and whether each is new.
    fn changed_since(&self, since: SystemTime) -> Vec<(PathBuf, bool)> {
        let (mut found, mut seen) = (Vec::new(), 0);
        let mut folders = vec![self.scope.workspace().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                seen += 1;
                let (path, Ok(stat)) = (entry.path(), entry.metadata()) else { continue };
                let is_left = seen > MOST_ENTRIES || self.scope.leaves_out(&path);
                if is_left || self.scope.ignores(&path, stat.is_dir()) {
                    continue;
                }
                // The times of a folder change with its entries.
                let is_new = stat.created().is_ok_and(|at| at >= since);
                if is_new || !stat.is_dir() && changed(&stat) >= since {
                    found.push((path.clone(), is_new));
                }
                if stat.is_dir() {
                    folders.push(path);
                }
            }
        }
        found.sort_unstable();
        found
    }
}

/// When an entry was last changed; programs can't set this time.
fn changed(stat: &fs::Metadata) -> SystemTime {
    let ns = u64::try_from(stat.ctime_nsec()).unwrap_or(0);
    let seconds = u64::try_from(stat.ctime()).unwrap_or(0);
    UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(ns)
}
