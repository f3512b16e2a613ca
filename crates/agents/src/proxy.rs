//! Relays the lines between one agent and its client. A line that needs no decision passes byte for
//! byte; an access that the zone denies goes to routing. Knows no heat map, no server, and no
//! orchestrator.

mod branches;
mod contention;
mod gatekeeper;
mod handle;
mod inlet;
mod live_calls;
mod loops;
mod model_calls;
mod outlet;
mod permits;
mod prevented;
mod relay;
#[cfg(test)]
mod tests;
mod vitals;

use std::sync::Arc;

use tokio::sync::watch;

use crate::budget::Account;
use crate::capture::RunFiles;
use crate::conflicts::AgentConflicts;
use crate::extract::Extractor;
use crate::metrics::Tally;
use crate::model::{AgentId, BlockedId, OnLoop, OnViolation};
use crate::routing::RoutingHandle;
use crate::tracker::TrackerHandle;
use crate::zone::{Bounds, Zone};

pub use branches::{Branches, Opening};
pub use handle::{EndedTurn, RelayHandle};
pub use live_calls::{CallText, LiveCalls, NamedPath, TurnContext, WriteContext};
pub use model_calls::{CallOutcome, CallPlace, ModelCalls};
pub use permits::Permits;

pub use vitals::{ProxyState, Vitals, Waits};

/// The proxy between one agent and its client.
pub struct Proxy {
    pub agent: AgentId,
    pub extractor: Box<dyn Extractor>,
    pub tracker: TrackerHandle,
    /// `None` for an agent without a zone.
    pub gate: Option<Gatekeeping>,
    /// The running turns and tool calls, recorded for the kernel access handler.
    pub running: Option<Arc<LiveCalls>>,
    pub vitals: Arc<Vitals>,
    /// Settles the files that the agent wrote when a turn begins or ends; `None` without a journal.
    pub files: Option<RunFiles>,
    /// Where what the agent spends is counted.
    pub account: Account,
    /// The model calls that the team's endpoint counts; what the agent reports itself is only compared then. None:
    /// its own reports are what counts.
    pub model_calls: Option<Arc<ModelCalls>>,
    /// Counts the lines, once somebody reads that.
    pub tally: Arc<Tally>,
}

/// The rules, routing and permits by which a zoned agent's requests are judged.
#[derive(Clone, Debug)]
pub struct Gatekeeping {
    /// Read for each request, since they may change while the agent runs.
    pub rules: watch::Receiver<Rules>,
    pub routing: RoutingHandle,
    /// Passes permits to the built-in client; `None` if the client is an editor.
    pub permits: Option<Arc<Permits>>,
    /// Locks of files; None: conflicts are not looked for.
    pub conflicts: Option<AgentConflicts>,
}

/// The rights of an agent.
#[derive(Clone, Debug)]
pub struct Rules {
    pub zone: Arc<Zone>,
    /// The bounds that the kernel enforces, if it does.
    pub bounds: Option<Arc<Bounds>>,
    /// The orchestrator also decides permission requests inside the zone.
    pub orchestrator_permits: bool,
    /// The agent has the tools of the team, whose calls need no permission.
    pub has_tools: bool,
    pub on_violation: OnViolation,
    pub on_loop: OnLoop,
}

/// The four streams of a relay.
#[derive(Debug)]
pub struct Streams<AR, AW, CR, CW> {
    pub from_agent: AR,
    pub to_agent: AW,
    pub from_client: CR,
    pub to_client: CW,
}

/// Why a relay failed. The end of a stream is no failure.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    #[error("{side} sent something that cannot be relayed: {source}")]
    Line { side: &'static str, source: crate::line::TooLong },
    #[error("the agent does not read what it is sent: {queued} bytes wait for it")]
    InputBacklog { queued: usize },
    #[error("the agent closed its output but still runs")]
    OutputClosed,
    #[error("{did} `{path}`, outside its zone ({id}), and is stopped for it")]
    Violation { did: &'static str, path: Arc<str>, id: BlockedId },
    #[error("stopped: {0}")]
    Budget(Arc<str>),
    #[error("stopped, since it goes in a loop: {0}")]
    Loop(Arc<str>),
    #[error("stopped, since it ignores the end of its turn: {0}")]
    Ignored(Arc<str>),
    #[error("reading from {side} failed: {source}")]
    Read { side: &'static str, source: std::io::Error },
}
