//! What lines tell of accesses that the kernel does not let happen: a tool call names its file
//! before it is stopped, and many never say that they were.

use std::path::Path;

use super::{Gatekeeping, Proxy};
use crate::model::{Action, Activity, ActivityKind, Source, Touch};

impl Proxy {
    /// Leaves out what a line tells and what can't have happened.
    ///
    /// What was allowed after all is told by who let it through: a request by its own line, a call
    /// that the kernel had stopped by the doorkeeper.
    pub(super) fn sift(&self, told: &mut Vec<Activity>) {
        if let Some(gate) = &self.gate {
            let zone = gate.rules.borrow().zone.clone();
            for activity in told.iter_mut() {
                take_root_for_workspace(zone.workspace(), activity);
            }
            told.retain(|activity| !gate.is_prevented(&activity.kind));
        }
    }
}

/// Some agents take the workspace for the root: `/ui/x` is its `ui/x`. An absolute path is taken so
/// where nothing on this machine can be meant by it, since its first folder is not there.
fn take_root_for_workspace(workspace: &Path, activity: &mut Activity) {
    let (ActivityKind::Touched { path, .. } | ActivityKind::Performed { path, .. }) =
        &mut activity.kind
    else {
        return;
    };
    let Some(inside) = path.strip_prefix('/') else { return };
    let Some(first) = inside.split('/').next().filter(|first| !first.is_empty()) else { return };
    let is_there = |path: &Path| path.symlink_metadata().is_ok();
    if !is_there(&Path::new("/").join(first)) && is_there(&workspace.join(first)) {
        *path = inside.into();
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
