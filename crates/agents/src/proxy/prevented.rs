//! Drops reported accesses that did not happen. A tool call names its file before it is stopped,
//! and many agents never report that it was.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::Gatekeeping;
use crate::model::{Action, Activity, ActivityKind, SessionId, Source, Touch};

/// Accesses outside the zone that are kept back at once. Beyond this the oldest is dropped, and
/// missing on the map if it completes later.
const MOST_KEPT_BACK: usize = 1024;
/// Bytes of the longest path among those; a longer one cannot be opened.
const LONGEST_PATH: usize = 4096;

/// Accesses outside the zone that tool calls named, kept until they are reported as completed.
#[derive(Default)]
pub(super) struct UnconfirmedAccesses {
    kept: VecDeque<Activity>,
    /// Reused between lines.
    spare: Vec<Activity>,
}

impl UnconfirmedAccesses {
    /// Removes the accesses of a line that cannot have happened, and keeps back the unconfirmed
    /// ones.
    ///
    /// An access that was allowed later is reported elsewhere: a request by its own line, a stopped
    /// system call by the doorkeeper.
    pub(super) fn drop_prevented(
        &mut self,
        gate: Option<&Gatekeeping>,
        activities: &mut Vec<Activity>,
    ) {
        let Some(gate) = gate else { return };
        let zone = gate.rules.borrow().zone.clone();
        let mut all = std::mem::replace(activities, std::mem::take(&mut self.spare));
        for mut activity in all.drain(..) {
            take_root_for_workspace(zone.workspace(), &mut activity);
            if gate.is_prevented(&activity.kind) {
                continue;
            }
            match &activity.kind {
                ActivityKind::Performed { path, action, .. } => {
                    let done = self.take(&activity.session, path, *action);
                    activities.extend(done);
                }
                ActivityKind::TurnEnded { .. } => {
                    self.kept.retain(|kept| kept.session != activity.session);
                }
                kind if gate.may_be_refused(kind) => {
                    self.keep_back(activity);
                    continue;
                }
                _ => {}
            }
            activities.push(activity);
        }
        self.spare = all;
    }

    fn keep_back(&mut self, activity: Activity) {
        let Some((path, action)) = access(&activity.kind) else { return };
        if path.len() > LONGEST_PATH {
            return;
        }
        // A call names its path again when more of its lines are known.
        self.take(&activity.session, path, action);
        if self.kept.len() >= MOST_KEPT_BACK {
            self.kept.pop_front();
        }
        self.kept.push_back(activity);
    }

    /// Takes an access that is kept back.
    fn take(&mut self, session: &SessionId, path: &str, action: Action) -> Option<Activity> {
        let is_it = |kept: &Activity| {
            kept.session == *session
                && access(&kept.kind).is_some_and(|of| (&**of.0, of.1) == (path, action))
        };
        let at = self.kept.iter().position(is_it)?;
        self.kept.remove(at)
    }
}

/// The path and action that a tool call or a terminal's output names.
fn access(kind: &ActivityKind) -> Option<(&Arc<str>, Action)> {
    match kind {
        ActivityKind::Touched { path, touch, source: Source::Tool | Source::Output, .. } => {
            Some((path, if *touch == Touch::Write { Action::Write } else { Action::Read }))
        }
        ActivityKind::Performed { path, action, .. } => Some((path, *action)),
        _ => None,
    }
}

/// Some agents take the workspace for the root and write `ui/x` as `/ui/x`. An absolute path is
/// read so if its first folder exists in the workspace and not in `/`.
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
    fn is_prevented(&self, kind: &ActivityKind) -> bool {
        let Some((path, action)) = access(kind) else { return false };
        let Some(bounds) = self.rules.borrow().bounds.clone() else { return false };
        let Err(denied) = bounds.zone().check(path.as_ref().as_ref(), action) else { return false };
        let real = bounds.zone().workspace().join(&*denied.path);
        // Outside the workspace the bounds allow more than the zone does. Folders may be listed.
        bounds.judge(&real, action).is_err() && !(action == Action::Read && real.is_dir())
    }

    /// Whether the gate or the client may refuse a tool call that names this access, so that only
    /// its completion report confirms it.
    fn may_be_refused(&self, kind: &ActivityKind) -> bool {
        if !matches!(kind, ActivityKind::Touched { source: Source::Tool, .. }) {
            return false;
        }
        let Some((path, action)) = access(kind) else { return false };
        let rules = self.rules.borrow().clone();
        let Err(denied) = rules.zone.check(path.as_ref().as_ref(), action) else { return false };
        // Listing a folder is allowed, and no call reports it as completed.
        let real = rules.zone.workspace().join(&*denied.path);
        !(action == Action::Read && real.is_dir())
    }
}
