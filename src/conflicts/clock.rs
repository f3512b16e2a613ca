//! The clock that files have their times from, and the start of a process.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::stale::Time;

/// The time from which on later changes of a file are: that of its last change, or of the kernel's
/// last tick if that is later. A kernel of 6.13 or later gives a file that was looked at a time within
/// the tick, which its clock for all others does not have yet.
pub(super) fn file_time(path: &Path) -> Time {
    let of_file = path.symlink_metadata().map(|it| nanoseconds(it.ctime(), it.ctime_nsec()));
    of_file.unwrap_or(Time::MIN).max(tick())
}

#[cfg(target_os = "linux")]
fn tick() -> Time {
    use nix::time::{ClockId, clock_gettime};
    let tick = clock_gettime(ClockId::CLOCK_REALTIME_COARSE);
    tick.map_or_else(|_| system_time(), |tick| nanoseconds(tick.tv_sec(), tick.tv_nsec()))
}

#[cfg(not(target_os = "linux"))]
fn tick() -> Time {
    system_time()
}

fn system_time() -> Time {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    Time::try_from(now.as_nanos()).unwrap_or(Time::MAX)
}

fn nanoseconds(seconds: i64, rest: i64) -> Time {
    Time::from(seconds) * 1_000_000_000 + Time::from(rest)
}

/// When a process started, in ticks since the system did; 0 if the system does not say.
pub(super) fn start_of(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name, in parentheses, may have spaces; the start is the 22nd field.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    fields.split_ascii_whitespace().nth(19).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}
