//! The format of the registry's file. Reads files of any version, and keeps unknown fields.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::registry::{FileKey, Raw, Registry, Session};
use crate::model::{AgentId, SessionId, SessionKey, SessionMode, TimestampMs};

/// Parses a file; the error says why it is corrupt.
pub(super) fn parse(text: &[u8]) -> Result<Registry, String> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    let mut fields = Fields::of(text)?;
    let active = fields.raw("active").map(|raw| key(&mut Fields::of(raw.get())?)).transpose();
    let sessions: Vec<&RawValue> = match fields.raw("sessions") {
        Some(raw) => read(raw).map_err(|error| format!("`sessions`: {error}"))?,
        None => Vec::new(),
    };
    let session = |(n, raw): (usize, &&RawValue)| {
        session(raw.get()).map_err(|error| format!("`sessions[{n}]`: {error}"))
    };
    Ok(Registry {
        active: active.map_err(|error| format!("`active`: {error}"))?,
        sessions: sessions.iter().enumerate().map(session).collect::<Result<_, _>>()?,
        rest: fields.rest(),
        changed: false,
    })
}

pub(super) fn text(registry: &Registry) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "string keys and no serializer that could fail")]
    let mut text = serde_json::to_vec(registry).expect("a registry always serialises");
    text.push(b'\n');
    text
}

impl Serialize for Registry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("active", &self.active.as_ref().map(FileKey::from))?;
        map.serialize_entry("sessions", &self.sessions)?;
        rest(&mut map, &self.rest)?;
        map.end()
    }
}

impl Serialize for Session {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("agent_id", self.key.agent.as_str())?;
        map.serialize_entry("session_id", self.key.session.as_str())?;
        map.serialize_entry("mode", &self.mode)?;
        map.serialize_entry("model", &self.model)?;
        map.serialize_entry("history", &self.history)?;
        map.serialize_entry("summary", &self.summary)?;
        map.serialize_entry("context", &self.context)?;
        map.serialize_entry("providers", &self.providers)?;
        if let Some(team) = &self.team {
            map.serialize_entry("team", team)?;
        }
        if let Some(owner) = &self.owner {
            map.serialize_entry("owner", owner)?;
        }
        map.serialize_entry("created_at_ms", &self.created_at_ms)?;
        map.serialize_entry("updated_at_ms", &self.updated_at_ms)?;
        rest(&mut map, &self.rest)?;
        map.end()
    }
}

fn rest<M: serde::ser::SerializeMap>(
    map: &mut M,
    rest: &BTreeMap<String, Raw>,
) -> Result<(), M::Error> {
    rest.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))
}

fn session(text: &str) -> Result<Session, String> {
    let mut fields = Fields::of(text)?;
    Ok(Session {
        key: key(&mut fields)?,
        mode: fields
            .take::<String>("mode")?
            .unwrap_or_else(|| SessionMode::SingleAgent.as_str().to_owned()),
        model: fields.raw("model").map(one_line),
        history: fields.list("history")?,
        summary: fields.raw("summary").map(one_line),
        context: fields.list("context")?,
        providers: fields.list("providers")?,
        team: fields.take("team")?,
        owner: fields.take("owner")?,
        created_at_ms: fields.time("created_at_ms")?,
        updated_at_ms: fields.time("updated_at_ms")?,
        rest: fields.rest(),
    })
}

fn key(fields: &mut Fields<'_>) -> Result<SessionKey, String> {
    let mut name = |key| fields.take::<String>(key)?.ok_or_else(|| format!("`{key}` is missing"));
    Ok(SessionKey::new(AgentId::new(name("agent_id")?), SessionId::new(name("session_id")?)))
}

/// The remaining fields of an object.
struct Fields<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Fields<'a> {
    fn of(text: &'a str) -> Result<Self, String> {
        serde_json::from_str(text).map(Self).map_err(|error| error.to_string())
    }

    /// Takes a field that is not null.
    fn raw(&mut self, name: &str) -> Option<&'a RawValue> {
        self.0.remove(name).filter(|value| value.get() != "null")
    }

    fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, String> {
        let value = self.raw(name).map(|raw| serde_json::from_str(raw.get()));
        value.transpose().map_err(|error| format!("`{name}`: {error}"))
    }

    fn list(&mut self, name: &str) -> Result<Vec<Raw>, String> {
        let Some(raw) = self.raw(name) else { return Ok(Vec::new()) };
        let list: Vec<&RawValue> = read(raw).map_err(|error| format!("`{name}`: {error}"))?;
        Ok(list.into_iter().map(one_line).collect())
    }

    /// Takes a time, which may be written with a fraction.
    fn time(&mut self, name: &str) -> Result<TimestampMs, String> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let whole = |time: f64| time as TimestampMs;
        Ok(self.take::<f64>(name)?.map_or(0, whole))
    }

    fn rest(self) -> BTreeMap<String, Raw> {
        self.0.into_iter().map(|(name, value)| (name, one_line(value))).collect()
    }
}

fn read<'a, T: serde::Deserialize<'a>>(raw: &'a RawValue) -> Result<T, String> {
    serde_json::from_str(raw.get()).map_err(|error| error.to_string())
}

/// Removes line breaks, since the wire sends it as part of one line. JSON strings have none.
fn one_line(raw: &RawValue) -> Raw {
    let text = raw.get();
    if !text.contains(['\n', '\r']) {
        return raw.to_owned();
    }
    RawValue::from_string(text.replace(['\n', '\r'], " ")).unwrap_or_else(|_| raw.to_owned())
}
