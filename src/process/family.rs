//! Processes that count as one: an agent and its terminals, each under a warden of its own. What
//! they use is measured, and limited, together.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::cgroup::Group;
use super::limits::{Limits, Peak, Usage};
use super::tree::Snapshot;
use super::{census, memory};

/// Cheap to clone. Its group of the kernel's goes with the last clone.
#[derive(Clone)]
pub struct Family(Arc<Household>);

/// What clones of a [`Family`] share.
pub(super) struct Household {
    limits: Limits,
    /// Where the kernel holds the limits.
    group: Option<Group>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The CPU time that was seen below each warden, by its pid.
    wardens: BTreeMap<i32, u64>,
    /// Of wardens that are gone.
    past_cpu_ms: u64,
    usage: Usage,
    peak: Peak,
    /// The limit that it broke, which is its end.
    offence: Option<String>,
}

/// A warden's place in a family, which it has until this is dropped.
pub(super) struct Member {
    family: Family,
    warden: i32,
}

/// How soon a family wants to be looked at again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Mood {
    /// It is being ended.
    Dying,
    /// It comes near a limit.
    Growing,
    Limited,
    Calm,
}

impl Family {
    /// A family of nobody yet; [`Launcher::within`](super::Launcher::within) lets processes begin
    /// in it.
    pub fn new(limits: Limits) -> Self {
        Self::of(limits, None)
    }

    pub(super) fn of(limits: Limits, group: Option<Group>) -> Self {
        let family = Self(Arc::new(Household { limits, group, state: Mutex::default() }));
        census::enter(&family.0);
        family
    }

    /// What it used when it was looked at last.
    pub fn usage(&self) -> Usage {
        self.0.state().usage
    }

    /// The most that it was seen to use.
    pub fn peak(&self) -> Peak {
        self.0.state().peak
    }

    /// The limit that it broke, for which it is ended.
    pub fn offence(&self) -> Option<String> {
        // The kernel may have ended it before anybody looked.
        self.0.state().offence.clone().or_else(|| self.0.out_of_memory())
    }

    /// Takes in a warden that has not begun its work yet, so that all that comes of it belongs to
    /// the family.
    pub(super) fn enter(&self, warden: i32) -> Member {
        if let Some(group) = &self.0.group
            && let Err(error) = group.enter(warden)
        {
            tracing::warn!(%error, "a process could not enter its cgroup: its limits are held by looking");
        }
        self.0.state().wardens.insert(warden, 0);
        Member { family: self.clone(), warden }
    }
}

impl Household {
    /// Measures the family, and ends it if that is too much.
    pub(super) fn look(&self, processes: &Snapshot) -> Mood {
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
            state.offence = self.limits.broken_by(usage).or_else(|| self.out_of_memory());
            if let Some(offence) = &state.offence {
                tracing::warn!(offence, "a limit was broken");
            }
        }
        if state.offence.is_some() {
            for warden in state.wardens.keys() {
                processes.kill_below(*warden);
            }
            return if usage.processes == 0 { Mood::Limited } else { Mood::Dying };
        }
        let grows = usage.memory_bytes > before.memory_bytes || usage.processes > before.processes;
        match (self.limits.is_any(), grows && self.limits.is_near(usage)) {
            (true, true) => Mood::Growing,
            (true, false) => Mood::Limited,
            (false, _) => Mood::Calm,
        }
    }

    fn out_of_memory(&self) -> Option<String> {
        self.group.as_ref()?.was_out_of_memory().then(|| self.limits.out_of_memory())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Numbers are whole whatever panicked beside them.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let household = &self.family.0;
        let mut state = household.state();
        let cpu_ms = state.wardens.remove(&self.warden).unwrap_or_default();
        state.past_cpu_ms += cpu_ms;
        if state.wardens.is_empty()
            && let Some(group) = &household.group
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

/// Looks at these families now. Reads every process of the machine, and blocks meanwhile.
pub fn look_at(families: &[Family]) {
    let processes = Snapshot::take();
    for family in families {
        family.0.look(&processes);
    }
}
