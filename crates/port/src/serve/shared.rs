//! Owns the state that all connections of the port share.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use super::kept_answers::KeptAnswers;
use super::open_questions::Ongoing;
use super::side_sessions::SideSessions;
use super::traffic::Traffic;
use super::{Caller, Sources, Team, Tokens, token};
use crate::bus::Bus;
use crate::gateway::GatewayHandle;
use crate::mcp::ToolUses;
use crate::runs::TeamRuns;
use crate::tasks::{Tasks, Waits};
use crate::tokens::ScopedTokens;
use crate::view::Layout;

/// Reads of the journal at once, of all clients; others wait.
const READS: usize = 4;

/// Replays for single clients at once; one more is refused.
const REPLAYS: usize = 8;

/// State of the port for each connection.
pub(super) struct Shared {
    pub(super) bus: Bus,
    pub(super) sources: Arc<dyn Sources>,
    pub(super) team: Arc<dyn Team>,
    pub(super) tokens: Tokens,
    /// None: there are none with a scope.
    pub(super) scoped: Option<ScopedTokens>,
    pub(super) limits: Limits,
    /// Other machines can connect, so all requests need a token.
    pub(super) guarded: bool,
    /// Held by each read of the journal.
    pub(super) reads: Arc<Semaphore>,
    /// Held by each replay for one client.
    pub(super) replays: Arc<Semaphore>,
    /// The use of the tools by agents.
    pub(super) tool_uses: ToolUses,
    /// None: agents take no tasks over this port.
    pub(super) tasks: Option<Tasks>,
    /// None: agents start no runs over this port.
    pub(super) runs: Option<TeamRuns>,
    /// The waits between agents.
    pub(super) waits: Waits,
    /// Questions of agents that take long.
    pub(super) ongoing: Ongoing,
    /// The sessions for questions to agents beside their work.
    pub(super) beside: SideSessions,
    /// Answers that owners gave.
    pub(super) kept_answers: KeptAnswers,
    /// Counts the clients.
    pub(super) traffic: Arc<Traffic>,
    /// Where files are on the map; empty until somebody asks.
    pub(super) layout: Arc<Mutex<Layout>>,
    /// The gateway, once somebody asks for it.
    pub(super) gateway: OnceLock<GatewayHandle>,
    /// Asks connections to probe their clients, because slots are short.
    pub(super) crowded: watch::Sender<()>,
}

impl Shared {
    pub(super) fn new(
        bus: Bus,
        sources: Arc<dyn Sources>,
        team: Arc<dyn Team>,
        tokens: Tokens,
        limits: Limits,
        guarded: bool,
    ) -> Self {
        let (tasks, tool_uses) = (sources.tasks(), sources.tool_uses());
        let (waits, runs) = (sources.waits(), sources.runs());
        let scoped = sources.scoped_tokens();
        Self {
            bus,
            sources,
            team,
            tokens,
            scoped,
            limits,
            guarded,
            reads: Arc::new(Semaphore::new(READS)),
            replays: Arc::new(Semaphore::new(REPLAYS)),
            tool_uses,
            tasks,
            runs,
            waits,
            ongoing: Ongoing::default(),
            beside: SideSessions::default(),
            kept_answers: KeptAnswers::default(),
            traffic: Arc::default(),
            layout: Arc::default(),
            gateway: OnceLock::new(),
            crowded: watch::Sender::new(()),
        }
    }
}

impl Shared {
    /// Returns the caller whose token this answer to a challenge proves.
    pub(super) fn prover(&self, presented: &str, challenge: &str) -> Option<Caller> {
        let scoped = || {
            let proves = |secret: &str| token::is_proof(presented, secret, challenge);
            self.scoped.as_ref()?.prover(proves).map(Caller::Holder)
        };
        self.tokens.prover(presented, challenge).or_else(scoped)
    }
}

/// Limits of the port.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Past that a new client replaces one of a lower rank; see `places`.
    pub max_connections: usize,
    /// Longest line of a client; a longer one is answered with 400.
    pub max_line_bytes: usize,
    /// A client that accepts no byte for so long is disconnected.
    pub write_deadline: Duration,
}
