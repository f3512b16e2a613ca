//! Owns a stream of the journal: its line, and the methods about it.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::method::method;
use super::names::StreamName;
use super::{Empty, NameOf, Object};
use crate::model::{StreamKind, StreamState};

method! {
    ListStreams = "list_streams": Empty => Vec<StreamStatus<'a>>;
    port: Anyone, web: Read, token: Read(Team), waits: false, lasts: false, hub: All(Joined)
}

method! {
    AttachStream = "attach_stream": AttachStreamParams => StreamStatus<'a>;
    port: Person, web: Control, token: Control(Team), waits: false, lasts: false, hub: One
}

method! {
    DetachStream = "detach_stream": DetachStreamParams => StreamStatus<'a>;
    port: Person, web: Control, token: Control(Team), waits: false, lasts: false, hub: One
}

method! {
    ReplayToStream = "replay_to_stream": ReplayToStreamParams => ReplayedToStream<'a>;
    port: Person, web: Control, token: Control(Team), waits: false, lasts: true, hub: One
}

/// A stream, as it stands.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StreamStatus<'a> {
    pub name: StreamName<'a>,
    #[serde(default)]
    pub kind: NameOf<StreamKind>,
    pub state: NameOf<StreamState>,
    /// Why the last delivery failed; null: it did not.
    pub reason: Option<Cow<'a, str>>,
    /// Deliveries that failed in a row.
    #[serde(default)]
    pub failures: u32,
    /// Events since the team began.
    #[serde(default)]
    pub delivered: u64,
    /// Events that left the journal before they were delivered.
    #[serde(default)]
    pub lost: u64,
    /// Events that the receiver refused for good.
    #[serde(default)]
    pub dead: u64,
    /// The number in the journal up to which all is delivered; null: not known yet.
    pub position: Option<u64>,
    /// When the state changed.
    #[serde(default)]
    pub timestamp_ms: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AttachStreamParams {
    /// A `[[streams]]` table of the configuration, as JSON; the name alone of one that was detached.
    pub config: Object,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DetachStreamParams {
    pub name: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReplayToStreamParams {
    /// As for `list_events`.
    pub session_id: String,
    /// The stream's name.
    pub stream: String,
}

/// A session that was delivered to a stream once more.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReplayedToStream<'a> {
    /// As in `origin` of each event.
    pub replay_id: Cow<'a, str>,
    /// The session of the journal.
    pub journal_session_id: Cow<'a, str>,
    /// Events that were delivered.
    pub events: u64,
    /// Events that the receiver refused for good.
    pub dead: u64,
}
