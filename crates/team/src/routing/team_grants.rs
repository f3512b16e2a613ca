//! Grants that persons gave for the team: held while the team runs, and kept by a store that outlasts it.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use super::judged::Judged;
use super::{AccessScope, Making, Request, ResolveError};
use crate::model::{AgentId, TeamGrant, within};
use crate::zone::{GrantPattern, pattern_of};

/// Grants of a team.
const MOST: usize = 500;

/// Keeps what persons opened for a team, beyond its run. Writes the disk.
pub trait GrantStore: Debug + Send + Sync {
    /// Keeps these, and no others. Once it returns they outlast a power cut.
    fn keep(&self, grants: &[TeamGrant]) -> Result<(), String>;
}

/// The grants for the team.
#[derive(Default, Debug)]
pub(super) struct TeamGrants {
    held: Vec<HeldGrant>,
    store: Option<Arc<dyn GrantStore>>,
}

#[derive(Clone, Debug)]
struct HeldGrant {
    grant: TeamGrant,
    pattern: Option<Arc<GrantPattern>>,
}

impl TeamGrants {
    /// Takes over what is kept. A pattern that can't be read opens nothing.
    pub(super) fn new(kept: Vec<TeamGrant>, store: Option<Arc<dyn GrantStore>>) -> Self {
        Self { held: kept.into_iter().map(HeldGrant::new).collect(), store }
    }

    pub(super) fn list(&self) -> impl Iterator<Item = &TeamGrant> {
        self.held.iter().map(|held| &held.grant)
    }

    /// Whether one covers a request.
    pub(super) fn cover(&self, request: &Request, judged: &Judged<'_>) -> bool {
        self.held.iter().any(|held| held.covers(request, judged))
    }

    /// Adds a grant, which gets its id, once it is kept.
    pub(super) fn add(&mut self, grant: TeamGrant) -> Result<(), ResolveError> {
        let equals = |held: &&mut HeldGrant| held.grant.opens_as(&grant);
        let mut held = self.held.clone();
        if let Some(known) = held.iter_mut().find(equals) {
            let TeamGrant { by, granted_ms, .. } = grant;
            known.grant = TeamGrant { by, granted_ms, applies: true, ..known.grant.clone() };
        } else if held.len() >= MOST {
            return Err(ResolveError::TooManyGrants(MOST));
        } else {
            let numbers = held.iter().filter_map(|it| it.grant.id.strip_prefix('g')?.parse().ok());
            let id = format!("g{}", numbers.max().unwrap_or(0_u64).saturating_add(1));
            held.push(HeldGrant::new(TeamGrant { id, ..grant }));
        }
        self.replace(held)
    }

    /// Ends a grant, and returns it.
    pub(super) fn revoke(&mut self, id: &str) -> Result<TeamGrant, ResolveError> {
        let at = self.held.iter().position(|held| held.grant.id == id);
        let at = at.ok_or_else(|| ResolveError::UnknownGrant(id.to_owned()))?;
        let mut held = self.held.clone();
        let revoked = held.remove(at).grant;
        // It ends now in any case.
        self.held[at].grant.applies = false;
        self.replace(held)?;
        Ok(revoked)
    }

    /// Ends the grants of an agent that left, for this run: another may take its name.
    pub(super) fn forget(&mut self, agent: &AgentId) {
        for held in self.held.iter_mut().filter(|held| held.grant.agent == *agent) {
            held.grant.applies = false;
        }
    }

    fn replace(&mut self, held: Vec<HeldGrant>) -> Result<(), ResolveError> {
        let store = self.store.as_ref().ok_or(ResolveError::NoTeam)?;
        let grants: Vec<_> = held.iter().map(|it| it.grant.clone()).collect();
        store.keep(&grants).map_err(ResolveError::NotKept)?;
        self.held = held;
        Ok(())
    }
}

/// The pattern of the paths that a grant opens as a zone would: with a write also reads, and no secret. None for a path
/// outside the workspace, and for a pattern that can't be read.
pub fn opened_by(grant: &TeamGrant) -> Option<GrantPattern> {
    let of_path = || pattern_of(&grant.path);
    let written = grant.pattern.as_deref().map_or_else(of_path, str::to_owned);
    GrantPattern::compile(&written).ok()
}

impl HeldGrant {
    fn new(mut grant: TeamGrant) -> Self {
        let pattern = opened_by(&grant);
        grant.applies &= pattern.is_some() || grant.pattern.is_none();
        Self { grant, pattern: pattern.map(Arc::new) }
    }

    fn covers(&self, request: &Request, judged: &Judged<'_>) -> bool {
        let TeamGrant { agent, path, action, even_denied, applies, .. } = &self.grant;
        if !applies || *agent != request.key.agent || !request.grantable {
            return false;
        }
        if let Some(pattern) = &self.pattern
            && judged.widened(pattern, *action, request)
        {
            return true;
        }
        let is_it = *path == request.path
            || request.making == Making::Folder
                && within(Path::new(&*request.path), Path::new(&**path)).is_some();
        is_it
            && *action == request.action
            && (*even_denied || request.denied_by.is_none())
            && request.scope != AccessScope::Below
    }
}
