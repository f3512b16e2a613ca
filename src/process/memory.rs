//! What processes have in memory together, as `/proc` tells it. What several of them share, and what
//! they keep in files that lie in memory alone, is there once however many can reach it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Descriptors of a family that are looked at: to have many open costs a process nothing, and to look
/// at them must not keep the limits of others from being held.
const MOST_OPEN: usize = 4096;

/// Of one process, with its part of what it shares with others.
struct Share {
    own: u64,
    /// Mapped from files that lie in memory.
    in_files: u64,
}

/// Of one process, with its part of what it shares with others; None where that cannot be read.
pub(super) fn of_one(pid: i32) -> Option<u64> {
    share(pid).map(|share| share.own + share.in_files)
}

/// The size of all files without a name that these processes have open and that lie in memory alone
/// (`memfd_create`, or removed from `/dev/shm`): who only writes to one has nothing of it mapped.
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

/// What these processes take together, exactly; each comes with what is resident of it, for where
/// no more can be read. `nameless` is [`of_nameless_files`].
pub(super) fn of_all(pids: &[(i32, u64)], nameless: u64) -> u64 {
    let (mut own, mut in_files) = (0, 0);
    for (pid, resident) in pids {
        let share = share(*pid).unwrap_or(Share { own: *resident, in_files: 0 });
        own += share.own;
        in_files += share.in_files;
    }
    // What of those files is mapped is in both.
    own + in_files.max(nameless)
}

/// What the system calls a block, whatever those of a disk are.
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
    // Kernels before 5.9 don't tell them apart.
    let in_files = bytes("Pss_Shmem").unwrap_or_default();
    Some(Share { own: bytes("Pss")?.saturating_sub(in_files), in_files })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn files_in_memory_are_told_from_the_rest() {
        let rollup = "5f-7f ---p 00000000 00:00 0 [rollup]\nRss:   300 kB\nPss:   250 kB\n\
                      Pss_Dirty:  9 kB\nPss_Anon:  140 kB\nPss_File:  60 kB\nPss_Shmem:  50 kB\n";
        let share = parse(rollup).unwrap();
        assert_eq!((share.own, share.in_files), (200 * 1024, 50 * 1024));
        assert_eq!(parse("Pss: 7 kB\n").unwrap().own, 7 * 1024);
        assert!(parse("Pss: many\n").is_none());
    }
}
