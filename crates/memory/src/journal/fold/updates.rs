//! The `update` objects of `session/update`, by their kind. Unknown kinds are kept.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Fold;
use super::shrink::{shrink, texts};
use crate::journal::event::{EventType, cut};
use crate::journal::payload::{PlanPayload, UpdatePayload};
use crate::line::lenient;
use crate::model::{SessionKey, TimestampMs, mask};

/// Bytes of a plan, and of an update of another kind.
const LONGEST: usize = 64 << 10;

#[derive(Deserialize)]
struct Update<'a> {
    #[serde(borrow, rename = "sessionUpdate", default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, rename = "messageId", default)]
    message_id: Option<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PlanUpdate {
    entries: Value,
}

#[derive(Deserialize)]
struct UpdateKind {
    #[serde(rename = "sessionUpdate", default, deserialize_with = "lenient")]
    name: Option<String>,
}

impl Fold {
    pub(super) fn update(&mut self, key: &SessionKey, raw: &Arc<str>, at: TimestampMs) {
        if self.session(key).replays {
            return;
        }
        let Ok(update) = serde_json::from_str::<Update<'_>>(raw) else {
            return self.unknown(key, raw, at);
        };
        let message = match &*update.kind {
            "user_message_chunk" => EventType::MESSAGE_USER,
            "agent_message_chunk" => EventType::MESSAGE_ASSISTANT,
            "agent_thought_chunk" => EventType::MESSAGE_THOUGHT,
            "tool_call" | "tool_call_update" => return self.call(key, raw, at),
            "plan" => return self.plan(key, raw, at),
            // A separate record has the same, once.
            "usage_update" | "compaction_update" | "_eisen/prompt" => return,
            // Its call has it.
            "_eisen/terminal" => return self.terminal(key, raw),
            _ => return self.unknown(key, raw, at),
        };
        let content = update.content.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let Some(content) = content else { return self.unknown(key, raw, at) };
        self.chunk(key, message, update.message_id.as_deref(), content, at);
    }

    fn plan(&mut self, key: &SessionKey, raw: &Arc<str>, at: TimestampMs) {
        if self.session(key).plan.as_ref() == Some(raw) {
            return;
        }
        // A longer plan is never compared.
        self.session(key).plan = (raw.len() <= LONGEST).then(|| Arc::clone(raw));
        self.settle_open(key, at);
        let Ok(plan) = serde_json::from_str::<Value>(raw) else { return };
        let PlanUpdate { mut entries } = serde_json::from_value(plan).unwrap_or_default();
        let count = entries.as_array().map_or(0, Vec::len);
        if !self.keeps_texts() {
            let payload = PlanPayload { count, ..PlanPayload::default() };
            return self.push(key, EventType::PLAN, &payload, at);
        }
        let truncated = shrink(&mut entries, LONGEST);
        let mut found = String::new();
        texts(&entries, LONGEST, &mut found);
        let payload = PlanPayload { count, entries: Some(entries), truncated };
        self.push_found(key, EventType::PLAN, &payload, at, found);
    }

    /// Keeps an update of an unknown kind.
    fn unknown(&mut self, key: &SessionKey, raw: &str, at: TimestampMs) {
        self.settle_open(key, at);
        let parsed = serde_json::from_str::<Value>(raw);
        let kind =
            parsed.as_ref().ok().and_then(|update| UpdateKind::deserialize(update).ok()?.name);
        let kind = kind.map(|kind| cut(&kind, 256).0.into_owned());
        let bytes = Some(raw.len());
        let mut payload = UpdatePayload { kind: Some(kind), bytes, ..UpdatePayload::default() };
        if self.keeps_texts() {
            let mut update = parsed.unwrap_or_else(|_| cut(raw, LONGEST).0.into());
            mask(&mut update);
            payload.truncated = shrink(&mut update, LONGEST);
            payload.update = Some(update);
        }
        self.push(key, EventType::UPDATE, &payload, at);
    }

    /// Ends the open message and puts out the calls, before another event.
    pub(super) fn settle_open(&mut self, key: &SessionKey, at: TimestampMs) {
        self.end_message(key, at);
        self.flush_calls(key);
    }
}
