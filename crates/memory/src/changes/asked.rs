//! Turns a request into a scope: looks names up, and lists the known ones in errors.

use super::select::ChangeScope;
use crate::journal::{Filter, NameError, OpenError, Session, Store};

/// Maximum names that an error lists.
const MOST_LISTED: usize = 20;

/// A request for changes, by the names that people use.
#[derive(Clone, Default, Debug)]
pub struct Asked {
    /// The agent's id; the journal must have an event of that agent. None: any agent.
    pub agent: Option<String>,
    /// The journal's id, the beginning of one, `AGENT/SESSION` or a session of the wire.
    pub session: Option<String>,
    /// The wire's, of the agent's first session since the last start unless another is named.
    pub turn: Option<u64>,
    /// The id of an event, or the beginning of one.
    pub since: Option<String>,
}

/// Why a request can't be turned into a scope.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The journal has no event of the agent.
    #[error("there is no agent `{name}` in the journal{known}")]
    NoAgent {
        /// The agent's id as it was asked for.
        name: String,
        /// The end of the message: the agents that have sessions, at most 20 of them by name.
        known: String,
    },
    /// A session or an event can't be found by its name, or the name may mean several.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A turn is named without agent and session, and several agents have sessions.
    #[error("which agent's turn {turn}? Name the agent, or a session{known}")]
    WhoseTurn {
        /// The turn's number on the wire.
        turn: u64,
        /// The end of the message: the agents that have sessions, at most 20 of them by name.
        known: String,
    },
    /// The session has no event of the turn.
    #[error("there is no turn {turn} in the session {session} of `{agent}`{known}")]
    NoTurn {
        /// The turn's number on the wire.
        turn: u64,
        /// The session's id in the journal.
        session: String,
        /// The id of the session's agent.
        agent: String,
        /// The end of the message: the turns that the session has, at most 20 of them.
        known: String,
    },
    /// A turn is named without a session, and the journal has no session of the agent.
    #[error("`{agent}` has no session yet")]
    NoSession {
        /// The agent's id; empty if no agent is named, either.
        agent: String,
    },
    /// The journal can't be read.
    #[error(transparent)]
    Journal(#[from] OpenError),
}

impl Asked {
    /// Looks the names up in the journal. Fails if one is unknown, or may mean several.
    pub fn scope(&self, store: &Store) -> Result<ChangeScope, AskError> {
        let agent = self.agent.as_deref();
        if let Some(agent) = agent {
            let of_agent =
                Filter { agent_id: Some(agent.to_owned()), limit: 1, ..Filter::default() };
            if store.events(&of_agent)?.events.is_empty() {
                let known = agents(store)?;
                return Err(AskError::NoAgent { name: agent.to_owned(), known });
            }
        }
        let session = match (&self.session, self.turn) {
            (Some(name), _) => Some(store.session_named(name, agent)?),
            (None, Some(turn)) => Some(first_session(store, agent, turn)?),
            (None, None) => None,
        };
        if let (Some(turn), Some(session)) = (self.turn, &session) {
            has_turn(store, session, turn)?;
        }
        let since = self.since.as_ref().map(|id| store.event_named(&id.to_ascii_lowercase()));
        Ok(ChangeScope {
            agent_id: self.agent.clone(),
            session_id: session.map(|session| session.id),
            turn: self.turn,
            after: since.transpose()?.map(|event| event.id),
        })
    }
}

fn first_session(store: &Store, agent: Option<&str>, turn: u64) -> Result<Session, AskError> {
    let all = store.sessions()?;
    let are_of_several = all.windows(2).any(|pair| pair[0].agent_id != pair[1].agent_id);
    if agent.is_none() && are_of_several {
        return Err(AskError::WhoseTurn { turn, known: agents(store)? });
    }
    let none = || AskError::NoSession { agent: agent.unwrap_or_default().to_owned() };
    store.first_session(agent)?.ok_or_else(none)
}

fn has_turn(store: &Store, session: &Session, turn: u64) -> Result<(), AskError> {
    let turns = store.turns(&session.id)?;
    if turns.contains(&turn) {
        return Ok(());
    }
    let known = listed(turns.into_iter().map(|turn| turn.to_string()));
    let (session, agent) = (session.id.clone(), session.agent_id.clone());
    Err(AskError::NoTurn { turn, session, agent, known })
}

fn agents(store: &Store) -> Result<String, OpenError> {
    let mut agents: Vec<_> = store.sessions()?.into_iter().map(|it| it.agent_id).collect();
    agents.sort();
    agents.dedup();
    Ok(listed(agents))
}

fn listed(names: impl IntoIterator<Item = String>) -> String {
    let names: Vec<_> = names.into_iter().collect();
    match names.len() {
        0 => "; there are none".to_owned(),
        count if count > MOST_LISTED => {
            format!(
                "; there are {}, and {} more",
                names[..MOST_LISTED].join(", "),
                count - MOST_LISTED
            )
        }
        _ => format!("; there are: {}", names.join(", ")),
    }
}
