//! Waits for decisions: permissions that agents ask for, blocked accesses, and writes in conflict.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::tools::{OpenTool, ToolCall};
use super::{MOST_WAITS, SpanFold};
use crate::acp::PermissionAnswer;
use crate::line::or_default;
use crate::model::{
    AgentId, BlockedAccess, BlockedStatus, Conflict, Decided, DecidedBy, SessionKey, TimestampMs,
};
use crate::telemetry::names;
use crate::telemetry::span::SpanDraft;

/// Permissions of a turn that wait for an answer.
const MOST_PERMISSIONS: usize = 64;

/// Bytes of a permission's options; longer ones are not read.
const LONGEST_OPTIONS: usize = 8 << 10;

/// An access, or a write, that waits.
pub(super) struct OpenWait {
    pub(super) span: SpanDraft,
    key: SessionKey,
    /// Events were missed since it began, maybe its end.
    pub(super) has_gap: bool,
}

pub(super) struct OpenPermission {
    span: SpanDraft,
    options: Vec<PermissionChoice>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PermissionChoice {
    option_id: String,
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AskedPermission<'a> {
    #[serde(borrow, default)]
    tool_call: Option<&'a RawValue>,
    #[serde(borrow, default)]
    options: Option<&'a RawValue>,
}

impl SpanFold {
    pub(super) fn permission_asked(
        &mut self,
        key: &SessionKey,
        id: &Arc<str>,
        params: &str,
        at: TimestampMs,
    ) {
        let Some(spans) = self.turn_spans(key) else { return };
        let Ok(asked) = serde_json::from_str::<AskedPermission<'_>>(params) else { return };
        let call: Option<ToolCall<'_>> =
            asked.tool_call.and_then(|call| serde_json::from_str(call.get()).ok());
        let asked_name = call.as_ref().map(OpenTool::name_of);
        let call = call.map(|call| call.id());
        let Some(turn) = self.turn(key) else { return };
        let tool = call.as_ref().and_then(|call| turn.tools.get(call));
        // Some agents ask before they report the call.
        let name = tool.map(|tool| tool.name().to_owned()).or(asked_name);
        let name = name.unwrap_or_else(|| names::OTHER.to_owned());
        let parent = tool.map_or(spans.agent, |tool| spans.agent.with_span(tool.id));
        let oldest = turn.permissions.keys().next().cloned();
        if let Some(oldest) = oldest.filter(|_| turn.permissions.len() >= MOST_PERMISSIONS) {
            self.give_up_permission(key, &oldest, at);
        }
        let place = self.child_of(parent);
        let mut span = SpanDraft::new(names::PERMISSION, &name, place, Some(parent), at);
        span.put(names::DECISION_KIND, names::PERMISSION);
        span.put(names::AGENT_NAME, key.agent.as_str());
        span.put(names::CONVERSATION_ID, key.session.as_str());
        span.put_some(names::TOOL_CALL_ID, call.as_deref());
        let options = asked.options.filter(|options| options.get().len() <= LONGEST_OPTIONS);
        let options = options.and_then(|options| serde_json::from_str(options.get()).ok());
        let permission = OpenPermission { span, options: options.unwrap_or_default() };
        if let Some(turn) = self.turn(key) {
            turn.permissions.insert(Arc::clone(id), permission);
        }
    }

    pub(super) fn permission_answered(
        &mut self,
        key: &SessionKey,
        id: &Arc<str>,
        result: Option<&str>,
        at: TimestampMs,
    ) {
        let open = self.turn(key).and_then(|turn| turn.permissions.shift_remove(id));
        let Some(OpenPermission { mut span, options }) = open else { return };
        let PermissionAnswer { outcome } = result.map(or_default).unwrap_or_default();
        let chosen = outcome.option_id.as_deref();
        let chosen = options.iter().find(|option| Some(&*option.option_id) == chosen);
        let kind = chosen.map(|option| &*option.kind);
        let said = match (kind, outcome.outcome.as_deref()) {
            (Some("allow_once" | "allow_always"), _) => "allowed",
            (Some("reject_once" | "reject_always"), _) => "denied",
            (_, Some("selected")) => "selected",
            (_, Some("cancelled")) => "cancelled",
            _ => "failed",
        };
        span.put(names::DECISION_OUTCOME, said);
        span.put_some(
            names::DECISION_OPTION,
            kind.filter(|_| ["allowed", "denied"].contains(&said)),
        );
        self.done.push(span.end(at));
    }

    /// Ends the permissions of a turn that nobody answered.
    pub(super) fn end_permissions(&mut self, key: &SessionKey, at: TimestampMs) {
        let Some(turn) = self.turn(key) else { return };
        let open: Vec<_> = turn.permissions.keys().cloned().collect();
        for id in open {
            self.give_up_permission(key, &id, at);
        }
    }

    fn give_up_permission(&mut self, key: &SessionKey, id: &Arc<str>, at: TimestampMs) {
        let open = self.turn(key).and_then(|turn| turn.permissions.shift_remove(id));
        if let Some(OpenPermission { span, .. }) = open {
            self.incomplete(span, at);
        }
    }

    pub(super) fn blocked(&mut self, access: &BlockedAccess, now: TimestampMs) {
        if access.status != BlockedStatus::Pending {
            return self.access_decided(access, None, now);
        }
        let id = wait_of_access(access);
        if self.waits.contains_key(&id) {
            return;
        }
        let at = access.timestamp_ms.min(now);
        let mut span = self.wait_span(names::ACCESS, access.action.as_str(), &access.key, at);
        span.put(names::DECISION_ID, access.id.as_str());
        span.put(names::DECISION_ACTION, access.action.as_str());
        span.put(names::DECISION_VIA, access.via.as_str());
        if let Some(rule) = access.rule {
            span.put_number(names::DECISION_RULE, Some(u64::from(rule.number.get())));
        }
        if self.settings.contents {
            span.put(names::DECISION_PATH, &access.path);
        }
        self.wait(id, span, &access.key, now);
    }

    pub(super) fn decided(&mut self, decided: &Decided, at: TimestampMs) {
        // Nothing changed for an access that waits on.
        if decided.access.status != BlockedStatus::Pending {
            self.access_decided(&decided.access, Some(decided), at);
        }
    }

    fn access_decided(
        &mut self,
        access: &BlockedAccess,
        decided: Option<&Decided>,
        at: TimestampMs,
    ) {
        let open = self.waits.shift_remove(&wait_of_access(access));
        let Some(OpenWait { mut span, .. }) = open else { return };
        span.put(names::DECISION_OUTCOME, access.status.as_str());
        let by = match (&access.owner_answer, &access.decided_by) {
            (Some(answer), _) => Some(("owner", Some(&answer.owner))),
            (None, by) => by.as_ref().map(decider),
        };
        if let Some((by, agent)) = by {
            span.put(names::DECISION_BY, by);
            span.put_some(names::DECISION_AGENT, agent.map(AgentId::as_str));
        }
        if let Some(decided) = decided {
            if access.status == BlockedStatus::Allowed {
                let scope = decided.scope.as_str();
                span.put(names::DECISION_SCOPE, scope);
            }
            let message = decided.message.as_deref().filter(|_| self.settings.contents);
            span.put_some(names::DECISION_MESSAGE, message);
        }
        self.done.push(span.end(at));
    }

    pub(super) fn conflict(&mut self, conflict: &Conflict, now: TimestampMs) {
        let id = format!("conflict {}", conflict.id);
        if !conflict.waits() {
            let Some(OpenWait { mut span, .. }) = self.waits.shift_remove(&id) else { return };
            span.put(names::DECISION_OUTCOME, conflict.status.as_str());
            let by = conflict.decided_by.as_ref().map(|by| decider(by).0);
            span.put_some(names::DECISION_BY, by);
            self.done.push(span.end(now));
            return;
        }
        let writer = conflict.agents.first().filter(|_| !self.waits.contains_key(&id));
        let Some(writer) = writer else { return };
        let key = SessionKey::new(writer.clone(), conflict.session.clone());
        let at = conflict.timestamp_ms.min(now);
        let mut span = self.wait_span(names::CONFLICT, conflict.kind.as_str(), &key, at);
        span.put(names::DECISION_ID, conflict.id.as_str());
        span.put(names::DECISION_ACTION, "write");
        if self.settings.contents {
            span.put(names::DECISION_PATH, &conflict.path);
        }
        self.wait(id, span, &key, now);
    }

    /// A span below the turn that waits, if that is known, else in a trace of its own.
    fn wait_span(
        &mut self,
        kind: &str,
        what: &str,
        key: &SessionKey,
        at: TimestampMs,
    ) -> SpanDraft {
        let mut span = match self.turn_of(key).and_then(|key| self.turn_spans(&key)) {
            Some(spans) => {
                let place = self.child_of(spans.agent);
                SpanDraft::new(kind, what, place, Some(spans.agent), at)
            }
            None => self.root_span(kind, what, at),
        };
        span.put(names::DECISION_KIND, kind);
        span.put(names::AGENT_NAME, key.agent.as_str());
        let session = Some(key.session.as_str()).filter(|session| !session.is_empty());
        span.put_some(names::CONVERSATION_ID, session);
        span
    }

    /// The session whose turn runs: that of the key, or the agent's only one where none is named.
    fn turn_of(&self, key: &SessionKey) -> Option<SessionKey> {
        if !key.session.as_str().is_empty() {
            return Some(key.clone());
        }
        let of_agent = self.sessions.iter().filter(|(other, _)| other.agent == key.agent);
        let mut running = of_agent.filter(|(_, session)| session.turn.is_some());
        running.next().filter(|_| running.next().is_none()).map(|(key, _)| key.clone())
    }

    /// Ends the waits of a session whose turn ends, if the decision may have been missed.
    pub(super) fn end_waits_with_gaps(&mut self, key: &SessionKey, now: TimestampMs) {
        let is_over = |_: &String, wait: &mut OpenWait| wait.has_gap && wait.key == *key;
        let over: Vec<_> = self.waits.extract_if(.., is_over).collect();
        for (_, wait) in over {
            self.done.push(wait.span.end(now));
        }
    }

    fn wait(&mut self, id: String, span: SpanDraft, key: &SessionKey, now: TimestampMs) {
        if self.waits.len() >= MOST_WAITS
            && let Some((_, oldest)) = self.waits.shift_remove_index(0)
        {
            self.incomplete(oldest.span, now);
        }
        self.waits.insert(id, OpenWait { span, key: key.clone(), has_gap: false });
    }
}

/// The kind of a decider, and the agent that it is.
fn decider(by: &DecidedBy) -> (&'static str, Option<&AgentId>) {
    match by {
        DecidedBy::Agent(agent) => ("agent", Some(agent)),
        DecidedBy::Person => ("person", None),
        DecidedBy::Web => ("web", None),
        DecidedBy::Token(_) => ("token", None),
        DecidedBy::Rule => ("rule", None),
    }
}

fn wait_of_access(access: &BlockedAccess) -> String {
    format!("access {}", access.id)
}
