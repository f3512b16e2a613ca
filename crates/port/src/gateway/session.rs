//! The gateway's records of clients, attachments and sessions. Plain state.

use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::setup::{AgentSetup, SetupChoice};
use crate::acp::ClientIntroduction;
use crate::line::or_default;

/// One client.
pub(super) struct GatewayClient {
    /// The params of its `initialize`, once that is answered.
    pub(super) introduction: Option<Box<RawValue>>,
    /// Its `initialize` is being answered.
    pub(super) introducing: bool,
    /// Lines that came meanwhile.
    pub(super) held: VecDeque<(u64, Bytes)>,
    /// The attachment for lines without a session.
    pub(super) control: Option<u64>,
    pub(super) offers: ClientOffers,
    /// Requests of it that wait for an answer.
    pub(super) open: usize,
    /// The client sends nothing any more, and waits for its answers.
    pub(super) leaving: bool,
    /// Ends the reading of its lines.
    pub(super) cut: CancellationToken,
    /// Ends what is attached for it, once it sends nothing any more.
    pub(super) left: CancellationToken,
}

/// The methods of agents that a client answers.
#[derive(Default, Debug)]
pub(super) struct ClientOffers {
    /// How the names of those begin that it does not answer.
    lacks: Vec<&'static str>,
}

impl ClientOffers {
    /// Reads them from the params of `initialize`.
    pub(super) fn of(params: &RawValue) -> Self {
        let ClientIntroduction { client_capabilities: offered } = or_default(params.get());
        let all = [
            ("fs/read_text_file", offered.fs.read_text_file),
            ("fs/write_text_file", offered.fs.write_text_file),
            ("terminal/", offered.terminal),
            ("elicitation/", offered.elicitation.0),
        ];
        let lacks = all.into_iter().filter(|(_, is_offered)| !is_offered).map(|(name, _)| name);
        Self { lacks: lacks.collect() }
    }

    /// Whether it answers a method of agents.
    pub(super) fn serves(&self, method: &str) -> bool {
        !self.lacks.iter().any(|lacking| method.starts_with(lacking))
    }
}

/// An attachment to an agent.
pub(super) struct AgentLink {
    pub(super) agent: String,
    pub(super) of: LinkOf,
    /// The agent's id of the session, once it is known.
    pub(super) target: Option<String>,
    /// The agent's offers in `initialize`.
    pub(super) offers: Offers,
    /// The session's modes, models, options and commands, as the agent told them.
    pub(super) setup: AgentSetup,
    pub(super) cut: CancellationToken,
}

/// The client or session that an attachment serves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum LinkOf {
    /// A client, for its requests outside of sessions.
    Client(u64),
    /// A session of the gateway.
    Session(String),
    /// A session that a client opens, and that has no id yet.
    Opening(u64),
}

/// The operations on a session that an agent offers.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Offers {
    pub(super) load: bool,
    pub(super) resume: bool,
    pub(super) close: bool,
}

/// A session of the gateway.
pub(super) struct GatewaySession {
    /// Where it is.
    pub(super) agent: String,
    /// The agent's id of it.
    pub(super) target: String,
    /// None: nobody has it open, or its agent ended.
    pub(super) link: Option<u64>,
    /// The clients that have it open; the first that can serves files and terminals.
    pub(super) clients: Vec<u64>,
    /// The params with which it was opened: folder and MCP servers.
    pub(super) params: Box<RawValue>,
    /// Agents where it was before, with their ids of it.
    pub(super) earlier: Vec<(String, String)>,
    pub(super) state: SessionState,
    /// Lines of clients that came while it was not open.
    pub(super) held: VecDeque<(u64, Bytes)>,
    /// Turns that run.
    pub(super) turns: usize,
    /// The conversation at another agent, for the next prompt.
    pub(super) history: Option<String>,
    /// The beginning of its first prompt.
    pub(super) title: Option<String>,
}

/// Whether a session takes lines.
#[derive(Debug)]
pub(super) enum SessionState {
    Open,
    Loading(Load),
    Moving(Move),
    /// Its agent was asked to close or delete it, and has not answered.
    Closing,
}

/// A client loads a session; what the agent says meanwhile is for that client alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) ticket: u64,
    pub(super) client: u64,
    /// Nobody has it open: the load opens an attachment.
    pub(super) opens: bool,
    /// The client had it open before.
    pub(super) is_member: bool,
    /// The client resumes, but its agent can only load: what that repeats is not sent to it.
    pub(super) is_silent: bool,
}

/// A transfer that is under way.
#[derive(Debug)]
pub(super) struct Move {
    pub(super) ticket: u64,
    pub(super) client: u64,
    /// The id of the client's prompt.
    pub(super) id: Box<RawValue>,
    pub(super) link: Option<u64>,
    /// Why its agent does not go on with the session that it had before.
    pub(super) lost: Option<String>,
    /// Ends the attaching with the transfer.
    pub(super) _attaching: DropGuard,
}

impl GatewaySession {
    /// Takes its attachment: what is said on that is not for this session any more.
    pub(super) fn take_link(&mut self) -> Option<u64> {
        self.turns = 0;
        self.link.take()
    }

    /// An agent's id of the session, if it was there.
    pub(super) fn target_at(&self, agent: &str) -> Option<&str> {
        if self.agent == agent {
            return Some(&self.target);
        }
        self.earlier.iter().find(|(other, _)| other == agent).map(|(_, target)| target.as_str())
    }
}

/// A request to an agent that waits for its answer.
pub(super) struct OpenRequest {
    /// The client that asked, with the id of its request; None: the gateway.
    pub(super) client: Option<(u64, Box<RawValue>)>,
    pub(super) link: u64,
    pub(super) effect: OnAnswer,
    pub(super) since: Instant,
}

/// The effect of the answer to a request.
pub(super) enum OnAnswer {
    Nothing,
    /// The answer opens a session with these params.
    Opens(Box<RawValue>),
    /// The answer loads a session of the gateway.
    Loads {
        session: String,
        ticket: u64,
    },
    Prompt {
        session: String,
        /// The conversation at another agent goes along.
        with_history: bool,
    },
    /// The answer sets a mode, a model or an option.
    Sets {
        session: String,
        choice: SetupChoice,
    },
    /// The answer ends a session; `forgets`: the session can't be loaded any more.
    Closes {
        session: String,
        forgets: bool,
    },
    /// The answer is a step of a transfer.
    Moves {
        session: String,
        ticket: u64,
        target: Option<String>,
        history: Option<String>,
    },
}

/// A request of an agent to clients.
pub(super) struct AgentQuestion {
    pub(super) link: u64,
    /// Clients that come later are asked, too: its method, and the line with the gateway's id.
    pub(super) for_all: Option<(String, Bytes)>,
    /// The agent's id.
    pub(super) id: Box<RawValue>,
    pub(super) clients: Vec<u64>,
}
