//! Decisions that open more than the path that was asked for, and the pattern that is offered for one.

use std::sync::Arc;

use super::requests::judged;
use super::{BoardEntry, Task};
use crate::model::{
    Action, BlockedAccess, BlockedId, BlockedStatus, Decide, DecidedBy, Event, GrantSpan,
    TeamGrant, now_ms,
};
use crate::routing::{AccessScope, Decider, Decision, ResolveError};
use crate::zone::{GrantPattern, LONGEST_PATTERN, pattern_of};

/// Pending accesses of an agent that are looked at for an offer.
const MOST_LOOKED_AT: usize = 32;

impl Task {
    /// Checks what a decision about an access opens beside it, and keeps what it opens for the team.
    /// Returns the pattern.
    pub(super) fn widen(
        &mut self,
        access: &BlockedAccess,
        decision: &Decision,
        by: &Decider,
    ) -> Result<Option<Arc<GrantPattern>>, ResolveError> {
        let Some((span, ttl, written)) = decision.opening() else { return Ok(None) };
        let for_team = span == GrantSpan::Team;
        if for_team && !matches!(by.into(), DecidedBy::Person | DecidedBy::Web) {
            return Err(ResolveError::TeamByAgent);
        }
        if for_team && ttl.is_some() {
            return Err(ResolveError::TeamForTime);
        }
        let scope = self.board.get(&access.id).map(|entry| entry.scope);
        if for_team && scope == Some(AccessScope::Below) {
            return Err(ResolveError::TeamForSearch);
        }
        let pattern = written.map(|written| self.pattern_for(access, written)).transpose()?;
        if for_team {
            self.grants.team.add(TeamGrant {
                id: String::new(),
                agent: access.key.agent.clone(),
                path: Arc::clone(&access.path),
                action: access.action,
                pattern: pattern.as_ref().map(|pattern| Arc::clone(pattern.text())),
                even_denied: access.denied_by.is_some(),
                by: by.into(),
                granted_ms: now_ms(),
                elsewhere: None,
                applies: true,
            })?;
        }
        Ok(pattern.map(Arc::new))
    }

    /// Compiles a pattern that opens an access beside others.
    fn pattern_for(
        &self,
        access: &BlockedAccess,
        written: &Arc<str>,
    ) -> Result<GrantPattern, ResolveError> {
        let pattern = GrantPattern::compile(written).map_err(ResolveError::Pattern)?;
        if !pattern.matches(&access.path) {
            let (pattern, path) = (Arc::clone(written), Arc::clone(&access.path));
            return Err(ResolveError::PatternOfOther { pattern, path });
        }
        let entry = self.board.get(&access.id);
        if !entry.is_some_and(|entry| self.is_widened(&pattern, access.action, entry)) {
            return Err(ResolveError::PathAlone(Arc::clone(&access.path)));
        }
        Ok(pattern)
    }

    /// The other accesses that wait, and that a pattern opens which was granted with one.
    pub(super) fn waits_for(
        &self,
        pattern: &GrantPattern,
        access: &BlockedAccess,
        span: GrantSpan,
        by: &Decider,
    ) -> Vec<BlockedId> {
        let by_agent = matches!(by, Decider::Agent(_));
        let is_other = |entry: &&BoardEntry| {
            entry.access.id != access.id
                && entry.access.key.agent == access.key.agent
                && (span != GrantSpan::Session || entry.access.key.session == access.key.session)
                && !(by_agent && self.persons_rule(entry).is_some())
                && self.is_widened(pattern, access.action, entry)
        };
        self.board.pending().filter(is_other).map(|entry| entry.access.id.clone()).collect()
    }

    fn is_widened(&self, pattern: &GrantPattern, of: Action, entry: &BoardEntry) -> bool {
        let (request, rule) = (entry.request(), self.rule_now(entry, || true));
        judged(&self.settings.rules, &request, rule).widened(pattern, of, &request)
    }

    /// The accesses, with the patterns that are offered for those that wait.
    pub(super) fn list(&self, status: Option<BlockedStatus>) -> Vec<BlockedAccess> {
        let mut list = self.board.list(status);
        for access in &mut list {
            if access.status == BlockedStatus::Pending {
                access.offered = self.offer(access);
            }
        }
        list
    }

    /// The pattern that is offered for an access now.
    pub(super) fn offered(&self, entry: &BoardEntry) -> Option<Arc<str>> {
        let is_pending = entry.access.status == BlockedStatus::Pending;
        is_pending.then(|| self.offer(&entry.access)).flatten()
    }

    /// Publishes a new access, with the pattern that is offered for it.
    pub(super) fn publish_blocked(&mut self, id: &BlockedId) {
        let offered = self.board.get(id).and_then(|entry| self.offered(entry));
        let access = self.board.change(id, |entry| {
            entry.access.offered = offered;
            entry.access.clone()
        });
        if let Some(access) = access {
            self.bus.publish(Event::Blocked(access));
        }
    }

    /// The narrowest pattern of what an agent waits for: of the folder that all of it lies in, or of the
    /// access's own where the zone opens nothing in it and nobody owns the file; else of the file.
    pub(super) fn offer(&self, access: &BlockedAccess) -> Option<Arc<str>> {
        let zone = self.settings.rules.zones.get(&access.key.agent)?;
        let entry = self.board.get(&access.id);
        let is_denied = access.rule.is_some_and(|rule| rule.decide == Decide::Deny);
        let is_search = entry.is_some_and(|entry| entry.scope == AccessScope::Below);
        let opens = |path: &str| {
            !path.starts_with('/') && !path.is_empty() && zone.may_widen(path, access.action)
        };
        if access.denied_by.is_some() || is_denied || is_search || !opens(&access.path) {
            return None;
        }
        let own = folder_of(&access.path);
        let is_beside = |other: &&BlockedAccess| {
            other.key == access.key
                && other.action == access.action
                && other.path != access.path
                && other.owners.is_empty()
                && other.rule.is_none_or(|rule| rule.decide != Decide::Person)
        };
        let beside = self.board.pending().map(|entry| &entry.access).filter(is_beside);
        let beside = beside.take(MOST_LOOKED_AT).filter(|other| opens(&other.path));
        let beside: Vec<_> = beside.map(|other| &other.path).collect();
        let all = beside.iter().fold(own, |folder, other| common(folder, other));
        let near = || !own.is_empty() && beside.iter().any(|other| common(own, other) == own);
        // A folder above is no wider than what the zone leaves alone.
        let is_near = all == own || !all.is_empty() && zone.is_apart(all);
        let folder = if !all.is_empty() && !beside.is_empty() && is_near {
            Some(all)
        } else if near() || access.owners.is_empty() && !own.is_empty() && zone.is_apart(own) {
            Some(own)
        } else {
            None
        };
        let pattern = match folder {
            Some(folder) => format!("{}/**", pattern_of(folder)),
            None => pattern_of(&access.path),
        };
        (pattern.len() <= LONGEST_PATTERN).then(|| pattern.into())
    }
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The innermost folder at or above `folder` in which a path lies; empty for the workspace.
fn common<'a>(folder: &'a str, path: &str) -> &'a str {
    let mut folder = folder;
    while !folder.is_empty() {
        if path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')) {
            return folder;
        }
        folder = folder_of(folder);
    }
    folder
}
