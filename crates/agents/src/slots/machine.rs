//! The memory of the machine, or of the cgroup that this process is confined to.

use std::fs;
use std::path::{Component, Path};

/// Memory in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Machine {
    pub total: u64,
    /// The memory that can be used without swapping.
    pub available: u64,
}

impl Machine {
    /// None on systems without `/proc/meminfo`.
    pub fn now() -> Option<Self> {
        let machine = of_meminfo(&fs::read_to_string("/proc/meminfo").ok()?)?;
        Some(of_cgroups().fold(machine, |machine, group| Self {
            total: machine.total.min(group.total),
            available: machine.available.min(group.available),
        }))
    }
}

fn of_meminfo(text: &str) -> Option<Machine> {
    let bytes = |key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        let kilobytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kilobytes.checked_mul(1024)
    };
    Some(Machine { total: bytes("MemTotal")?, available: bytes("MemAvailable")? })
}

/// The cgroups (version 2) above this process that limit its memory.
fn of_cgroups() -> impl Iterator<Item = Machine> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default().to_owned();
    let is_plain = Path::new(&own).components().all(|part| matches!(part, Component::Normal(_)));
    let folder = Path::new("/sys/fs/cgroup").join(if is_plain { &own } else { "" });
    let all: Vec<_> = folder
        .ancestors()
        .take_while(|it| it.starts_with("/sys/fs/cgroup"))
        .map(Path::to_owned)
        .collect();
    all.into_iter().filter_map(|folder| {
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        of_cgroup(&read("memory.max")?, &read("memory.current")?, &read("memory.stat")?)
    })
}

fn of_cgroup(max: &str, current: &str, stat: &str) -> Option<Machine> {
    let total: u64 = max.trim().parse().ok()?;
    let used: u64 = current.trim().parse().ok()?;
    // Cached files go when memory is needed.
    let cached = stat.lines().find_map(|line| line.strip_prefix("inactive_file "));
    let cached = cached.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0);
    Some(Machine { total, available: total.saturating_sub(used.saturating_sub(cached)) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn memory_is_read_in_bytes() {
        let text = "MemTotal:       16 kB\nMemFree:  1 kB\nMemAvailable:    9 kB\n";
        assert_eq!(of_meminfo(text), Some(Machine { total: 16 << 10, available: 9 << 10 }));
        assert_eq!(of_meminfo("MemTotal: 16 kB\n"), None);
        assert_eq!(of_meminfo("MemTotal: -1 kB\nMemAvailable: x"), None);
        let group = of_cgroup("1000\n", "700\n", "anon 1\ninactive_file 200\n");
        assert_eq!(group, Some(Machine { total: 1000, available: 500 }));
        assert_eq!(of_cgroup("max\n", "700\n", ""), None);
    }
}
