//! Finds processes that hold a file open for writing, by `/proc`. Finds none on other systems.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use super::disk::Inode;

/// A process that could still write a file of an undo.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct OpenWriter {
    pub(super) pid: i32,
    /// The process's name.
    pub(super) name: String,
    pub(super) file: Inode,
}

/// The first of these processes that has one of the files open for writing, or mapped so that its
/// writes to memory reach the file. Blocks on `/proc`.
pub(super) fn writer_of(files: &HashSet<Inode>, pids: &[i32]) -> Option<OpenWriter> {
    if files.is_empty() {
        return None;
    }
    pids.iter().find_map(|pid| {
        let file = open_for_writing(files, *pid).or_else(|| mapped_for_writing(files, *pid))?;
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        Some(OpenWriter { pid: *pid, name: name.trim_end().to_owned(), file })
    })
}

/// Processes and descriptors may end at any time: unreadable ones are skipped.
fn open_for_writing(files: &HashSet<Inode>, pid: i32) -> Option<Inode> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    descriptors.flatten().find_map(|descriptor| {
        let stat = fs::metadata(descriptor.path()).ok()?;
        let file = (stat.dev(), stat.ino());
        if !stat.is_file() || !files.contains(&file) {
            return None;
        }
        let number = descriptor.file_name();
        let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{}", number.to_str()?)).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?.trim();
        let flags = i32::from_str_radix(flags, 8).ok()?;
        (flags & nix::libc::O_ACCMODE != nix::libc::O_RDONLY).then_some(file)
    })
}

/// A line of `maps` is `start-end rw-s offset major:minor inode path`.
fn mapped_for_writing(files: &HashSet<Inode>, pid: i32) -> Option<Inode> {
    let maps = fs::read(format!("/proc/{pid}/maps")).ok()?;
    String::from_utf8_lossy(&maps).lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (_, rights, _) = (fields.next()?, fields.next()?, fields.next()?);
        if !(rights.contains('w') && rights.ends_with('s')) {
            return None;
        }
        let (major, minor) = fields.next()?.split_once(':')?;
        let number = |hex: &str| u64::from_str_radix(hex, 16).ok();
        let device = nix::sys::stat::makedev(number(major)?, number(minor)?);
        let file = (device, fields.next()?.parse().ok()?);
        files.contains(&file).then_some(file)
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::{File, OpenOptions};

    use super::*;

    #[test]
    fn only_a_file_that_is_open_for_writing_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        fs::write(&path, "text").unwrap();
        let stat = fs::metadata(&path).unwrap();
        let file = (stat.dev(), stat.ino());
        let own = std::process::id().cast_signed();
        let found = || writer_of(&[file].into(), &[1 << 30, own]);
        let read = File::open(&path).unwrap();
        assert_eq!(found(), None);
        let write = OpenOptions::new().append(true).open(&path).unwrap();
        let writer = found().unwrap();
        assert_eq!((writer.pid, writer.file), (own, file));
        assert!(!writer.name.is_empty());
        drop((read, write));
        assert_eq!(found(), None);
    }
}
