//! The mark of a run: what its processes carry in their environment, by which they are known when
//! both the supervisor and a warden were killed before they could end them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid, getpid};

use super::cgroup;
use super::tree::{self, ProcessTable};

/// The environment variable that carries the mark.
pub(super) const VARIABLE: &str = "EISEN_RUN";

/// How long what was killed may take to be gone, and how often is looked.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Where `/proc` says since when the machine is up.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The mark of this run. Never another's, neither after the pid was given anew nor on a machine
/// that has just come up.
pub fn marker() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let (pid, started) = (std::process::id(), start_of(std::process::id()).unwrap_or(0));
        format!("{pid}-{started}-{:016x}", fastrand::u64(..))
    })
}

/// When a process started, in clock ticks since the machine came up; None if there is none of this
/// number, or a zombie. Together with the number it names one process.
pub fn start_of(pid: u32) -> Option<u64> {
    let process = tree::process(i32::try_from(pid).ok()?)?;
    (!process.is_dead).then_some(process.started)
}

/// For how long a process has been there, to a hundredth of a second; None where that is not known.
pub fn age_of(pid: u32) -> Option<Duration> {
    up()?.checked_sub(tree::since_boot(start_of(pid)?))
}

/// For how long the machine is up.
fn up() -> Option<Duration> {
    #[cfg(target_os = "linux")]
    let up = nix::time::ClockId::CLOCK_BOOTTIME.now().ok().map(Duration::from);
    #[cfg(not(target_os = "linux"))]
    let up = None;
    up
}

/// Names the time since the machine came up: pids and starts mean nothing beyond it.
pub fn boot() -> Option<String> {
    Some(std::fs::read_to_string(BOOT).ok()?.trim().to_owned())
}

/// Ends what is left of a run whose supervisor is gone: what carries its mark, and all that came of
/// that; what is in its `group`, too. Returns how many were found. Blocks.
///
/// Wardens are only woken: they know of what this can't find, such as a command's child that
/// started with an empty environment and was orphaned. One that does not end is killed at last.
///
/// Never touched are this process, those that it comes from, and processes of other users.
pub fn end_run(mark: &str, group: Option<&Path>) -> usize {
    let (begun, mut ended) = (Instant::now(), BTreeSet::new());
    loop {
        let found = of_run(mark);
        if found.is_empty() || begun.elapsed() > PATIENCE * 2 {
            return ended.len();
        }
        let overdue = begun.elapsed() > PATIENCE;
        if let Some(group) = group.filter(|_| overdue || !found.iter().any(|pid| is_warden(*pid))) {
            cgroup::end_group(group);
        }
        for pid in found {
            let signal = if is_warden(pid) && !overdue { Signal::SIGCONT } else { Signal::SIGKILL };
            // What is gone already is an error that does not matter.
            let _ = kill(Pid::from_raw(pid), signal);
            ended.insert(pid);
        }
        std::thread::sleep(LOOK_AGAIN);
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

/// Whether a process says that it is a warden; whoever says so wrongly only lives a little longer.
fn is_warden(pid: i32) -> bool {
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
