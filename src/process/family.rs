//! Processes that count as one: an agent and its terminals, each under a warden of its own. What
//! they use is measured, and limited, together.

use std::fmt;
use std::sync::{Arc, Mutex};

use super::cgroup::Group;
use super::household::FamilyInner;
use super::limit_monitor;
use super::limits::{Limits, Peak, Usage};
use super::tree::ProcessTable;

/// Cheap to clone. Its group of the kernel's goes with the last clone.
#[derive(Clone)]
pub struct Family(Arc<FamilyInner>);

/// A warden's place in a family, which it has until this is dropped.
pub(super) struct Member {
    family: Family,
    warden: i32,
}

impl Family {
    /// A family of nobody yet; [`Launcher::within`](super::Launcher::within) lets processes begin
    /// in it.
    pub fn new(limits: Limits) -> Self {
        Self::of(limits, None)
    }

    pub(super) fn of(limits: Limits, group: Option<Group>) -> Self {
        let family = Self(Arc::new(FamilyInner { limits, group, state: Mutex::default() }));
        limit_monitor::enter(&family.0);
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
    pub fn exceeded_limit(&self) -> Option<String> {
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
    let processes = ProcessTable::take();
    for family in families {
        family.0.look(&processes);
    }
}
