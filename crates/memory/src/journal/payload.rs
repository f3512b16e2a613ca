//! Owns the payloads of events that are written here and read elsewhere: one type for both. A reader passes
//! over fields that it does not know, and a field that is absent is the default.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{HARMLESS, TimestampMs};

/// A field that is null where nothing is known, and absent where it is not kept. Read as None in both cases.
pub(super) type Nullable<T> = Option<Option<T>>;

/// `message.user`, `message.assistant` and `message.thought`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct MessagePayload {
    /// Bytes of the whole text.
    pub bytes: usize,
    #[serde(skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// The contents that are no text, as ACP has them; their number where the journal keeps no texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    pub started: TimestampMs,
}

/// `tool.call` and `tool.result`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct CallPayload {
    pub tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Nullable<String>,
    pub kind: Option<String>,
    /// As ACP has them.
    pub locations: Value,
    /// Only of a result: `completed`, `failed`, `cancelled` or `unfinished`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Nullable<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_bytes: Option<usize>,
    #[serde(skip_serializing_if = "is_false")]
    pub truncated: bool,
}

/// `path.use`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct PathUsePayload {
    pub path: Option<String>,
    pub action: String,
    pub via: String,
    pub tool_call_id: Option<String>,
    pub program: Option<String>,
    pub named: bool,
    pub outside: bool,
}

/// `plan`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanPayload {
    pub count: usize,
    /// As ACP has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<Value>,
    #[serde(skip_serializing_if = "is_false")]
    pub truncated: bool,
}

/// `usage`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct UsagePayload {
    pub used: u64,
    pub size: u64,
    pub cost: Option<CostPayload>,
}

#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct CostPayload {
    pub amount: Option<f64>,
    pub currency: String,
}

/// `update`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct UpdatePayload {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Nullable<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    #[serde(skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// As the agent sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<Value>,
    /// The model that the session runs on from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelPayload>,
}

#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelPayload {
    pub id: String,
    pub name: String,
}

/// `turn.end` and `turn.failed`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnPayload {
    pub stop_reason: Option<String>,
    pub reason: Option<String>,
}

/// `blocked`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockedPayload {
    pub blocked_id: Option<String>,
    pub path: Option<String>,
    pub action: String,
    pub via: String,
    pub status: String,
    pub owners: Vec<String>,
    pub denied_by: Option<String>,
    pub sweep: Option<u64>,
    #[serde(skip_serializing_if = "is_false")]
    pub harmless: bool,
    pub completed: bool,
    pub decided_by: Option<String>,
    /// The number of the rule that took part, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decide: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_saved: Nullable<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "is_false")]
    pub truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl BlockedPayload {
    /// The status as people read it.
    pub fn shown_status(&self) -> &str {
        if self.harmless { HARMLESS } else { &self.status }
    }
}

/// `agent.state`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct StatePayload {
    pub state: String,
    pub pid: Option<u32>,
    pub reason: Option<String>,
    pub restarts: u32,
}

/// `budget`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct BudgetPayload {
    pub(super) state: String,
    pub(super) reason: Option<String>,
    pub(super) tokens: UsedOf<Option<u64>>,
    pub(super) cost: CostUsed,
    pub(super) turns: UsedOf<u64>,
    pub(super) minutes: UsedOf<f64>,
    pub(super) window_s: Option<u64>,
    pub(super) on_exceed: String,
    /// The totals of the configuration, where others were set since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) configured: Option<TotalsPayload>,
}

#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct UsedOf<T> {
    pub(super) used: T,
    pub(super) limit: Option<u64>,
}

#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CostUsed {
    pub(super) used: Option<f64>,
    pub(super) limit: Option<f64>,
    pub(super) currency: String,
}

#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TotalsPayload {
    pub(super) tokens: Option<u64>,
    pub(super) cost: Option<f64>,
    pub(super) turns: Option<u64>,
    pub(super) minutes: Option<u64>,
}

/// `subagent.spawn`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct SpawnPayload {
    /// The helper.
    pub agent_id: Option<String>,
    pub depth: u32,
    /// Its patterns.
    pub zone: Value,
    pub profile: Value,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
