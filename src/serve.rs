//! Owns the TCP port: ndjson requests in, lines out, as `docs/wire.md` describes. A reader runs
//! each connection's requests; a viewer alone writes, which fixes the order of events and answers.

use std::pin::Pin;

use tokio::io::DuplexStream;
use tokio::sync::watch;

use crate::client_host::{Cancelled, PromptOutcome, Said};
use crate::model::{AgentId, AgentStatus, Order, SessionId};

pub mod client;
mod client_view;
mod command;
mod details;
mod filter;
mod graph;
mod lines;
mod outgoing;
mod peer;
mod places;
mod progress;
mod reader;
mod reloaded;
mod request;
mod rights;
mod rpc;
mod run_file;
mod schema;
mod server;
mod shared;
mod sources;
mod token;
mod viewer;
mod wire;

#[cfg(test)]
mod tests;

pub use details::{AgentDetails, SessionDetails, Tier};
pub use reloaded::{Change, Kind, Reloaded, Restart};
pub use run_file::{
    Ledger, Remains, RunFile, RunFileError, RunInfo, StaleRun, live_teams, stale_runs,
};
pub use schema::schema;
pub use server::{BindError, Server, bind};
pub use shared::Limits;
pub use sources::{Handles, Recorder, Sources};
pub use token::{Caller, TokenError, Tokens};
pub use wire::encode;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The interface by which the port steers the team.
pub trait Team: Send + Sync + 'static {
    /// Every agent, in the configuration's order.
    fn agents(&self) -> Vec<AgentStatus>;

    /// Every agent with its details.
    fn details(&self) -> BoxFuture<'_, Vec<AgentDetails>>;

    /// Whether the team records the sessions of an agent in the registry.
    fn keeps(&self, agent: &AgentId) -> bool;

    /// Answers when the turn ends and its lines are on the bus. Dropping the future withdraws a
    /// prompt that was not sent yet. Prompts are queued in the order of the futures' first polls.
    fn prompt(&self, prompt: Prompt) -> BoxFuture<'_, Result<PromptOutcome, Refused>>;

    /// Cancels the running turn, and with `queued` the prompts behind it.
    fn cancel(
        &self,
        agent: AgentId,
        session: Option<SessionId>,
        queued: bool,
    ) -> BoxFuture<'_, Result<Cancelled, Refused>>;

    fn new_session(&self, agent: AgentId) -> BoxFuture<'_, Result<SessionId, Refused>>;

    /// Attaches an editor to an agent that is ready; what goes over the stream is ACP. The end of
    /// either direction is the editor's or the agent's.
    fn attach(&self, agent: AgentId) -> BoxFuture<'_, Result<DuplexStream, Refused>>;

    /// Start, stop or restart; answers with the agent as it stands when that is under way.
    fn order(&self, agent: AgentId, order: Order) -> BoxFuture<'_, Result<AgentStatus, Refused>>;

    /// Applies the changes of the configuration.
    fn reload(&self) -> BoxFuture<'_, Result<Reloaded, Refused>>;

    /// Adds an agent by an `[[agents]]` table of the configuration, and keeps it over a restart of
    /// the team; answers with the agent as it stands when its start is under way.
    fn add_agent(
        &self,
        config: serde_json::Map<String, serde_json::Value>,
    ) -> BoxFuture<'_, Result<AgentStatus, Refused>>;

    /// Removes an agent, also over a restart of the team; returns its last state.
    fn remove_agent(&self, agent: AgentId) -> BoxFuture<'_, Result<AgentStatus, Refused>>;
}

#[derive(Debug)]
pub struct Prompt {
    pub agent: AgentId,
    pub session: Option<SessionId>,
    /// ACP content blocks.
    pub blocks: Vec<serde_json::Value>,
    /// The caller showed the orchestrator's token.
    pub by_orchestrator: bool,
    /// Receives the text of the turn as it grows.
    pub said: watch::Sender<Said>,
}

/// A request that the team refused, with a code of the wire (404, 409, …).
#[derive(Clone, Debug)]
pub struct Refused {
    pub code: u16,
    pub message: String,
}
