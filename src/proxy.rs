//! One agent's two-way relay: what needs no verdict passes as the bytes it came in; what the zone
//! denies goes to routing. Knows nothing of heat, servers, or who resolves a block.

mod gatekeeper;
mod handle;
mod inlet;
mod live_calls;
mod outlet;
mod permits;
mod prevented;
mod relay;
#[cfg(test)]
mod tests;
mod vitals;

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{oneshot, watch};

use crate::extract::Extractor;
use crate::model::{AgentId, BlockedId, OnViolation};
use crate::routing::RoutingHandle;
use crate::tracker::TrackerHandle;
use crate::zone::{Bounds, Zone};

pub use handle::RelayHandle;
pub use live_calls::{CallText, LiveCalls, NamedPath, TurnContext};
pub use permits::Permits;
pub use vitals::{ProxyState, Vitals, Waits};

/// What stands between one agent and its client.
pub struct Proxy {
    pub agent: AgentId,
    pub extractor: Box<dyn Extractor>,
    pub tracker: TrackerHandle,
    /// None: nothing is gated.
    pub gate: Option<Gatekeeping>,
    /// Where what the agent does at the moment is noted, for whoever stands at its doorbell.
    pub running: Option<Arc<LiveCalls>>,
    pub vitals: Arc<Vitals>,
}

/// What a zoned agent's requests are judged by.
#[derive(Clone, Debug)]
pub struct Gatekeeping {
    /// Looked up for each request: they may change while the agent runs.
    pub rules: watch::Receiver<Rules>,
    pub routing: RoutingHandle,
    /// Where the built-in client finds what was judged; None if the client is an editor.
    pub permits: Option<Arc<Permits>>,
}

/// What an agent may do.
#[derive(Clone, Debug)]
pub struct Rules {
    pub zone: Arc<Zone>,
    /// What the kernel holds it to, if it does.
    pub bounds: Option<Arc<Bounds>>,
    /// Every permission inside the zone is the orchestrator's to give.
    pub orchestrator_permits: bool,
    pub on_violation: OnViolation,
}

/// The four streams of a relay.
#[derive(Debug)]
pub struct Streams<AR, AW, CR, CW> {
    pub from_agent: AR,
    pub to_agent: AW,
    pub from_client: CR,
    pub to_client: CW,
}

/// Why a relay broke off. The end of a stream is none of these.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    #[error("{side} sent something that cannot be relayed: {source}")]
    Line { side: &'static str, source: crate::line::TooLong },
    #[error("the agent does not read what it is sent: {queued} bytes wait for it")]
    Stuffed { queued: usize },
    #[error("the agent closed its output, and lives")]
    Mute,
    #[error("{did} `{path}`, outside its zone ({id}), and is stopped for it")]
    Violation { did: &'static str, path: Arc<str>, id: BlockedId },
    #[error("reading from {side} failed: {source}")]
    Read { side: &'static str, source: std::io::Error },
}

impl Proxy {
    /// Starts relaying. `ended` says that the agent's process is dead, and why: the future ends
    /// then, once what the agent had said is delivered. The end of the client's side closes the
    /// agent's standard input; what the agent still says is relayed.
    ///
    /// With its result come the agent's streams: once they are dropped the agent may end by itself,
    /// and whoever is to learn first why the relay broke off is told before that.
    pub fn start<AR, AW, CR, CW>(
        self,
        streams: Streams<AR, AW, CR, CW>,
        ended: oneshot::Receiver<String>,
    ) -> (RelayHandle, impl Future<Output = (Result<(), ProxyError>, impl Send)> + Send)
    where
        AR: AsyncRead + Unpin + Send,
        AW: AsyncWrite + Unpin + Send,
        CR: AsyncRead + Unpin + Send,
        CW: AsyncWrite + Unpin + Send,
    {
        relay::start(self, streams, ended)
    }
}
