//! The tool calls of one session, by the agent's updates.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use serde::Deserialize;

use super::{FollowedSession, seconds};
use crate::metrics::catalog::Metric;
use crate::metrics::labels::{self, OTHER};
use crate::metrics::series::Series;
use crate::model::TimestampMs;

/// Calls of a turn that are remembered, so that one counts once however often its end is told. Past
/// that those that ended are forgotten, and calls are not timed while so many are open.
const MOST: usize = 256;

/// By the hash of their ids, which may be long.
#[derive(Default, Debug)]
pub(super) struct TimedCalls {
    hash: RandomState,
    calls: HashMap<u64, TimedCall>,
}

#[derive(Debug)]
struct TimedCall {
    began: TimestampMs,
    kind: &'static str,
    has_ended: bool,
}

/// The fields that are read of an update.
#[derive(Deserialize)]
struct Update<'a> {
    #[serde(borrow, rename = "sessionUpdate", default)]
    what: Cow<'a, str>,
    #[serde(borrow, rename = "toolCallId", default)]
    call: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    status: Option<Cow<'a, str>>,
}

/// Takes an update of a session.
pub(super) fn update(
    raw: &str,
    session: &mut FollowedSession,
    at: TimestampMs,
    series: &mut Series,
) {
    let Ok(update) = serde_json::from_str::<Update<'_>>(raw) else { return };
    match &*update.what {
        "agent_message_chunk" | "agent_thought_chunk" => session.turns.output(at, series),
        "tool_call" | "tool_call_update" => {
            session.turns.output(at, series);
            session.calls.update(&update, at, series);
        }
        _ => {}
    }
}

impl TimedCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.values().all(|call| call.has_ended)
    }

    /// Calls without an end have none.
    pub(super) fn turn_ended(&mut self) {
        self.calls.clear();
    }

    fn update(&mut self, update: &Update<'_>, at: TimestampMs, series: &mut Series) {
        let Some(id) = &update.call else { return };
        let id = self.hash.hash_one(&**id);
        if self.calls.len() >= MOST && !self.calls.contains_key(&id) {
            self.calls.retain(|_, call| !call.has_ended);
            if self.calls.len() >= MOST {
                return;
            }
        }
        let new = TimedCall { began: at, kind: OTHER, has_ended: false };
        let call = self.calls.entry(id).or_insert(new);
        if call.has_ended {
            return;
        }
        if let Some(kind) = &update.kind {
            call.kind = labels::tool_kind(kind);
        }
        let failed = match update.status.as_deref() {
            Some("completed" | "cancelled") => false,
            Some("failed") => true,
            _ => return,
        };
        call.has_ended = true;
        let kind = call.kind;
        series.observe(Metric::ToolDuration, [kind.into()], seconds(call.began, at));
        series.add(Metric::ToolErrors, [kind.into()], u64::from(failed));
    }
}
