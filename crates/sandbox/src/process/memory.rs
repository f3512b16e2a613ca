//! The memory of several processes together, by `/proc`: shared pages and files in memory (tmpfs,
//! memfd) count once.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Maximum descriptors of a family that are read: opening many is cheap, and reading them must not
/// delay the polling of other families.
const MOST_OPEN: usize = 4096;

/// The proportional memory (PSS) of one process.
struct Share {
    own: u64,
    /// Mapped from files in memory.
    in_files: u64,
}

/// The proportional memory (PSS) of one process; None if it can't be read.
pub(super) fn of_one(pid: i32) -> Option<u64> {
    share(pid).map(|share| share.own + share.in_files)
}

/// The total size of nameless files in memory (`memfd_create`, or removed from `/dev/shm`) that
/// these processes have open. A process that only writes to such a file has not mapped it.
pub(super) fn of_nameless_files(pids: impl Iterator<Item = i32>) -> u64 {
    let mut sizes = BTreeMap::new();
    let open = pids.flat_map(|pid| fs::read_dir(format!("/proc/{pid}/fd"))).flatten().flatten();
    for entry in open.take(MOST_OPEN) {
        if !fs::read_link(entry.path()).is_ok_and(|target| is_nameless(&target)) {
            continue;
        }
        if let Ok(file) = fs::metadata(entry.path()) {
            sizes.insert((file.dev(), file.ino()), file.blocks() * BLOCK);
        }
    }
    sizes.values().sum()
}

/// The exact memory of these processes together. Each comes with its resident size, used if nothing
/// better can be read. `nameless` is [`of_nameless_files`].
pub(super) fn of_all(pids: &[(i32, u64)], nameless: u64) -> u64 {
    let (mut own, mut in_files) = (0, 0);
    for (pid, resident) in pids {
        let share = share(*pid).unwrap_or(Share { own: *resident, in_files: 0 });
        own += share.own;
        in_files += share.in_files;
    }
    // Mapped parts of nameless files are in both.
    own + in_files.max(nameless)
}

/// The unit of `st_blocks`.
const BLOCK: u64 = 512;

fn is_nameless(target: &Path) -> bool {
    let name = target.as_os_str().as_bytes();
    name.starts_with(b"/memfd:") || name.starts_with(b"/dev/shm/") && name.ends_with(b" (deleted)")
}

fn share(pid: i32) -> Option<Share> {
    parse(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?)
}

fn parse(rollup: &str) -> Option<Share> {
    let bytes = |key: &str| {
        let value = rollup.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        let kilobytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes * 1024)
    };
    // Missing before Linux 5.9.
    let in_files = bytes("Pss_Shmem").unwrap_or_default();
    Some(Share { own: bytes("Pss")?.saturating_sub(in_files), in_files })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn files_in_memory_are_counted_apart() {
        let rollup = "5f-7f ---p 00000000 00:00 0 [rollup]\nRss:   300 kB\nPss:   250 kB\n\
                      Pss_Dirty:  9 kB\nPss_Anon:  140 kB\nPss_File:  60 kB\nPss_Shmem:  50 kB\n";
        let share = parse(rollup).unwrap();
        assert_eq!((share.own, share.in_files), (200 * 1024, 50 * 1024));
        assert_eq!(parse("Pss: 7 kB\n").unwrap().own, 7 * 1024);
        assert!(parse("Pss: many\n").is_none());
    }
}
