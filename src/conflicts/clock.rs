//! The clock that files have their times from, and the start of a process.

use super::stale::Time;

/// The time that a file changed now would have: the clock of the kernel's last tick, so that reads
/// and writes are in order.
#[cfg(target_os = "linux")]
pub(super) fn file_time() -> Time {
    use nix::time::{ClockId, clock_gettime};
    let Ok(now) = clock_gettime(ClockId::CLOCK_REALTIME_COARSE) else { return system_time() };
    Time::from(now.tv_sec()) * 1_000_000_000 + Time::from(now.tv_nsec())
}

#[cfg(not(target_os = "linux"))]
pub(super) fn file_time() -> Time {
    system_time()
}

fn system_time() -> Time {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    Time::try_from(now.as_nanos()).unwrap_or(Time::MAX)
}

/// When a process started, in ticks since the system did; 0 if the system does not say.
pub(super) fn start_of(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name, in parentheses, may have spaces; the start is the 22nd field.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    fields.split_ascii_whitespace().nth(19).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}
