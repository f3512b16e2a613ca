//! Owns a blocked access: its line, and the methods about it.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::method::method;
use super::names::{AgentName, Decider, TeamId};
use super::tools::{CONTENT, MESSAGE, PATTERN, tool};
use super::{Exact, NameOf, SessionHeader, Target};
use crate::model::{Action, BlockedStatus, Decide, HARMLESS, Via, is_aside};

method! {
    ListBlocked = "list_blocked": ListBlockedParams => Vec<Blocked<'a>>;
    port: Anyone, web: Read, token: Read(Answer), waits: false, lasts: false, hub: All(Joined)
}

method! {
    ResolveBlocked = "resolve_blocked": ResolveParams => Blocked<'a>;
    port: Lead, web: Decide, token: Decide(Access), waits: false, lasts: false, hub: One
}

/// A blocked access, in its line and in answers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Blocked<'a> {
    #[serde(flatten)]
    pub session: SessionHeader<'a>,
    /// Relative to the workspace, with forward slashes; absolute if outside.
    pub path: Cow<'a, str>,
    pub action: NameOf<Action>,
    #[serde(default)]
    pub timestamp_ms: u64,
    pub id: TeamId<'a>,
    pub status: NameOf<BlockedStatus>,
    /// Agents whose zone allows the path.
    #[serde(default)]
    pub owners: Vec<AgentName<'a>>,
    /// The session that decides it.
    pub orchestrator: Option<Target<'a>>,
    /// The kind of request that made it.
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = Via::ALL.map(Via::as_str)))]
    pub via: NameOf<Via>,
    /// How many denied accesses it stands for: incidental ones, or those of an agent that has more
    /// than are listed. `path` is their common path. Sent again with the same id as it grows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<u64>,
    /// Only if true: the agent makes the accesses of this `sweep` by itself, and their refusal does no harm.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub harmless: bool,
    /// The pattern of a zone's `denied` that matches the path, if one does. Only the control token
    /// may allow or answer it, with `even_denied`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied_by: Option<Cow<'a, str>>,
    /// The rule of `[[routing]]` that matched it, counted from 1, and who decides by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<u32>,
    #[schemars(extend("enum" = Decide::ALL.map(Decide::as_str)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decide: Option<NameOf<Decide>>,
    /// The decider: `agent:ID`, `person` (at a terminal), `program`, or `rule` where a rule decided.
    /// Absent as long as nobody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<Decider<'a>>,
    /// The message that the agent got with the denial: its first 400 bytes, and `…` if it has more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<Cow<'a, str>>,
    /// The owner that answered, by such a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<AgentName<'a>>,
    /// Only if the answer was kept from an equal question: the tokens that it saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_saved: Option<u64>,
    /// Only if true: `tokens_saved` is estimated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tokens_estimated: bool,
    /// Why the agent asks for it: only with `via` `request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// The tool call that it belongs to, as far as that is certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call: Option<Cow<'a, str>>,
    /// Only while it is `pending`: the narrowest pattern that covers what its agent waits for, for `match` of
    /// `resolve_blocked`. Absent where only the path alone can be allowed.
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub offered: Option<Cow<'a, str>>,
    /// Only while it is `pending`: when nobody waits for the decision any more, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// Why the wait for a decision ended without one. With `expired` it is too late: the agent does
    /// not try it again by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Cow<'a, str>>,
    /// Only after `denied`: its tool call reports that it completed all the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub completed: bool,
}

impl Blocked<'_> {
    /// Its status as people read it: what does no harm is not shown as denied.
    pub fn shown_status(&self) -> &str {
        if self.harmless { HARMLESS } else { self.status.as_str() }
    }

    /// Whether it is one of those that views fold: harmless, or in passing outside of turns, and aside.
    pub fn is_noise(&self) -> bool {
        let is_of_no_turn = self.sweep.is_some() && self.session.session_id.is_empty();
        self.harmless || is_of_no_turn && is_aside(&self.path)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListBlockedParams {
    /// Only accesses with that status.
    #[schemars(extend("x-tool" = tool("Only accesses with this status; all if left out").choices(&["pending", "denied", "allowed", "answered", "expired", "observed"])))]
    pub status: Option<Exact<BlockedStatus>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ResolveParams {
    #[schemars(extend("x-tool" = tool("Id of the access, as list_blocked lists it").at(0)))]
    pub id: TeamId<'static>,
    /// Only if the access still is as `show_blocked` showed it with this `version`.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub version: Option<String>,
    #[serde(flatten)]
    pub verdict: DecisionParam,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum DecisionParam {
    /// Refuse it.
    #[schemars(extend("x-tool" = tool("What becomes of it").choices(&["allow", "deny", "answer"]).at(1)))]
    Deny {
        /// Sent to the agent.
        #[schemars(extend("x-tool" = tool("With `deny`: what the agent is told").most(MESSAGE).at(4)))]
        message: Option<String>,
    },
    /// Allow it; after a denied try, allow the next.
    Allow {
        #[schemars(extend("x-tool" = tool("With `allow`: this access (if left out), or this path and action until the session ends").choices(&["once", "session"]).at(2)))]
        scope: Option<GrantScope>,
        /// Seconds that the grant lasts at most.
        #[schemars(extend("x-tool" = tool("With `allow`: seconds that the permission lasts at most").at(3)))]
        ttl_s: Option<f64>,
        /// A pattern of paths in the workspace, as in `allowed` of a zone, that matches the path: what waits of it is
        /// allowed, too, and with `session` or `team` what comes later. Never what is denied, a secret, or kept by git.
        #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-tool" = tool("With `allow`: a pattern such as `test/**` that matches the path: with `session` all that it matches is allowed, too").most(PATTERN).at(6)))]
        pattern: Option<String>,
        /// Also where a pattern of `denied` matches; requires the control token.
        #[serde(default)]
        even_denied: bool,
        /// Also if it is too late, or was denied before: the agent is told with its next prompt to try it again.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        tell: bool,
    },
    /// Answer with the result of the read.
    Answer {
        #[schemars(extend("x-tool" = tool("With `answer`: what the agent reads").most(CONTENT).at(5)))]
        content: String,
        /// As for `allow`.
        #[serde(default)]
        even_denied: bool,
    },
}

impl DecisionParam {
    pub fn is_even_denied(&self) -> bool {
        match self {
            Self::Deny { .. } => false,
            Self::Allow { even_denied, .. } | Self::Answer { even_denied, .. } => *even_denied,
        }
    }

    /// Allows an access for so long, and no more than that.
    pub fn allow(scope: Option<GrantScope>) -> Self {
        Self::Allow { scope, ttl_s: None, pattern: None, even_denied: false, tell: false }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Scope")]
pub enum GrantScope {
    /// This access.
    Once,
    /// This path and action, or what `match` matches, until the session ends.
    Session,
    /// As `session`, and until a person revokes it, also in later runs of the team. Requires the control token, or
    /// the web's scope `control`.
    Team,
}
