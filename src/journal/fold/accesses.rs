//! Permission requests of agents, and blocked accesses with their decisions.

use std::sync::Arc;

use serde_json::{Value, json};

use super::shrink::shrink;
use super::{Fold, Row, place_of};
use crate::journal::event::{EventType, NewEvent, cut};
use crate::model::{
    AgentId, BlockedAccess, BlockedStatus, Decided, DecidedBy, SessionKey, TimestampMs,
};

/// Bytes of the options of a permission.
const LONGEST_OPTIONS: usize = 16 << 10;
/// Bytes of a title, a path and a message.
const LONGEST_TEXT: usize = 4096;

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
        let params: Value = serde_json::from_str(&asked.params).unwrap_or_default();
        let mut options = params.get("options").cloned().unwrap_or_default();
        shrink(&mut options, LONGEST_OPTIONS);
        let outcome: Value =
            result.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
        let outcome = &outcome["outcome"];
        let chosen = outcome["optionId"].as_str();
        let chosen_option = options.as_array().into_iter().flatten();
        let kind = chosen.and_then(|chosen| {
            let mut same = chosen_option.filter(|option| option["optionId"] == chosen);
            same.next()?["kind"].as_str().map(str::to_owned)
        });
        let call = &params["toolCall"];
        let text = |value: &Value| value.as_str().map(|it| cut(it, LONGEST_TEXT).0.into_owned());
        let mut payload = json!({
            "tool_call_id": text(&call["toolCallId"]),
            "outcome": text(&outcome["outcome"]).unwrap_or_else(|| "failed".to_owned()),
            "option_id": chosen.map(|it| cut(it, LONGEST_TEXT).0.into_owned()),
            "option_kind": kind,
            "waited_ms": at.saturating_sub(asked.at),
        });
        if self.keeps_texts() {
            payload["title"] = json!(text(&call["title"]));
            payload["options"] = options;
        }
        self.push(key, EventType::PERMISSION, &payload, at);
    }

    pub(super) fn blocked(
        &mut self,
        access: &BlockedAccess,
        decided: Option<&Decided>,
        at: TimestampMs,
    ) {
        if self.sessions.contains_key(&access.key) {
            self.settle_open(&access.key, at);
        }
        let (path, path_cut) = cut(&access.path, LONGEST_TEXT);
        let owners: Vec<_> = access.owners.iter().map(AgentId::as_str).collect();
        let mut payload = json!({
            "blocked_id": access.id.as_str(),
            "path": path,
            "action": access.action.as_str(),
            "via": access.via.as_str(),
            "status": access.status.as_str(),
            "owners": owners,
            "denied_by": access.denied_by,
            "sweep": access.sweep,
            "completed": access.completed,
            "decided_by": access.decided_by.as_ref().map(DecidedBy::to_string),
        });
        if let Some(rule) = access.rule {
            payload["rule"] = rule.number.get().into();
            payload["decide"] = rule.decide.as_str().into();
        }
        if let Some(answer) = &access.owner_answer {
            payload["answered_by"] = answer.owner.as_str().into();
            payload["tokens_saved"] = answer.saved.map(|saved| saved.tokens).into();
        }
        if let Some(reason) = &access.reason {
            payload["reason"] = cut(reason, LONGEST_TEXT).0.into();
        }
        if path_cut.is_some() {
            payload["truncated"] = true.into();
        }
        if let Some(message) = decided.and_then(|it| it.message.as_ref()) {
            payload["message"] = cut(message, LONGEST_TEXT).0.into();
        }
        self.put_access(access, EventType::BLOCKED, &payload, at);
        if let Some(decided) = decided.filter(|_| access.status == BlockedStatus::Allowed) {
            let ttl = decided.ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
            let payload = json!({
                "blocked_id": access.id.as_str(),
                "path": cut(&access.path, LONGEST_TEXT).0,
                "action": access.action.as_str(),
                "scope": if decided.for_session { "session" } else { "once" },
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
        payload: &Value,
        at: TimestampMs,
    ) {
        let turn = self.sessions.get(&access.key).map(|session| session.turn);
        let event = NewEvent::new(place_of(&access.key), kind, payload).at(at);
        let mut event = event.found_by(cut(&access.path, LONGEST_TEXT).0);
        event.turn = turn;
        self.rows.push(Row::Event(event));
    }
}
