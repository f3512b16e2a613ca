//! What lines tell of accesses that did not happen: a tool call names its file before it is stopped,
//! and many never say that they were.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::Gatekeeping;
use crate::model::{Action, Activity, ActivityKind, SessionId, Source, Touch};

/// Accesses outside the zone that are kept back at once; past that the oldest is forgotten, and is
/// not on the map though it may be done later.
const MOST_KEPT_BACK: usize = 1024;
/// Bytes of the longest path of those; one that is longer can't be opened.
const LONGEST_PATH: usize = 4096;

/// Accesses outside the zone that tool calls named, until they are reported as done.
#[derive(Default)]
pub(super) struct Hearsay {
    kept: VecDeque<Activity>,
    /// Reused between lines.
    sifted: Vec<Activity>,
}

impl Hearsay {
    /// Leaves out what a line tells and what can't have happened, and keeps back what need not.
    ///
    /// What was allowed after all is told by who let it through: a request by its own line, a call
    /// that the kernel had stopped by the doorkeeper.
    pub(super) fn drop_prevented(
        &mut self,
        gate: Option<&Gatekeeping>,
        activities: &mut Vec<Activity>,
    ) {
        let Some(gate) = gate else { return };
        let zone = gate.rules.borrow().zone.clone();
        let mut all = std::mem::replace(activities, std::mem::take(&mut self.sifted));
        for mut activity in all.drain(..) {
            take_root_for_workspace(zone.workspace(), &mut activity);
            if gate.is_prevented(&activity.kind) {
                continue;
            }
            match &activity.kind {
                ActivityKind::Performed { path, action } => {
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
        self.sifted = all;
    }

    fn keep_back(&mut self, activity: Activity) {
        let Some((path, action)) = access(&activity.kind) else { return };
        if path.len() > LONGEST_PATH {
            return;
        }
        // It comes again when more of its lines are known.
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

/// What a tool call, or what a terminal printed, names.
fn access(activities: &ActivityKind) -> Option<(&Arc<str>, Action)> {
    match activities {
        ActivityKind::Touched { path, touch, source: Source::Tool | Source::Output, .. } => {
            Some((path, if *touch == Touch::Write { Action::Write } else { Action::Read }))
        }
        ActivityKind::Performed { path, action } => Some((path, *action)),
        _ => None,
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
    fn is_prevented(&self, activities: &ActivityKind) -> bool {
        let Some((path, action)) = access(activities) else { return false };
        let Some(bounds) = self.rules.borrow().bounds.clone() else { return false };
        let Err(denied) = bounds.zone().check(path.as_ref().as_ref(), action) else { return false };
        let real = bounds.zone().workspace().join(&*denied.path);
        // Outside the workspace more is allowed than the zone says. Folders may be listed.
        bounds.judge(&real, action).is_err() && !(action == Action::Read && real.is_dir())
    }

    /// Whether a tool call that names this may be refused it by the protocol's gate, or by whoever
    /// it asks: nothing but its report says that it happened.
    fn may_be_refused(&self, activities: &ActivityKind) -> bool {
        if !matches!(activities, ActivityKind::Touched { source: Source::Tool, .. }) {
            return false;
        }
        let Some((path, action)) = access(activities) else { return false };
        let rules = self.rules.borrow().clone();
        let Err(denied) = rules.zone.check(path.as_ref().as_ref(), action) else { return false };
        // The names in a folder are nobody's secret, and no call reports that it read them.
        let real = rules.zone.workspace().join(&*denied.path);
        !(action == Action::Read && real.is_dir())
    }
}
