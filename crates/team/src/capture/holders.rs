//! Finds the files that an agent's processes hold open or mapped for writing, and the processes
//! that are about to open one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::process_call::ProcessCall;
use super::source::WriteSource;

/// Bytes of the memory map of one process that are read.
const LONGEST_MAP: u64 = 4 << 20;

/// The files that the processes of some runs hold, by the number of the run.
#[derive(Default)]
pub(super) struct Holders(HashMap<u64, Held>);

#[derive(Default)]
struct Held {
    calls: HashMap<u32, ProcessCall>,
    open: HashSet<(u64, u64)>,
    mapped: HashSet<PathBuf>,
}

impl Holders {
    /// Looks at all processes of these runs, each given with the processes that may be in a call.
    /// Call it before the files are read: otherwise a process could write after the read, close its
    /// file, and not be found.
    pub(super) fn look(sources: impl Iterator<Item = (WriteSource, HashSet<u32>)>) -> Self {
        let mut runs: BTreeMap<u64, (WriteSource, HashSet<u32>)> = BTreeMap::new();
        for (source, calling) in sources {
            let run = runs.entry(source.number()).or_insert((source, HashSet::new()));
            run.1.extend(calling);
        }
        let look = |(number, (source, calling)): (u64, (WriteSource, HashSet<u32>))| {
            // Calls before descriptors: a process that has left its call has its descriptor when
            // those are read.
            let call = |process| (process, ProcessCall::of(process, |call| source.rings(call)));
            let calls = calling.into_iter().map(call).collect();
            let mut held = Held { calls, ..Held::default() };
            source.processes().into_iter().for_each(|process| held.add(process));
            (number, held)
        };
        Self(runs.into_iter().map(look).collect())
    }

    pub(super) fn hold(
        &self,
        source: &WriteSource,
        path: &Path,
        identity: Option<(u64, u64)>,
    ) -> bool {
        self.0.get(&source.number()).is_some_and(|held| {
            identity.is_some_and(|identity| held.open.contains(&identity))
                || held.mapped.contains(path)
        })
    }

    /// The progress of a process with its call.
    pub(super) fn call(&self, source: &WriteSource, process: u32) -> ProcessCall {
        let call = self.0.get(&source.number()).and_then(|held| held.calls.get(&process));
        call.cloned().unwrap_or(ProcessCall::Unknown)
    }

    /// Whether a file may have changed without a new time.
    pub(super) fn map(&self, path: &Path) -> bool {
        self.0.values().any(|held| held.mapped.contains(path))
    }
}

impl Held {
    /// Adds the files that a process holds; none if it is gone.
    fn add(&mut self, process: u32) {
        let folder = PathBuf::from(format!("/proc/{process}"));
        for entry in fs::read_dir(folder.join("fd")).into_iter().flatten().flatten() {
            let link = entry.path();
            // The link's own mode shows how the file was opened.
            let is_writable = fs::symlink_metadata(&link).is_ok_and(|it| it.mode() & 0o200 != 0);
            if is_writable && let Ok(file) = fs::metadata(&link).map(|file| (file.is_file(), file))
            {
                self.open.extend(file.0.then(|| (file.1.dev(), file.1.ino())));
            }
        }
        self.mapped.extend(mapped(&folder.join("maps")));
    }
}

/// The files that a process maps shared and writable.
fn mapped(maps: &Path) -> Vec<PathBuf> {
    use std::io::Read as _;
    let mut text = Vec::new();
    let read = fs::File::open(maps).and_then(|file| file.take(LONGEST_MAP).read_to_end(&mut text));
    if read.is_err() {
        return Vec::new();
    }
    let path = |line: &[u8]| {
        // The address, and then the rights of the mapping.
        let at = memchr::memchr(b' ', line)?;
        let is_shared = line.get(at + 2) == Some(&b'w') && line.get(at + 4) == Some(&b's');
        let path = &line[memchr::memchr(b'/', line).filter(|_| is_shared)?..];
        Some(PathBuf::from(OsString::from_vec(path.to_vec())))
    };
    text.split(|byte| *byte == b'\n').filter_map(path).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::File;

    use super::*;

    #[test]
    fn what_is_open_for_writing_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let written = File::create(at("written")).unwrap();
        drop(File::create(at("read")).unwrap());
        let read = File::open(at("read")).unwrap();
        let mut held = Held::default();
        held.add(std::process::id());
        let identity = |file: &File| {
            let found = file.metadata().unwrap();
            (found.dev(), found.ino())
        };
        assert!(held.open.contains(&identity(&written)));
        assert!(!held.open.contains(&identity(&read)));
    }
}
