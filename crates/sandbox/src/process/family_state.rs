//! The state shared by the clones of a family: its wardens, their measured usage, and the limit that
//! was exceeded.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use super::cgroup::Group;
use super::limits::{Limits, Peak, Usage};
use super::memory;
use super::tree::ProcessTable;

/// The state shared by clones of a [`Family`](super::Family).
pub(super) struct FamilyInner {
    pub(super) limits: Limits,
    /// The cgroup that enforces the limits; None: they are enforced by polling.
    pub(super) group: Option<Group>,
    pub(super) state: Mutex<FamilyState>,
}

#[derive(Default)]
pub(super) struct FamilyState {
    /// CPU milliseconds measured below each warden, by the warden's pid.
    pub(super) wardens: BTreeMap<i32, u64>,
    /// CPU milliseconds of wardens that have ended.
    pub(super) past_cpu_ms: u64,
    pub(super) usage: Usage,
    pub(super) peak: Peak,
    /// The limit it exceeded, for which it is killed.
    pub(super) exceeded: Option<String>,
}

/// How soon a family is polled again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum PollRate {
    /// The family is being killed.
    Dying,
    /// The family grows and is near a limit.
    Growing,
    Limited,
    Calm,
}

impl FamilyInner {
    pub(super) fn has_processes(&self) -> bool {
        !self.state.lock().wardens.is_empty()
    }

    pub(super) fn wardens(&self) -> Vec<i32> {
        self.state.lock().wardens.keys().copied().collect()
    }

    /// Measures the family, and kills it if it exceeds a limit.
    pub(super) fn poll(&self, processes: &ProcessTable) -> PollRate {
        let mut state = self.state.lock();
        let before = state.usage;
        let mut usage = Usage::default();
        let mut pids = Vec::new();
        for (warden, cpu_ms) in &mut state.wardens {
            let sum = processes.below(*warden, &mut pids);
            *cpu_ms = sum.cpu_ms.max(*cpu_ms);
            usage.cpu_ms += *cpu_ms;
            usage.memory_bytes += sum.memory_bytes;
            usage.processes += sum.processes;
        }
        usage.cpu_ms += state.past_cpu_ms;
        if let Some(most) = self.limits.memory_bytes() {
            // A cgroup counts these files itself.
            let polled = pids.iter().map(|(pid, _)| *pid).filter(|_| self.group.is_none());
            let nameless = memory::of_nameless_files(polled);
            usage.memory_bytes += nameless;
            if usage.memory_bytes > most {
                usage.memory_bytes = memory::of_all(&pids, nameless);
            }
        }
        state.usage = usage;
        state.peak.update(usage);
        if state.exceeded.is_none() {
            state.exceeded = self.limits.exceeded_by(usage).or_else(|| self.out_of_memory());
            if let Some(exceeded) = &state.exceeded {
                tracing::warn!(exceeded, "a limit was exceeded");
            }
        }
        if state.exceeded.is_some() {
            for warden in state.wardens.keys() {
                processes.kill_below(*warden);
            }
            return if usage.processes == 0 { PollRate::Limited } else { PollRate::Dying };
        }
        let grows = usage.memory_bytes > before.memory_bytes || usage.processes > before.processes;
        match (self.limits.is_any(), grows && self.limits.is_near(usage)) {
            (true, true) => PollRate::Growing,
            (true, false) => PollRate::Limited,
            (false, _) => PollRate::Calm,
        }
    }

    pub(super) fn out_of_memory(&self) -> Option<String> {
        self.group.as_ref()?.was_out_of_memory().then(|| self.limits.out_of_memory())
    }
}
