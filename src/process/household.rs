//! What the clones of a family share: the wardens whose processes count as one, what they were
//! seen to use, and the limit that ends them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::cgroup::Group;
use super::limits::{Limits, Peak, Usage};
use super::memory;
use super::tree::ProcessTable;

/// What clones of a [`Family`](super::Family) share.
pub(super) struct FamilyInner {
    pub(super) limits: Limits,
    /// Where the kernel holds the limits.
    pub(super) group: Option<Group>,
    pub(super) state: Mutex<FamilyState>,
}

#[derive(Default)]
pub(super) struct FamilyState {
    /// The CPU time that was seen below each warden, by its pid.
    pub(super) wardens: BTreeMap<i32, u64>,
    /// Of wardens that are gone.
    pub(super) past_cpu_ms: u64,
    pub(super) usage: Usage,
    pub(super) peak: Peak,
    /// The limit that it broke, which is its end.
    pub(super) offence: Option<String>,
}

/// How soon a family wants to be looked at again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum PollRate {
    /// It is being ended.
    Dying,
    /// It comes near a limit.
    Growing,
    Limited,
    Calm,
}

impl FamilyInner {
    /// Measures the family, and ends it if that is too much.
    pub(super) fn look(&self, processes: &ProcessTable) -> PollRate {
        let mut state = self.state();
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
            // A cgroup counts them itself.
            let looked_at = pids.iter().map(|(pid, _)| *pid).filter(|_| self.group.is_none());
            let nameless = memory::of_nameless_files(looked_at);
            usage.memory_bytes += nameless;
            if usage.memory_bytes > most {
                usage.memory_bytes = memory::of_all(&pids, nameless);
            }
        }
        state.usage = usage;
        state.peak.take_in(usage);
        if state.offence.is_none() {
            state.offence = self.limits.exceeded_by(usage).or_else(|| self.out_of_memory());
            if let Some(offence) = &state.offence {
                tracing::warn!(offence, "a limit was broken");
            }
        }
        if state.offence.is_some() {
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

    pub(super) fn state(&self) -> MutexGuard<'_, FamilyState> {
        // Numbers are whole whatever panicked beside them.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
