//! Permission requests of agents, and blocked accesses with their decisions.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::shrink::shrink;
use super::{Fold, Row, place_of};
use crate::acp::{self, AskedPermission, PermissionAnswer, PermissionOption};
use crate::journal::event::{EventType, NewEvent, cut};
use crate::journal::payload::{BlockedPayload, Nullable};
use crate::line;
use crate::model::{
    AgentId, BlockedAccess, BlockedStatus, Decided, DecidedBy, SessionKey, TimestampMs, Via,
};

/// Bytes of the options of a permission.
const LONGEST_OPTIONS: usize = 16 << 10;
/// Bytes of a title, a path and a message.
const LONGEST_TEXT: usize = 4096;

/// The payload of `permission`.
#[derive(Serialize)]
struct PermissionPayload {
    tool_call_id: Option<String>,
    outcome: String,
    option_id: Option<String>,
    option_kind: Option<String>,
    waited_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Nullable<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Value>,
}

impl Fold {
    pub(super) fn permission(
        &mut self,
        key: &SessionKey,
        id: &Arc<str>,
        result: Option<&str>,
        at: TimestampMs,
    ) {
        let Some(asked) = self.session(key).permissions.shift_remove(id) else { return };
        self.settle_open(key, at);
        let AskedPermission { mut options, tool_call } = line::or_default(&asked.params);
        shrink(&mut options, LONGEST_OPTIONS);
        let PermissionAnswer { outcome } = result.map(line::or_default).unwrap_or_default();
        let chosen = outcome.option_id.as_deref();
        let kind = chosen.and_then(|chosen| {
            let is_chosen = |it: &PermissionOption| it.option_id.as_deref() == Some(chosen);
            acp::list(&options).into_iter().find(is_chosen)?.kind
        });
        let text = |text: &String| cut(text, LONGEST_TEXT).0.into_owned();
        let keeps_texts = self.keeps_texts();
        let payload = PermissionPayload {
            tool_call_id: tool_call.tool_call_id.as_ref().map(text),
            outcome: outcome.outcome.as_ref().map_or_else(|| "failed".to_owned(), text),
            option_id: outcome.option_id.as_ref().map(text),
            option_kind: kind,
            waited_ms: at.saturating_sub(asked.at),
            title: keeps_texts.then(|| tool_call.title.as_ref().map(text)),
            options: keeps_texts.then_some(options),
        };
        self.push(key, EventType::PERMISSION, &payload, at);
    }

    pub(super) fn blocked(
        &mut self,
        access: &BlockedAccess,
        decided: Option<&Decided>,
        at: TimestampMs,
    ) {
        // The kernel stops a program at any time, also between two chunks of one sentence. `search` and `purge`
        // would not find a text that lies in two messages.
        match self.sessions.contains_key(&access.key) {
            true if access.via == Via::Kernel => self.flush_calls(&access.key),
            true => self.settle_open(&access.key, at),
            false => {}
        }
        let (path, path_cut) = cut(&access.path, LONGEST_TEXT);
        let text = |text: &str| cut(text, LONGEST_TEXT).0.into_owned();
        let answer = access.owner_answer.as_ref();
        let payload = BlockedPayload {
            blocked_id: Some(access.id.to_string()),
            path: Some(path.into_owned()),
            action: access.action.as_str().to_owned(),
            via: access.via.as_str().to_owned(),
            status: access.status.as_str().to_owned(),
            owners: access.owners.iter().map(AgentId::to_string).collect(),
            denied_by: access.denied_by.as_deref().map(str::to_owned),
            sweep: access.sweep,
            harmless: access.harmless,
            completed: access.completed,
            decided_by: access.decided_by.as_ref().map(DecidedBy::to_string),
            rule: access.rule.map(|rule| rule.number.get()),
            decide: access.rule.map(|rule| rule.decide.as_str().to_owned()),
            answered_by: answer.map(|answer| answer.owner.to_string()),
            tokens_saved: answer.map(|answer| answer.saved.map(|saved| saved.tokens)),
            reason: access.reason.as_deref().map(text),
            truncated: path_cut.is_some(),
            message: decided.and_then(|it| it.message.as_deref()).map(text),
        };
        self.put_access(access, EventType::BLOCKED, &payload, at);
        if let Some(decided) = decided.filter(|_| access.status == BlockedStatus::Allowed) {
            let ttl = decided.ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
            let payload = json!({
                "blocked_id": access.id.as_str(),
                "path": cut(&access.path, LONGEST_TEXT).0,
                "action": access.action.as_str(),
                "scope": decided.scope.as_str(),
                "match": decided.pattern,
                "ttl_ms": ttl,
                "decided_by": access.decided_by.as_ref().map(DecidedBy::to_string),
            });
            self.put_access(access, EventType::GRANT, &payload, at);
        }
    }

    fn put_access(
        &mut self,
        access: &BlockedAccess,
        kind: EventType,
        payload: &impl Serialize,
        at: TimestampMs,
    ) {
        let turn = self.sessions.get(&access.key).map(|session| session.turn);
        let event = NewEvent::new(place_of(&access.key), kind, payload).at(at);
        let mut event = event.found_by(cut(&access.path, LONGEST_TEXT).0);
        event.turn = turn;
        self.rows.push(Row::Event(event));
    }
}
