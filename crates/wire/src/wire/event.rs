//! Owns the methods that read and replay the journal.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Empty;
use super::method::method;
use super::names::{AgentName, UniqueId};
method! {
    GetJournal = "get_journal": Empty => JournalState;
    port: Anyone, web: Read, token: Read(Team), waits: false, lasts: false, hub: One
}

method! {
    ListEvents = "list_events": ListEventsParams => Events<'a>;
    port: Reader, web: Read, token: Read(Named("agent_id")), waits: false, lasts: false, hub: One
}

method! {
    GetEvent = "get_event": GetEventParams => Event<'a>;
    port: Reader, web: Read, token: Read(Team), waits: false, lasts: false, hub: One
}

method! {
    SearchEvents = "search_events": SearchEventsParams => FoundEvents<'a>;
    port: Reader, web: Read, token: Read(Team), waits: false, lasts: false, hub: One
}

method! {
    ReplaySession = "replay_session": ReplaySessionParams => Replayed;
    port: Reader, web: Read, token: Read(Team), waits: true, lasts: true, hub: One
}

#[derive(Clone, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListEventsParams {
    /// Only of this session: the journal's id, the beginning of one, `AGENT/SESSION` or a session of
    /// the wire.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub session_id: Option<String>,
    /// Only of this agent.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub agent_id: Option<AgentName<'static>>,
    /// Only of these types; `tool` stands for all that begin with `tool.`.
    pub types: Option<Vec<String>>,
    /// Only behind the event with this id: `next` of the answer before.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub after: Option<String>,
    /// Only before the event with this id: with `last` the `next` of the answer before.
    #[serde(default, deserialize_with = "super::fields::name")]
    pub before: Option<String>,
    /// The last of these events, and not the first.
    #[serde(default)]
    pub last: bool,
    /// From 1 to 1,000; 100 if left out.
    pub limit: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetEventParams {
    /// The event's id, or a beginning that no other has.
    pub id: UniqueId<'static>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SearchEventsParams {
    /// Words that an event must have, all of them.
    pub query: String,
    /// From 1 to 1,000; 100 if left out.
    pub limit: Option<u64>,
}

/// An event of the journal.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Event<'a> {
    pub id: Cow<'a, str>,
    /// The event before it on its branch.
    pub parent_id: Option<Cow<'a, str>>,
    /// The journal's session; null for events of no session.
    pub session_id: Option<Cow<'a, str>>,
    pub agent_id: Option<AgentName<'a>>,
    /// From 0 within a session.
    pub sequence: Option<u64>,
    pub depth: Option<u64>,
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// Milliseconds since 1970.
    pub timestamp: u64,
    pub turn: Option<u64>,
    /// Its fields depend on the type.
    #[serde(deserialize_with = "super::fields::raw")]
    #[schemars(with = "Map<String, Value>")]
    pub payload: Cow<'a, RawValue>,
}

/// Events, oldest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Events<'a> {
    pub events: Vec<Event<'a>>,
    /// The `after` of the next request, with `last` its `before`; null at the end.
    pub next: Option<Cow<'a, str>>,
}

/// An event that a search found.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FoundEvent<'a> {
    #[serde(flatten)]
    pub event: Event<'a>,
    /// The words in their context, each between `[` and `]`.
    pub snippet: Cow<'a, str>,
    /// Less is better.
    pub rank: f64,
}

/// The events that a search found, the best first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FoundEvents<'a> {
    pub events: Vec<FoundEvent<'a>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReplaySessionParams {
    /// As for `list_events`.
    pub session_id: String,
    /// So many times as fast as it was: from 0.01 to 1,000, or `max` for no pauses; 1 if left out.
    pub speed: Option<SpeedParam>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SpeedParam {
    Times(f64),
    Named(String),
}

/// A replay that is over.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Replayed {
    /// The session of the journal.
    pub journal_session_id: String,
    /// The number of its events.
    pub events: u64,
}

/// The team's journal.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct JournalState {
    /// Null: the team keeps none.
    pub path: Option<String>,
    /// Why nothing can be written now; null if all is well.
    pub trouble: Option<String>,
    /// The deletion that is about to happen by `keep_days` or `max_mb`; null if there is none.
    pub notice: Option<String>,
}
