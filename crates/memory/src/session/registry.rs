//! The content of the registry, and the effect of each request. Pure: knows no file; times are
//! passed in.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::RegistryError;
use crate::model::{AgentId, SessionKey, SessionMode, TimestampMs};

/// Sessions to keep. Over it the one with the oldest change is removed, never the active one:
/// teams open sessions every day and rarely close them here.
const MOST_SESSIONS: usize = 10_000;

/// Bytes of one session; a change that would exceed it is refused.
const MOST_BYTES: usize = 16 << 20;

/// Raw JSON: clients store data here that this program does not interpret.
pub type Raw = Box<RawValue>;

/// The content of the registry's file.
#[derive(Clone, Default, Debug)]
pub struct Registry {
    pub(super) active: Option<SessionKey>,
    /// The last changed session is the last one.
    pub(super) sessions: Vec<Session>,
    /// Fields of another version.
    pub(super) rest: BTreeMap<String, Raw>,
    pub(super) changed: bool,
}

/// A session's entry in the file, which is also its state on the wire.
#[derive(Clone, Debug)]
pub struct Session {
    /// The agent's id and the session's id on the wire, by which the file knows it.
    pub key: SessionKey,
    /// `single_agent`, `orchestrator`, or a value of another version.
    pub mode: String,
    /// `{"model_id","name"}`.
    pub model: Option<Raw>,
    /// Elements as clients sent them, of any JSON; empty if none sent any.
    pub history: Vec<Raw>,
    /// A summary as a client sent it, a JSON text; None if none did.
    pub summary: Option<Raw>,
    /// Elements as clients sent them, of any JSON, in the order in which they were added.
    pub context: Vec<Raw>,
    /// Each `{"agent_id","session_id"}`.
    pub providers: Vec<Raw>,
    /// The team that recorded it.
    pub team: Option<String>,
    /// The person who answers for the session.
    pub owner: Option<String>,
    /// Milliseconds since 1970.
    pub created_at_ms: TimestampMs,
    /// The time of the last change, in milliseconds since 1970. It grows with each change.
    pub updated_at_ms: TimestampMs,
    /// Fields of another version.
    pub rest: BTreeMap<String, Raw>,
}

/// A request to the registry.
#[derive(Clone, Debug)]
pub enum RegistryRequest {
    /// Every session, or one agent's.
    List {
        /// Only the sessions of this agent; None: of all.
        agent: Option<AgentId>,
    },
    /// The state of one session.
    Get(SessionKey),
    /// Creates a session, or changes one.
    Upsert(Upsert),
    /// Removes a session. One that is missing is no error.
    Close(SessionKey),
    /// Makes a session the active one of all teams. It must exist.
    Activate(SessionKey),
    /// Sets the mode `orchestrator`, even for an empty list.
    SetProviders {
        /// The session to change, which must exist.
        key: SessionKey,
        /// The sessions that it orchestrates, in place of the earlier ones.
        providers: Vec<SessionKey>,
    },
    /// Appends to the context of a session.
    AddContext {
        /// The session to change, which must exist.
        key: SessionKey,
        /// The elements to append, of any JSON.
        items: Vec<Raw>,
    },
    /// Replaces the owner of a session.
    SetOwner {
        /// The session to change, which must exist.
        key: SessionKey,
        /// The person or group that answers for it from now on.
        owner: String,
    },
}

impl RegistryRequest {
    /// The session that the request changes.
    pub fn changes(&self) -> Option<&SessionKey> {
        match self {
            Self::List { .. } | Self::Get(_) => None,
            Self::Upsert(Upsert { key, .. })
            | Self::Close(key)
            | Self::Activate(key)
            | Self::SetProviders { key, .. }
            | Self::AddContext { key, .. }
            | Self::SetOwner { key, .. } => Some(key),
        }
    }
}

/// New values of a session; None leaves a field as it is.
#[derive(Clone, Debug)]
pub struct Upsert {
    /// The session, which is created if it is missing.
    pub key: SessionKey,
    /// Overridden by `orchestrator` if there are providers.
    pub mode: SessionMode,
    /// The JSON object `{"model_id","name"}`.
    pub model: Option<Raw>,
    /// The summary as a text.
    pub summary: Option<String>,
    /// The whole history, of any JSON, in place of the earlier one.
    pub history: Option<Vec<Raw>>,
    /// The whole context, of any JSON, in place of the earlier one.
    pub context: Option<Vec<Raw>>,
    /// The sessions that it orchestrates, in place of the earlier ones.
    pub providers: Option<Vec<SessionKey>>,
    /// The name of the team that records it.
    pub team: Option<String>,
    /// The owner, for a session that has none yet.
    pub owner: Option<String>,
}

/// The answer to a request that was carried out.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Newest first.
    List(Vec<Listed>),
    /// The session in its current state.
    Session(Box<Session>),
    /// Whether the session existed.
    Closed(bool),
    /// The session is the active one now.
    Active,
}

/// A session in a list.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The agent's id and the session's id on the wire.
    pub key: SessionKey,
    /// `single_agent`, `orchestrator`, or a value of another version.
    pub mode: String,
    /// `{"model_id","name"}`; None if no model is known.
    pub model: Option<Raw>,
    /// The person or group that answers for it; None if nobody is known.
    pub owner: Option<String>,
    /// The time of the last change, in milliseconds since 1970.
    pub updated_at_ms: TimestampMs,
    /// Whether it is the active session of all teams.
    pub is_active: bool,
}

/// A session's key in the file.
#[derive(Serialize)]
pub(super) struct FileKey<'a> {
    agent_id: &'a str,
    session_id: &'a str,
}

impl<'a> From<&'a SessionKey> for FileKey<'a> {
    fn from(key: &'a SessionKey) -> Self {
        Self { agent_id: key.agent.as_str(), session_id: key.session.as_str() }
    }
}

impl RegistryRequest {
    pub(super) fn only_reads(&self) -> bool {
        matches!(self, Self::List { .. } | Self::Get(_))
    }
}

impl Upsert {
    /// Changes only the mode of an existing session.
    pub fn new(key: SessionKey, mode: SessionMode) -> Self {
        Self {
            key,
            mode,
            model: None,
            summary: None,
            history: None,
            context: None,
            providers: None,
            team: None,
            owner: None,
        }
    }
}

impl Registry {
    /// The active session of all teams; None if none is set, and after it was closed.
    pub fn active(&self) -> Option<&SessionKey> {
        self.active.as_ref()
    }

    /// Applies a request at `now`, and returns its answer.
    pub fn answer(
        &mut self,
        request: RegistryRequest,
        now: TimestampMs,
    ) -> Result<Answer, RegistryError> {
        match request {
            RegistryRequest::List { agent } => Ok(Answer::List(self.list(agent.as_ref()))),
            RegistryRequest::Get(key) => {
                Ok(Answer::Session(Box::new(self.sessions[self.place(&key)?].clone())))
            }
            RegistryRequest::Upsert(upsert) => self.upsert(upsert, now),
            RegistryRequest::Close(key) => Ok(Answer::Closed(self.close(&key))),
            RegistryRequest::Activate(key) => {
                self.place(&key)?;
                self.changed |= self.active.as_ref() != Some(&key);
                self.active = Some(key);
                Ok(Answer::Active)
            }
            RegistryRequest::SetProviders { key, providers } => self.change(&key, now, |session| {
                session.providers = providers.iter().map(provider).collect();
                SessionMode::Orchestrator.as_str().clone_into(&mut session.mode);
            }),
            RegistryRequest::AddContext { key, items } => {
                self.change(&key, now, |session| session.context.extend(items))
            }
            RegistryRequest::SetOwner { key, owner } => {
                self.change(&key, now, |session| session.owner = Some(owner))
            }
        }
    }

    fn list(&self, agent: Option<&AgentId>) -> Vec<Listed> {
        let matches = |session: &&Session| agent.is_none_or(|agent| session.key.agent == *agent);
        let mut list: Vec<_> = self.sessions.iter().rev().filter(matches).collect();
        list.sort_by_key(|session| std::cmp::Reverse(session.updated_at_ms));
        let listed = |session: &Session| Listed {
            key: session.key.clone(),
            mode: session.mode.clone(),
            model: session.model.clone(),
            owner: session.owner.clone(),
            updated_at_ms: session.updated_at_ms,
            is_active: self.active.as_ref() == Some(&session.key),
        };
        list.into_iter().map(listed).collect()
    }

    fn upsert(&mut self, upsert: Upsert, now: TimestampMs) -> Result<Answer, RegistryError> {
        let Upsert { key, mode, model, summary, history, context, providers, team, owner } = upsert;
        let set = |session: &mut Session| {
            mode.as_str().clone_into(&mut session.mode);
            replace(&mut session.model, model.map(Some));
            replace(&mut session.summary, summary.map(|summary| Some(raw(&summary))));
            replace(&mut session.history, history);
            replace(&mut session.context, context);
            replace(&mut session.team, team.map(Some));
            session.owner = session.owner.take().or(owner);
            let providers = providers.map(|providers| providers.iter().map(provider).collect());
            replace(&mut session.providers, providers);
            if !session.providers.is_empty() {
                SessionMode::Orchestrator.as_str().clone_into(&mut session.mode);
            }
        };
        if self.place(&key).is_ok() {
            return self.change(&key, now, set);
        }
        let mut session = Session::new(key, now);
        set(&mut session);
        self.put(session)
    }

    /// Changes an existing session.
    fn change(
        &mut self,
        key: &SessionKey,
        now: TimestampMs,
        change: impl FnOnce(&mut Session),
    ) -> Result<Answer, RegistryError> {
        let mut session = self.sessions[self.place(key)?].clone();
        change(&mut session);
        session.updated_at_ms = now.max(session.updated_at_ms.saturating_add(1));
        self.put(session)
    }

    /// Appends a session, and removes the old one with the same key.
    fn put(&mut self, session: Session) -> Result<Answer, RegistryError> {
        let bytes = session.bytes();
        if bytes > MOST_BYTES {
            return Err(RegistryError::TooLarge { bytes, most: MOST_BYTES });
        }
        self.changed = true;
        self.sessions.retain(|other| other.key != session.key);
        while self.sessions.len() >= MOST_SESSIONS {
            self.forget_oldest();
        }
        self.sessions.push(session.clone());
        Ok(Answer::Session(Box::new(session)))
    }

    fn forget_oldest(&mut self) {
        let places = self.sessions.iter().enumerate();
        let spare = places.filter(|(_, session)| self.active.as_ref() != Some(&session.key));
        let oldest = spare.min_by_key(|(_, session)| session.updated_at_ms);
        let gone = self.sessions.remove(oldest.map_or(0, |(place, _)| place));
        let SessionKey { agent, session } = gone.key;
        tracing::info!(%agent, %session, "the registry is full: its oldest session makes room");
    }

    fn close(&mut self, key: &SessionKey) -> bool {
        let before = self.sessions.len();
        self.sessions.retain(|session| session.key != *key);
        let closed = self.sessions.len() < before;
        if closed && self.active.as_ref() == Some(key) {
            self.active = None;
        }
        self.changed |= closed;
        closed
    }

    fn place(&self, key: &SessionKey) -> Result<usize, RegistryError> {
        let place = self.sessions.iter().position(|session| session.key == *key);
        place.ok_or_else(|| RegistryError::Unknown(key.clone()))
    }
}

impl Session {
    fn new(key: SessionKey, now: TimestampMs) -> Self {
        Self {
            key,
            mode: SessionMode::SingleAgent.as_str().to_owned(),
            model: None,
            history: Vec::new(),
            summary: None,
            context: Vec::new(),
            providers: Vec::new(),
            team: None,
            owner: None,
            created_at_ms: now,
            updated_at_ms: now,
            rest: BTreeMap::new(),
        }
    }

    fn bytes(&self) -> usize {
        let lists = [&self.history, &self.context, &self.providers].into_iter().flatten();
        let all = lists.chain(&self.model).chain(&self.summary).chain(self.rest.values());
        let text: usize = all.map(|raw| raw.get().len() + 1).sum();
        text + self.key.agent.as_str().len() + self.key.session.as_str().len()
    }
}

fn replace<T>(place: &mut T, new: Option<T>) {
    if let Some(new) = new {
        *place = new;
    }
}

fn provider(key: &SessionKey) -> Raw {
    raw(&FileKey::from(key))
}

#[expect(clippy::expect_used, reason = "strings always serialise")]
fn raw(value: &impl Serialize) -> Raw {
    to_raw_value(value).expect("strings serialise")
}
