//! The rules of `[[routing]]`: the first one that matches an access says who decides it. Pure.

use std::cell::LazyCell;
use std::num::NonZeroU32;

use globset::Error;

use super::board::BoardEntry;
use super::{AccessScope, Request};
use crate::model::{AccessRule, Action, AgentId, BlockedAccess, Decide, RuleSpec, Via};
use crate::zone::WirePatterns;

/// An access, as far as rules look at it.
#[derive(Clone, Copy, Debug)]
pub struct RuledAccess<'a> {
    pub agent: &'a AgentId,
    /// Relative to the workspace; absolute if outside.
    pub path: &'a str,
    pub via: Via,
    pub action: Action,
    /// Whether a decision can open it.
    pub grantable: bool,
    /// A pattern of `denied` matches it: no agent and no rule opens it.
    pub is_denied: bool,
    /// A search of all below the path.
    pub is_search: bool,
}

/// The rules of a team, in their order.
#[derive(Default, Debug)]
pub struct RoutingRules(Vec<RoutingRule>);

#[derive(Debug)]
struct RoutingRule {
    spec: RuleSpec,
    /// None: every path.
    paths: Option<WirePatterns>,
}

impl RoutingRules {
    pub fn compile(specs: impl IntoIterator<Item = RuleSpec>) -> Result<Self, Error> {
        specs.into_iter().map(RoutingRule::compile).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the first rule that matches. `is_owned` says whether another agent owns the path; it
    /// is asked at most once.
    pub fn first(
        &self,
        access: &RuledAccess<'_>,
        is_owned: impl FnOnce() -> bool,
    ) -> Option<AccessRule> {
        let owned = LazyCell::new(is_owned);
        let matches = |rule: &RoutingRule| {
            rule.matches(access)
                && match rule.spec.decide {
                    Decide::Allow => access.grantable && !access.is_denied,
                    // An owner answers what is read: it opens nothing, and no agent answers what is
                    // denied.
                    Decide::Owner => {
                        access.action == Action::Read
                            && access.grantable
                            && !access.is_denied
                            && *owned
                    }
                    Decide::Deny | Decide::Orchestrator | Decide::Person => true,
                }
        };
        let at = self.0.iter().position(matches)?;
        let number = u32::try_from(at + 1).ok().and_then(NonZeroU32::new)?;
        Some(AccessRule { number, decide: self.0[at].spec.decide })
    }
}

impl RoutingRule {
    fn compile(spec: RuleSpec) -> Result<Self, Error> {
        let paths = if spec.paths.is_empty() {
            None
        } else {
            // What keeps a folder from agents keeps all that is in it.
            Some(WirePatterns::compile(&spec.paths, spec.decide.excludes_agents())?)
        };
        Ok(Self { spec, paths })
    }

    fn matches(&self, access: &RuledAccess<'_>) -> bool {
        let RuleSpec { agents, via, action, .. } = &self.spec;
        (agents.is_empty() || agents.contains(access.agent))
            && (via.is_empty() || via.contains(&access.via))
            && action.is_none_or(|action| action == access.action)
            && self.paths.as_ref().is_none_or(|paths| {
                paths.matches(access.path)
                    // To allow a search is to allow what it finds.
                    || access.is_search
                        && self.spec.decide.excludes_agents()
                        && paths.may_match_below(access.path)
            })
    }
}

impl<'a> From<&'a Request> for RuledAccess<'a> {
    fn from(request: &'a Request) -> Self {
        Self {
            agent: &request.key.agent,
            path: &request.path,
            via: request.via,
            action: request.action,
            grantable: request.grantable,
            is_denied: request.denied_by.is_some(),
            is_search: request.scope == AccessScope::Below,
        }
    }
}

impl<'a> From<&'a BoardEntry> for RuledAccess<'a> {
    fn from(entry: &'a BoardEntry) -> Self {
        let BlockedAccess { key, path, via, action, denied_by, .. } = &entry.access;
        Self {
            agent: &key.agent,
            path,
            via: *via,
            action: *action,
            grantable: entry.grantable,
            is_denied: denied_by.is_some(),
            is_search: entry.scope == AccessScope::Below,
        }
    }
}
