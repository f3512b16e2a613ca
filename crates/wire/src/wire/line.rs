//! Owns a line of the server, of any type, and reads it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::names::{AgentName, NamePlaces};
use super::{
    Agent, Blocked, Budget, ChosenOptions, ConflictLine, Cost, Graph, GraphDelta, Id, Looped,
    MapOverlap, NameOf, Node, RpcError, SessionHeader, Spent, StreamStatus, TaskLine,
};
use crate::model::SessionMode;

/// Declares the lines with the `type` of each, and a reader of them.
macro_rules! lines {
    ($($(#[$attribute:meta])* $variant:ident($line:ty) = $name:literal,)*) => {
        // A line that the server sends.
        #[derive(Clone, Debug, Serialize, JsonSchema)]
        #[serde(tag = "type")]
        #[expect(clippy::large_enum_variant, reason = "a line is written or read, and not kept")]
        pub enum ServerLine<'a> {
            $($(#[$attribute])* #[serde(rename = $name)] $variant($line),)*
            /// A type of another version of this program.
            #[serde(skip)]
            Unknown,
        }

        impl<'a> ServerLine<'a> {
            /// Returns where names are in a line of each type.
            pub fn names() -> HashMap<&'static str, NamePlaces> {
                HashMap::from([$(($name, NamePlaces::of::<$line>()),)*])
            }

        }

        impl ServerLine<'static> {
            /// Reads a line, with or without its end.
            pub fn read(line: &[u8]) -> serde_json::Result<Self> {
                let LineType { kind } = serde_json::from_slice(line)?;
                Ok(match kind.as_ref() {
                    $($name => Self::$variant(serde_json::from_slice(line)?),)*
                    _ => Self::Unknown,
                })
            }
        }
    };
}

lines! {
    /// A session's whole map: replaces the map that the client has.
    Snapshot(MapSnapshot<'a>) = "snapshot",
    /// A change of a session's map.
    Delta(MapDelta<'a>) = "delta",
    /// Tokens and cost, as last reported; for the orchestrator's session the team's sums.
    Usage(UsageLine<'a>) = "usage",
    /// An access outside an agent's zone; each change of its status is another line.
    Blocked(Blocked<'a>) = "blocked",
    /// The state of an agent's process.
    Agent(Agent<'a>) = "agent",
    /// Another value is chosen in a session.
    Options(ChosenOptions<'a>) = "options",
    Budget(Budget<'a>) = "budget",
    Loop(Looped<'a>) = "loop",
    /// A prompt turn that ended, however it ended.
    Turn(TurnLine<'a>) = "turn",
    /// Two agents at the same symbol.
    Overlap(MapOverlap<'a>) = "overlap",
    /// An agent's `session/update` of ACP, unchanged.
    SessionUpdate(UpdateLine<'a>) = "session_update",
    /// The whole code graph: replaces the graph that the client has.
    Graph(Graph<'a>) = "graph",
    GraphDelta(GraphDelta<'a>) = "graph_delta",
    Conflict(ConflictLine<'a>) = "conflict",
    Task(TaskLine<'a>) = "task",
    /// A report of an agent to its team.
    Report(ReportLine<'a>) = "report",
    Stream(StreamStatus<'a>) = "stream",
    /// The client read too slowly: the state follows anew, as after a join.
    Lagged(LaggedLine) = "lagged",
    /// Progress of the turn of a prompt with `stream`; only to the client that made the request.
    RpcProgress(ProgressLine<'a>) = "rpc_progress",
    RpcResult(ResultLine<'a>) = "rpc_result",
    RpcError(ErrorLine<'a>) = "rpc_error",
}

/// The part of a line that all have.
#[derive(Deserialize)]
struct LineType<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct MapSnapshot<'a> {
    #[serde(flatten)]
    pub session: SessionHeader<'a>,
    /// Number of the last delta that it contains; 0 for a new session.
    pub seq: u64,
    /// By path.
    #[serde(with = "super::map::by_path")]
    #[schemars(with = "std::collections::BTreeMap<String, Node>")]
    pub nodes: Vec<Node<'a>>,
    /// Accesses to further paths that did not fit on the map; only if there were any.
    #[serde(default, skip_serializing_if = "super::fields::is_zero")]
    pub omitted: u64,
    /// Only if true: `delta` lines with the same `seq` follow, which are part of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

// Most lines are of this kind, and a flattened header takes longer to encode.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct MapDelta<'a> {
    pub agent_id: AgentName<'a>,
    pub session_id: Cow<'a, str>,
    pub session_mode: NameOf<SessionMode>,
    /// One more than the session's delta before; the same where this line continues it.
    pub seq: u64,
    pub updates: Vec<Node<'a>>,
    /// Paths that are no longer on the map.
    pub removed: Cow<'a, [Arc<str>]>,
    /// Only if true: the session's next line continues this delta.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct UsageLine<'a> {
    #[serde(flatten)]
    pub session: SessionHeader<'a>,
    /// Tokens in context; null if the agent does not report it.
    pub used: Option<u64>,
    /// Size of the context in tokens.
    pub size: u64,
    pub cost: Option<Cost<'a>>,
    /// Only once something was reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent<'a>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct TurnLine<'a> {
    pub agent_id: AgentName<'a>,
    pub session_id: Cow<'a, str>,
    /// From 0 for each session.
    pub turn: u64,
    /// A stop reason of ACP, or `error`.
    pub stop_reason: Cow<'a, str>,
    /// Why it ended in an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
    /// The sum of what was reported while the turn ran; absent if nothing is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent<'a>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct UpdateLine<'a> {
    pub agent_id: AgentName<'a>,
    pub session_id: Cow<'a, str>,
    #[schemars(with = "Value")]
    pub update: Cow<'a, RawValue>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ReportLine<'a> {
    pub agent_id: AgentName<'a>,
    pub text: Cow<'a, str>,
    #[serde(default)]
    pub timestamp_ms: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct LaggedLine {
    /// Number of events that it missed.
    pub missed: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ProgressLine<'a> {
    /// Id of the request.
    #[schemars(with = "Id")]
    pub id: Cow<'a, RawValue>,
    pub session_id: Cow<'a, str>,
    /// New text of the agent; empty as the turn begins.
    pub text: Cow<'a, str>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ResultLine<'a> {
    /// Id of the request, as the JSON it was sent as; null in answers to lines without one.
    #[schemars(with = "Option<Id>")]
    pub id: Option<Cow<'a, RawValue>>,
    #[schemars(with = "Value")]
    pub result: Cow<'a, RawValue>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ErrorLine<'a> {
    /// Id of the request, as the JSON it was sent as; null where it could not be read.
    #[schemars(with = "Option<Id>")]
    pub id: Option<Cow<'a, RawValue>>,
    pub error: Cow<'a, RpcError>,
}

/// Returns the schema of all lines.
pub fn server_lines(answers: &mut SchemaGenerator) -> Schema {
    answers.subschema_for::<ServerLine<'_>>()
}
