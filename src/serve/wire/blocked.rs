//! A blocked access on the wire.

use schemars::JsonSchema;
use serde::Serialize;

use super::{SessionHeader, Target};
use crate::model::{Action, AgentId, BlockedAccess, BlockedStatus, Decide, DecidedBy, Via};

/// A blocked access, in its line and in answers.
#[derive(Serialize, JsonSchema)]
pub(in crate::serve) struct Blocked<'a> {
    #[serde(flatten)]
    session: SessionHeader<'a>,
    /// Relative to the workspace, with forward slashes; absolute if outside.
    path: &'a str,
    #[schemars(extend("enum" = Action::ALL.map(Action::as_str)))]
    action: &'a str,
    timestamp_ms: u64,
    id: &'a str,
    #[schemars(extend("enum" = BlockedStatus::ALL.map(BlockedStatus::as_str)))]
    status: &'a str,
    /// Agents whose zone allows the path.
    owners: Vec<&'a str>,
    /// The session that decides it.
    orchestrator: Option<Target<'a>>,
    /// The kind of request that made it.
    #[schemars(extend("enum" = Via::ALL.map(Via::as_str)))]
    via: &'a str,
    /// How many denied accesses it stands for: incidental ones, or those of an agent that has more
    /// than are listed. `path` is their common path. Sent again with the same id as it grows.
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<u64>,
    /// The pattern of a zone's `denied` that matches the path, if one does. Only the control token
    /// may allow or answer it, with `even_denied`.
    #[serde(skip_serializing_if = "Option::is_none")]
    denied_by: Option<&'a str>,
    /// The rule of `[[routing]]` that matched it, counted from 1, and who decides by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<u32>,
    #[schemars(extend("enum" = Decide::ALL.map(Decide::as_str)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    decide: Option<&'a str>,
    /// Who decided it: `agent:ID`, `person` (at a terminal), `program`, or `rule` where a rule did.
    /// Absent as long as nobody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    decided_by: Option<String>,
    /// The owner that answered, by such a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_by: Option<&'a str>,
    /// Only if the answer was kept from an equal question: the tokens that it saved.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_saved: Option<u64>,
    /// Only if true: `tokens_saved` is estimated.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tokens_estimated: bool,
    /// Why the agent asks for it: only with `via` `request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// Only after `denied`: its tool call reports that it completed all the same.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    completed: bool,
}

impl<'a> From<&'a BlockedAccess> for Blocked<'a> {
    fn from(access: &'a BlockedAccess) -> Self {
        let answer = access.owner_answer.as_ref();
        let saved = answer.and_then(|answer| answer.saved);
        Self {
            session: SessionHeader::new(&access.key, access.mode),
            path: &access.path,
            action: access.action.as_str(),
            timestamp_ms: access.timestamp_ms,
            id: access.id.as_str(),
            status: access.status.as_str(),
            owners: access.owners.iter().map(AgentId::as_str).collect(),
            orchestrator: access.orchestrator.as_ref().map(Target::from),
            via: access.via.as_str(),
            sweep: access.sweep,
            denied_by: access.denied_by.as_deref(),
            rule: access.rule.map(|rule| rule.number.get()),
            decide: access.rule.map(|rule| rule.decide.as_str()),
            decided_by: access.decided_by.as_ref().map(DecidedBy::to_string),
            answered_by: answer.map(|answer| answer.owner.as_str()),
            tokens_saved: saved.map(|saved| saved.tokens),
            tokens_estimated: saved.is_some_and(|saved| saved.is_estimated),
            reason: access.reason.as_deref(),
            completed: access.completed,
        }
    }
}
