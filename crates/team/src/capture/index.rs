//! The paths that git tracks, from its index. What an index of a later version has is not known.

use std::collections::HashSet;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::model::within;

/// Bytes of an index that are read.
const LARGEST: u64 = 256 << 20;

/// The parts of an entry before its name: times, ids, mode, size, hash, flags.
const FIXED: usize = 62;
const FLAGS: usize = 60;

type Fingerprint = (SystemTime, u64);

/// The index of the repository that a workspace is in.
#[derive(Default)]
pub(super) struct GitIndex(Mutex<Option<(Fingerprint, HashSet<Vec<u8>>)>>);

impl GitIndex {
    /// Whether git tracks a real path. Reads the index again if it changed.
    pub(super) fn tracks(&self, workspace: &Path, real: &Path) -> bool {
        let Some((root, file)) = find(workspace) else { return false };
        let Some(inside) = within(&root, real) else { return false };
        let found = fs::metadata(&file).ok().filter(|found| found.len() <= LARGEST);
        let state = found.and_then(|found| Some((found.modified().ok()?, found.len())));
        let Some(state) = state else { return false };
        let mut known = self.0.lock();
        if known.as_ref().is_none_or(|(of, _)| *of != state) {
            let names = fs::read(&file).ok().and_then(|bytes| names(&bytes));
            *known = Some((state, names.unwrap_or_default()));
        }
        known.as_ref().is_some_and(|(_, names)| names.contains(inside.as_os_str().as_bytes()))
    }
}

/// The top folder of the repository of a folder, and its index.
fn find(workspace: &Path) -> Option<(PathBuf, PathBuf)> {
    workspace.ancestors().find_map(|root| {
        let git = root.join(".git");
        let found = fs::symlink_metadata(&git).ok()?;
        if found.is_dir() {
            return Some((root.to_owned(), git.join("index")));
        }
        // Of a linked working tree or a submodule.
        let text = fs::read_to_string(&git).ok()?;
        let place = text.strip_prefix("gitdir:")?.trim();
        Some((root.to_owned(), root.join(place).join("index")))
    })
}

/// The names in an index of version 2, 3 or 4; None for any other.
fn names(index: &[u8]) -> Option<HashSet<Vec<u8>>> {
    let number = |at: usize| {
        let bytes: [u8; 4] = index.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(bytes))
    };
    let (version, count) = (number(4)?, number(8)?);
    if !index.starts_with(b"DIRC") || !(2..=4).contains(&version) {
        return None;
    }
    let (mut names, mut last, mut at) = (HashSet::new(), Vec::new(), 12);
    for _ in 0..count {
        // One more pair of flags.
        let is_extended = index.get(at + FLAGS)? & 0x40 != 0;
        let begin = at + FIXED + if is_extended { 2 } else { 0 };
        let mut name_at = begin;
        if version == 4 {
            // The first bytes are those of the name before.
            let (dropped, length) = varint(index.get(begin..)?)?;
            last.truncate(last.len().checked_sub(dropped)?);
            name_at += length;
        } else {
            last.clear();
        }
        let length = memchr::memchr(0, index.get(name_at..)?)?;
        last.extend_from_slice(&index[name_at..name_at + length]);
        names.insert(last.clone());
        let end = name_at + length + 1;
        // Padded to eight bytes, with the zero.
        at = if version == 4 { end } else { at + (end - at).next_multiple_of(8) };
    }
    Some(names)
}

/// A number of git's packs for offsets, and its bytes.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::process::Command;

    use super::*;

    #[test]
    fn what_was_added_is_tracked_whatever_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let git = |args: &[&str]| {
            let done = Command::new("git").args(args).current_dir(&root).output().unwrap();
            assert!(done.status.success(), "{args:?}: {done:?}");
        };
        git(&["init", "-q"]);
        fs::write(root.join(".gitignore"), "out/\n").unwrap();
        for name in ["out/one/kept", "out/one/kept.2", "out/left", "src/a-longer-name", "b"] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), name).unwrap();
        }
        git(&["add", "-f", "out/one", "src", "b"]);
        let index = GitIndex::default();
        let inside = root.join("out");
        for version in ["2", "3", "4"] {
            git(&["update-index", "--index-version", version, "--force-write-index"]);
            let tracks = |name: &str| index.tracks(&inside, &root.join(name));
            for name in ["out/one/kept", "out/one/kept.2", "src/a-longer-name", "b"] {
                assert!(tracks(name), "{name} in version {version}");
            }
            assert!(!tracks("out/left") && !tracks("out/one"), "{version}");
        }
        assert_eq!(names(b"DIRC\0\0\0\x05\0\0\0\0"), None);
        assert_eq!(names(b"DIRC\0\0\0\x02\xff\xff\xff\xff"), None);
    }
}
