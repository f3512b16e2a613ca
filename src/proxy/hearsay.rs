//! What lines tell of accesses that the kernel does not let happen: a tool call names its file
//! before it is stopped, and many never say that they were.

use super::{Gatekeeping, Proxy};
use crate::model::{Action, Activity, ActivityKind, Source, Touch};

impl Proxy {
    /// Leaves out what a line tells and what can't have happened.
    ///
    /// What was allowed after all is told by who let it through: a request by its own line, a call
    /// that the kernel had stopped by the doorkeeper.
    pub(super) fn sift(&self, told: &mut Vec<Activity>) {
        if let Some(gate) = &self.gate {
            told.retain(|activity| !gate.is_prevented(&activity.kind));
        }
    }
}

impl Gatekeeping {
    fn is_prevented(&self, told: &ActivityKind) -> bool {
        let (path, action) = match told {
            ActivityKind::Touched {
                path, touch, source: Source::Tool | Source::Output, ..
            } => (path, if *touch == Touch::Write { Action::Write } else { Action::Read }),
            ActivityKind::Performed { path, action } => (path, *action),
            _ => return false,
        };
        let Some(bounds) = self.rules.borrow().bounds.clone() else { return false };
        let Err(denied) = bounds.zone().check(path.as_ref().as_ref(), action) else { return false };
        let real = bounds.zone().workspace().join(&*denied.path);
        // Outside the workspace more is allowed than the zone says. Folders may be listed.
        bounds.judge(&real, action).is_err() && !(action == Action::Read && real.is_dir())
    }
}
