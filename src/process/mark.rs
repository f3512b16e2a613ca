//! The mark of a run: what its processes carry in their environment, by which they are known when
//! both the supervisor and a warden were killed before they could end them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid, getpid};

use super::cgroup;
use super::tree::{self, Snapshot};

/// The environment variable that carries the mark.
pub(super) const VARIABLE: &str = "EISEN_RUN";

/// How long what was killed may take to be gone, and how often is looked.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Where `/proc` says since when the machine is up.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The mark of this run. Never another's, neither after the pid was given anew nor on a machine
/// that has just come up.
pub fn own_mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| {
        let (pid, started) = (std::process::id(), start_of(std::process::id()).unwrap_or(0));
        format!("{pid}-{started}-{:016x}", fastrand::u64(..))
    })
}

/// When a process started, in clock ticks since the machine came up; None if there is none of this
/// number. Together with the number it names one process.
pub fn start_of(pid: u32) -> Option<u64> {
    tree::process(i32::try_from(pid).ok()?).map(|process| process.started)
}

/// Names the time since the machine came up: pids and starts mean nothing beyond it.
pub fn boot() -> Option<String> {
    Some(std::fs::read_to_string(BOOT).ok()?.trim().to_owned())
}

/// Ends what is left of a run that nobody guards any more: what carries its mark, and all that
/// came of that; what is in its `group`, too. Returns how many were found. Blocks.
///
/// Never touched are this process, those that it comes from, and processes of other users.
pub fn end_run(mark: &str, group: Option<&Path>) -> usize {
    if let Some(group) = group {
        cgroup::end_group(group);
    }
    let (begun, mut ended) = (Instant::now(), BTreeSet::new());
    loop {
        let found = of_run(mark);
        if found.is_empty() || begun.elapsed() > PATIENCE {
            return ended.len();
        }
        for pid in found {
            // What is gone already is an error that does not matter.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            ended.insert(pid);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn of_run(mark: &str) -> BTreeSet<i32> {
    let processes = Snapshot::take();
    let mut spared = BTreeSet::new();
    let mut next = Some(getpid().as_raw());
    while let Some(pid) = next.filter(|pid| spared.insert(*pid)) {
        next = processes.parent(pid);
    }
    let marked: Vec<i32> = processes.pids().filter(|pid| carries(*pid, mark)).collect();
    let below = marked.iter().flat_map(|pid| processes.descendants(*pid)).map(|entry| entry.pid);
    let own = processes.descendants(getpid().as_raw()).into_iter().map(|entry| entry.pid);
    spared.extend(own);
    let found = marked.iter().copied().chain(below.filter(|pid| is_ours(*pid)));
    found.filter(|pid| !spared.contains(pid)).collect()
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
