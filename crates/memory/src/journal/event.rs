//! An event on its way into the journal: its place, type, payload and contents. Knows no SQL.

use std::borrow::Cow;

use memchr::memmem;
use serde::Serialize;
use serde_json::Value;
use serde_json::json;

use super::reader::Session;
use crate::model::{AgentId, FileContent, SessionKey, TimestampMs, now_ms};

/// The types of events. Others may come with a later version.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EventType(&'static str);

macro_rules! event_types {
    ($($name:ident = $text:literal,)*) => {
        impl EventType {
            $(
                /// A value of the column `type`; `docs/journal.md` describes its payload.
                pub const $name: Self = Self($text);
            )*
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

event_types! {
    SESSION_START = "session.start",
    SESSION_END = "session.end",
    SESSION_FORK = "session.fork",
    SESSION_REWIND = "session.rewind",
    MESSAGE_USER = "message.user",
    MESSAGE_ASSISTANT = "message.assistant",
    MESSAGE_THOUGHT = "message.thought",
    TOOL_CALL = "tool.call",
    TOOL_RESULT = "tool.result",
    PLAN = "plan",
    USAGE = "usage",
    USAGE_SPENT = "usage.spent",
    MODEL_CALL = "model.call",
    COMPACT = "compact",
    TURN_END = "turn.end",
    TURN_FAILED = "turn.failed",
    PERMISSION = "permission",
    BLOCKED = "blocked",
    GRANT = "grant",
    GRANT_REVOKE = "grant.revoke",
    CONFLICT = "conflict",
    FILE_WRITE = "file.write",
    FILE_CREATE = "file.create",
    FILE_DELETE = "file.delete",
    FILE_RENAME = "file.rename",
    FILE_READ = "file.read",
    PATH_USE = "path.use",
    LOOP = "loop",
    BUDGET = "budget",
    AGENT_STATE = "agent.state",
    REPORT = "report",
    TASK = "task",
    SUBAGENT_SPAWN = "subagent.spawn",
    SUBAGENT_COMPLETE = "subagent.complete",
    CONFIG_CHANGE = "config.change",
    TOKEN_CREATE = "token.create",
    TOKEN_REVOKE = "token.revoke",
    TOKEN_USE = "token.use",
    UNDO = "undo",
    REDO = "redo",
    UPDATE = "update",
    GAP = "gap",
    PRUNE = "prune",
    PURGE = "purge",
}

impl EventType {
    /// The text in the column `type`, such as `tool.call`.
    pub fn as_str(self) -> &'static str {
        self.0
    }

    /// Whether a name is a type, or the part of a type before its dot.
    pub fn is_known(name: &str) -> bool {
        Self::ALL.iter().any(|kind| {
            kind.0 == name || kind.0.split_once('.').is_some_and(|(family, _)| family == name)
        })
    }
}

/// Where an event belongs.
#[derive(Clone, PartialEq, Debug)]
pub enum Place {
    /// To no session and no agent.
    Team,
    /// To an agent, and to no session.
    Agent(AgentId),
    /// To the journal's session of a session of the wire; begins one if it has none of this run.
    Wire(SessionKey),
    /// To a new session of the wire, also if another had its id before.
    NewWire(SessionKey),
    /// To a session of the wire that goes on, also one of an earlier run.
    EarlierWire(SessionKey),
    /// To a session of the journal, by its id.
    Session(String),
    /// To a new session, whose first event this is; its parent is the branch point `parent`.
    Fork {
        /// The id of the event at which the new session branches off.
        parent: String,
        /// The agent of the new session.
        agent: AgentId,
        /// The new session's id on the wire; None while no agent runs it.
        wire_session_id: Option<String>,
    },
}

/// The effect of an event on the head of its session.
#[derive(Clone, PartialEq, Default, Debug)]
pub enum Head {
    /// The event follows the head, and becomes the head.
    #[default]
    Advance,
    /// The event follows the head, but the head becomes the event with this id.
    Set(String),
}

/// A content to store under its hash.
#[derive(Clone, PartialEq, Debug)]
pub struct Blob {
    /// BLAKE3 of the content, in 64 lower-case hexadecimal digits.
    pub hash: String,
    /// The bytes, or the size of a file beside the journal that has them.
    pub data: FileContent,
}

impl Blob {
    /// A content that is in memory, under the hash of its bytes.
    pub fn new(data: Vec<u8>) -> Self {
        Self { hash: hash_of(&data), data: FileContent::Bytes(data) }
    }
}

/// The name of a content: BLAKE3, in lower-case hexadecimal digits.
pub fn hash_of(data: &[u8]) -> String {
    blake3::hash(data).to_hex().to_string()
}

/// An event to append.
#[derive(Clone, PartialEq, Debug)]
pub struct NewEvent {
    /// The session and agent that it belongs to.
    pub place: Place,
    /// The type, for the column `type`.
    pub kind: EventType,
    /// Milliseconds since 1970. The journal raises a time that is less than that of the row before.
    pub timestamp_ms: TimestampMs,
    /// The wire's turn.
    pub turn: Option<u64>,
    /// A JSON object.
    pub payload: String,
    /// The text that the search index has for it.
    pub text: Option<String>,
    /// Contents that the payload names by their hashes. They are committed together with the event.
    pub contents: Vec<Blob>,
    /// The session's head after the event. Without effect if the event is of no session.
    pub head: Head,
    /// The draft that it completes.
    pub(super) draft: Option<u64>,
}

impl NewEvent {
    /// An event of now. The payload is an object.
    pub fn new(place: Place, kind: EventType, payload: &impl Serialize) -> Self {
        // Fails only for a map with keys that are not text.
        let payload = serde_json::to_string(payload).unwrap_or_else(|_| "{}".to_owned());
        Self {
            place,
            kind,
            timestamp_ms: now_ms(),
            turn: None,
            payload,
            text: None,
            contents: Vec::new(),
            head: Head::default(),
            draft: None,
        }
    }

    /// The event that sets a session back to another of its events.
    pub fn rewind(session: &Session, to: &str, files: bool) -> Self {
        let payload = json!({
            "to_event_id": to,
            "from_event_id": session.head_event_id,
            "files": files,
        });
        let place = Place::Session(session.id.clone());
        Self::new(place, EventType::SESSION_REWIND, &payload).head(Head::Set(to.to_owned()))
    }

    /// Sets the number of the turn on the wire.
    #[must_use]
    pub fn in_turn(self, turn: u64) -> Self {
        Self { turn: Some(turn), ..self }
    }

    /// Sets the time, in milliseconds since 1970.
    #[must_use]
    pub fn at(self, timestamp_ms: TimestampMs) -> Self {
        Self { timestamp_ms, ..self }
    }

    /// Sets the text that the search index has for it. An empty text is not indexed.
    #[must_use]
    pub fn found_by(self, text: impl Into<String>) -> Self {
        let text: String = text.into();
        Self { text: Some(text).filter(|text| !text.is_empty()), ..self }
    }

    /// Sets the contents that are stored with it, in place of earlier ones.
    #[must_use]
    pub fn with(self, contents: Vec<Blob>) -> Self {
        Self { contents, ..self }
    }

    /// Sets its effect on the head of its session.
    #[must_use]
    pub fn head(self, head: Head) -> Self {
        Self { head, ..self }
    }

    pub(super) fn content_bytes(&self) -> usize {
        self.contents.iter().map(|blob| blob.data.in_memory()).sum()
    }
}

/// An event as it was committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Committed {
    /// The event's id in the journal, a UUID of version 7 in lower case.
    pub id: String,
    /// The session's id in the journal; None for events of no session.
    pub session_id: Option<String>,
    /// The number of the event in its session, from 0; None where `session_id` is.
    pub sequence: Option<u64>,
}

/// Cuts a text to at most `most` bytes; returns the number of bytes it had if it was longer.
pub(super) fn cut(text: &str, most: usize) -> (Cow<'_, str>, Option<usize>) {
    if text.len() <= most {
        return (Cow::Borrowed(text), None);
    }
    (Cow::Borrowed(&text[..text.floor_char_boundary(most)]), Some(text.len()))
}

/// The hashes in a payload's fields named `hash`.
pub(super) fn contents_named(payload: &str) -> impl Iterator<Item = &str> {
    const NAME: &str = "\"hash\"";
    memmem::find_iter(payload.as_bytes(), NAME).filter_map(|at| {
        let value = payload[at + NAME.len()..].trim_start().strip_prefix(':')?;
        let (hash, _) = value.trim_start().strip_prefix('"')?.split_once('"')?;
        let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hash.then_some(hash)
    })
}

/// Marks the states of files with this content as not stored; returns whether it found any.
pub(super) fn unstore(value: &mut Value, hash: &str) -> bool {
    match value {
        Value::Array(all) => all.iter_mut().fold(false, |any, one| unstore(one, hash) | any),
        Value::Object(fields) => {
            let mut found = fields.values_mut().fold(false, |any, one| unstore(one, hash) | any);
            if fields.get("hash").and_then(Value::as_str) == Some(hash) {
                fields.insert("stored".to_owned(), false.into());
                found = true;
            }
            if found && fields.contains_key("restorable") {
                fields.insert("restorable".to_owned(), false.into());
            }
            found
        }
        _ => false,
    }
}
