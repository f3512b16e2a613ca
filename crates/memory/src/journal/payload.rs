//! Owns the payloads of events that are written here and read elsewhere: one type for both. A reader passes
//! over fields that it does not know, and a field that is absent is the default.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{HARMLESS, Spent, TimestampMs};

/// A field that is null where nothing is known, and absent where it is not kept. Read as None in both cases.
pub(super) type Nullable<T> = Option<Option<T>>;

/// `message.user`, `message.assistant` and `message.thought`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct MessagePayload {
    /// Bytes of the whole text.
    pub bytes: usize,
    /// Whether the text or the blocks were cut to the journal's bounds.
    #[serde(skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// The contents that are no text, as ACP has them; their number where the journal keeps no texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Value>,
    /// The text, at most 1 MiB of it; None where the journal keeps no texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The `messageId` that the agent gave, up to 1024 bytes; None if it gave none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// The time at which it began, in milliseconds since 1970. The event's time is that of its end.
    pub started: TimestampMs,
}

/// `tool.call` and `tool.result`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct CallPayload {
    /// The agent's id of the call, which is the same in its `tool.result`.
    pub tool_call_id: Option<String>,
    /// The title that the agent gave. None if it gave none, and where the journal keeps no texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Nullable<String>,
    /// ACP's kind of the tool, such as `edit`; None if the agent gave none.
    pub kind: Option<String>,
    /// As ACP has them.
    pub locations: Value,
    /// Only of a result: `completed`, `failed`, `cancelled` or `unfinished`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Only of a result: milliseconds since the first line of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Only of a result: the text of the error, empty where no texts are kept. None if it did not fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Nullable<String>,
    /// ACP's contents: what the call brought. Of a call without an input: what it is about to write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// Only of a result: ACP's `rawOutput`. None where the journal keeps no texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// ACP's `rawInput`. Of a result only if it changed after the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// Only of a call: bytes of the input as JSON, before it was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_bytes: Option<usize>,
    /// Whether the input, the contents or the output were cut to the journal's bounds.
    #[serde(skip_serializing_if = "is_false")]
    pub truncated: bool,
}

/// `path.use`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct PathUsePayload {
    /// As the wire shows it, up to 4096 bytes. A write in a git folder has the path of that folder.
    pub path: Option<String>,
    /// `read` or `write`.
    pub action: String,
    /// `kernel`; or `tool` or `terminal`, if a tool call reported it.
    pub via: String,
    /// The tool call that it belongs to; None if none is certain.
    pub tool_call_id: Option<String>,
    /// The name of the program, with the script that an interpreter runs; None if it is not known.
    pub program: Option<String>,
    /// Whether a tool call, or the arguments of the program, name the path.
    pub named: bool,
    /// Whether the zone, as it is written, does not have the path.
    pub outside: bool,
}

/// `plan`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanPayload {
    /// The number of entries, also where they are not kept.
    pub count: usize,
    /// As ACP has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<Value>,
    /// Whether the entries were cut to 64 KiB.
    #[serde(skip_serializing_if = "is_false")]
    pub truncated: bool,
}

/// `usage`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct UsagePayload {
    /// Tokens that are in the context.
    pub used: u64,
    /// Tokens that the context can hold.
    pub size: u64,
    /// The cost of the session so far, as the agent reports it; None if it reports none.
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
    /// ACP's name of the update. None if it has none, and where `model` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Nullable<String>,
    /// Bytes of the update as it came; None where `model` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// Whether the update was cut to 64 KiB.
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
    /// ACP's stop reason; `error` for a turn that failed.
    pub stop_reason: Option<String>,
    /// The explanation of an error or a stop, for people; None where none is known.
    pub reason: Option<String>,
    /// The sum of what the turn's `usage.spent` say; None where they say nothing, and in a journal of before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<TurnSpent>,
}

/// The tokens and the cost of a turn, by the names of the wire.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnSpent {
    /// All tokens; None: no report had them.
    pub total: Option<u64>,
    /// One for each currency; empty: no report had a cost.
    pub cost: Vec<CostPayload>,
    /// `total` and `cost`, if they are estimated, or partly so.
    pub estimated: Vec<String>,
    /// `total` and `cost`, if some reports did not have them.
    pub incomplete: Vec<String>,
}

impl TurnSpent {
    /// The sum of a turn; None if nothing is known.
    pub(super) fn of(spent: &Spent) -> Option<Self> {
        let total = spent.total();
        let names = |tokens: bool, cost: bool| {
            let names = [(tokens, "total"), (cost, "cost")].into_iter();
            names.filter(|(is, _)| *is).map(|(_, name)| name.to_owned()).collect()
        };
        let cost = spent.cost.iter();
        let cost = cost.map(|(currency, amount)| CostPayload {
            amount: Some(*amount),
            currency: currency.to_string(),
        });
        spent.is_known().then(|| Self {
            total: total.known,
            cost: cost.collect(),
            estimated: names(total.is_estimated, spent.cost_is_estimated),
            incomplete: names(total.unknown > 0, spent.cost_unknown > 0),
        })
    }
}

/// `blocked`.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct BlockedPayload {
    /// The id on the wire, such as `b1`. All events of one access have the same.
    pub blocked_id: Option<String>,
    /// As the wire shows it, up to 4096 bytes. Of a sweep: the folder that all accesses have in common.
    pub path: Option<String>,
    /// `read` or `write`. Of a sweep: `write` if any access is one.
    pub action: String,
    /// The way by which it came: `fs`, `terminal`, `permission`, `kernel`, `tool` or `request`.
    pub via: String,
    /// `pending`, `denied`, `allowed`, `answered`, `expired` or `observed`.
    pub status: String,
    /// The agents whose own zone contains the path.
    pub owners: Vec<String>,
    /// The `denied` pattern that matches, or `the socket's server outside the team`: no agent can open it.
    pub denied_by: Option<String>,
    /// The number of accesses that the event stands for; None if it is a single one.
    pub sweep: Option<u64>,
    /// Whether it is a sweep that the agent makes by itself, and whose refusal does no harm.
    #[serde(skip_serializing_if = "is_false")]
    pub harmless: bool,
    /// Whether it was denied, but its tool call reported that it completed.
    pub completed: bool,
    /// `person`, `web`, `token:OWNER`, `agent:ID` or `rule`; None until somebody decides.
    pub decided_by: Option<String>,
    /// The number of the rule that took part, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<u32>,
    /// The rule's `decide`: `deny`, `orchestrator`, `owner` or `person`. None without a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decide: Option<String>,
    /// The id of the owner that answered in place of the file; None if no owner did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Tokens that a kept answer of the owner saved. None if the owner was asked, or did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_saved: Nullable<u64>,
    /// The agent's own reason, if it asked before it tried; up to 4096 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the path was cut to 4096 bytes.
    #[serde(skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// The message of the decision to the agent; None if there is none.
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
    /// A state as in the wire's line `agent`, such as `ready`.
    pub state: String,
    /// The agent's process; None while it has none.
    pub pid: Option<u32>,
    /// The explanation of the state; None where it needs none.
    pub reason: Option<String>,
    /// The number of restarts since the team came up.
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
    /// Levels below an agent without a parent, from 1.
    pub depth: u32,
    /// Its patterns.
    pub zone: Value,
    /// The name of the profile that it runs; null: it runs what its parent runs.
    pub profile: Value,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}
