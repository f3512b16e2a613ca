//! Which grants count for a request, by its rule and its zone.

use super::{AccessScope, Making, Request};
use crate::model::Action;
use crate::zone::{GrantPattern, Zone};

/// The verdicts of rules and zone on a request.
pub(super) struct Judged<'a> {
    /// Only a person's grant counts.
    pub(super) needs_person: bool,
    /// Only a grant of this very path counts.
    pub(super) needs_path: bool,
    pub(super) zone: Option<&'a Zone>,
}

impl Judged<'_> {
    /// Whether a pattern, granted for an action, opens the request. It opens nothing that is denied or asked for,
    /// and no search, which would find that.
    pub(super) fn widened(&self, pattern: &GrantPattern, of: Action, request: &Request) -> bool {
        let Request { path, action, making, .. } = request;
        let Some(zone) = self.zone else { return false };
        !self.needs_path
            && request.grantable
            && request.denied_by.is_none()
            && request.scope != AccessScope::Below
            && (of == *action || of == Action::Write)
            && (zone.widens(pattern, path, *action)
                || *making == Making::Folder && zone.widens_above(pattern, path))
    }
}
