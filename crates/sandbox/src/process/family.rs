//! The processes of an agent and its terminals, each under a warden of its own, measured and
//! limited as a whole.

use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

use parking_lot::Mutex;

use super::cgroup::Group;
use super::family_state::FamilyInner;
use super::limit_monitor;
use super::limits::{Limits, Peak, Usage};
use super::tree::ProcessTable;

/// Cheap to clone. Dropping the last clone removes its cgroup.
#[derive(Clone)]
pub struct Family(Arc<FamilyInner>);

/// A warden's membership in a family, until it is dropped.
pub(super) struct Member {
    family: Family,
    warden: i32,
}

impl Family {
    /// An empty family; [`Launcher::within`](super::Launcher::within) starts processes in it.
    pub fn new(limits: Limits) -> Self {
        Self::of(limits, None)
    }

    pub(super) fn of(limits: Limits, group: Option<Group>) -> Self {
        let family = Self(Arc::new(FamilyInner { limits, group, state: Mutex::default() }));
        limit_monitor::enter(&family.0);
        family
    }

    /// The last measured usage.
    pub fn usage(&self) -> Usage {
        self.0.state.lock().usage
    }

    /// The processes of all its wardens now. Blocks.
    pub fn processes(&self) -> Vec<u32> {
        let wardens = self.0.wardens();
        let table = ProcessTable::take_below(wardens.iter().copied());
        let below = wardens.into_iter().flat_map(|warden| table.descendants(warden));
        below.map(|process| process.pid.cast_unsigned()).collect()
    }

    /// The highest measured usage.
    pub fn peak(&self) -> Peak {
        self.0.state.lock().peak
    }

    /// The limit it exceeded, for which it is killed.
    pub fn exceeded_limit(&self) -> Option<String> {
        // The kernel may have killed it before the next poll.
        self.0.state.lock().exceeded.clone().or_else(|| self.0.out_of_memory())
    }

    /// Adds a warden before it starts its command, so that all its processes belong to the family.
    pub(super) fn enter(&self, warden: i32) -> Member {
        if let Some(group) = &self.0.group
            && let Err(error) = group.enter(warden)
        {
            tracing::warn!(%error, "a process could not enter its cgroup: its limits are enforced by polling");
        }
        self.0.state.lock().wardens.insert(warden, 0);
        Member { family: self.clone(), warden }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let family = &self.family.0;
        let mut state = family.state.lock();
        let cpu_ms = state.wardens.remove(&self.warden).unwrap_or_default();
        state.past_cpu_ms += cpu_ms;
        if state.wardens.is_empty()
            && let Some(group) = &family.group
        {
            group.end();
        }
    }
}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Family").field("limits", &self.0.limits).finish_non_exhaustive()
    }
}

/// The command line of a process, cut to so many bytes; None if it is gone, or hidden.
pub fn command_line(pid: u32, longest: usize) -> Option<String> {
    let mut line = Vec::new();
    let file = File::open(format!("/proc/{pid}/cmdline")).ok()?;
    file.take(longest as u64).read_to_end(&mut line).ok()?;
    let line = String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned();
    (!line.is_empty()).then_some(line)
}

/// Resident bytes of each of these processes with its descendants. Reads every process of the machine,
/// if any is named, and blocks.
pub fn memory_below(pids: &[u32]) -> Vec<u64> {
    if pids.is_empty() {
        return Vec::new();
    }
    let processes = ProcessTable::take();
    let below = |pid: &u32| i32::try_from(*pid).map_or(0, |pid| processes.resident_below(pid));
    pids.iter().map(below).collect()
}

/// Measures these families now. Blocks.
pub fn look_at(families: &[Family]) {
    let processes = ProcessTable::take_below(families.iter().flat_map(|it| it.0.wardens()));
    for family in families {
        family.0.poll(&processes);
    }
}
