//! The mark of a run: an environment variable of all its processes. It identifies them when both
//! the supervisor and a warden were killed before they could kill them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid, getpid};

use super::cgroup;
use super::tree::{self, ProcessTable};

/// The environment variable that carries the mark.
pub(super) const VARIABLE: &str = "EISEN_MARK";

/// How long killed processes may take to end, and how often they are polled.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A random id of the current boot.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The mark of this run. Unique, even if the pid is reused or the machine was rebooted.
pub fn marker() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let (pid, started) = (std::process::id(), start_of(std::process::id()).unwrap_or(0));
        format!("{pid}-{started}-{:016x}", fastrand::u64(..))
    })
}

/// The start time of a process, in clock ticks since boot; None if it does not exist, or is a
/// zombie. Pid and start time together identify a process.
pub fn start_of(pid: u32) -> Option<u64> {
    let process = tree::process(i32::try_from(pid).ok()?)?;
    (!process.is_dead).then_some(process.started)
}

/// The age of a process, to a hundredth of a second; None if unknown.
pub fn age_of(pid: u32) -> Option<Duration> {
    up()?.checked_sub(tree::since_boot(start_of(pid)?))
}

/// The time since boot.
fn up() -> Option<Duration> {
    #[cfg(target_os = "linux")]
    let up = nix::time::ClockId::CLOCK_BOOTTIME.now().ok().map(Duration::from);
    #[cfg(not(target_os = "linux"))]
    let up = None;
    up
}

/// The id of the current boot: pids and start times are only valid within it.
pub fn boot() -> Option<String> {
    Some(std::fs::read_to_string(BOOT).ok()?.trim().to_owned())
}

/// Kills the processes left by a run whose supervisor is gone: those that carry its mark, their
/// descendants, and those in its cgroup `group`. Returns how many were found. Blocks.
///
/// Wardens are first only woken: they find processes that this can't, such as orphans with an empty
/// environment. A warden that does not end is killed, too.
///
/// Never kills this process, its ancestors and descendants, or processes of other users.
pub fn end_run(mark: &str, group: Option<&Path>) -> usize {
    let (begun, mut ended) = (Instant::now(), BTreeSet::new());
    loop {
        let found = of_run(mark);
        if found.is_empty() || begun.elapsed() > KILL_TIMEOUT * 2 {
            return ended.len();
        }
        let overdue = begun.elapsed() > KILL_TIMEOUT;
        if let Some(group) = group.filter(|_| overdue || !found.iter().any(|pid| is_warden(*pid))) {
            cgroup::end_group(group);
        }
        for pid in found {
            let signal = if is_warden(pid) && !overdue { Signal::SIGCONT } else { Signal::SIGKILL };
            // Fails if the process has ended already.
            let _ = kill(Pid::from_raw(pid), signal);
            ended.insert(pid);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn of_run(mark: &str) -> BTreeSet<i32> {
    let processes = ProcessTable::take();
    let mut spared: BTreeSet<i32> =
        processes.descendants(getpid().as_raw()).into_iter().map(|entry| entry.pid).collect();
    let mut next = Some(getpid().as_raw());
    while let Some(pid) = next.filter(|pid| spared.insert(*pid)) {
        next = processes.parent(pid);
    }
    let marked: Vec<i32> = processes.pids().filter(|pid| carries(*pid, mark)).collect();
    let below = marked.iter().flat_map(|pid| processes.descendants(*pid)).map(|entry| entry.pid);
    let found = marked.iter().copied().chain(below.filter(|pid| is_ours(*pid)));
    found.filter(|pid| !spared.contains(pid)).collect()
}

/// Whether a process claims to be a warden. A false claim only delays its end.
pub(super) fn is_warden(pid: i32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.starts_with(b"eisen-core\0warden\0")
}

/// Whether a process of this user was started with the mark.
fn carries(pid: i32, mark: &str) -> bool {
    let wanted = format!("{VARIABLE}={mark}");
    let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
        && is_ours(pid)
}

fn is_ours(pid: i32) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|meta| meta.uid() == geteuid().as_raw())
}
