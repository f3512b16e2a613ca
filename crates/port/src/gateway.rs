//! The team as one ACP agent: its clients have sessions of the gateway, each of which is at one agent and
//! can be transferred to another. Works with the methods of the port and with the streams of attached
//! editors; docs/gateway.md describes it.

#![expect(clippy::similar_names, reason = "`link` and `line` are the words of this room")]

mod actor;
mod commands;
mod dial;
mod from_agent;
mod from_client;
mod introductions;
mod list;
mod loads;
mod message;
mod outlet;
mod select;
mod session;
mod sessions;
mod setup;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use eisen_base::task;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use actor::GatewayActor;

/// Bytes buffered to and from a client, each way.
const DUPLEX: usize = 64 * 1024;

/// Clients that wait to be taken in; one more is refused.
const ARRIVALS: usize = 16;

/// The team behind a gateway.
pub trait GatewayTeam: Send + Sync + 'static {
    fn name(&self) -> String;

    /// The agent at which a session begins.
    fn default_agent(&self) -> Option<String>;

    /// Waits until an agent takes prompts, and attaches an editor to it: the stream carries ACP.
    fn attach(&self, agent: String) -> BoxFuture<'_, Result<DuplexStream, String>>;

    /// The conversation in a session of an agent, as a document; an error says why there is none.
    fn history(&self, agent: String, session: String) -> BoxFuture<'_, Result<String, String>>;

    /// Calls a method of the port with the authority of a person; an error says why not.
    fn call(&self, method: &'static str, params: Value) -> BoxFuture<'_, Result<Value, String>>;
}

/// The way to a gateway.
pub struct GatewayHandle {
    team: Arc<dyn GatewayTeam>,
    arrivals: Mutex<mpsc::Sender<DuplexStream>>,
}

impl GatewayHandle {
    /// Starts the gateway of a team, which ends with the handle.
    pub fn start(team: Arc<dyn GatewayTeam>) -> Self {
        let arrivals = Mutex::new(begin(team.clone()));
        Self { team, arrivals }
    }

    /// Takes in a client, which speaks ACP over the returned stream; None: too many arrive at once.
    pub fn open(&self) -> Option<DuplexStream> {
        let (near, far) = tokio::io::duplex(DUPLEX);
        let mut arrivals = self.arrivals.lock();
        let sent = match arrivals.try_send(far) {
            Err(TrySendError::Closed(far)) => {
                tracing::error!("the gateway has failed, and starts anew without its sessions");
                *arrivals = begin(self.team.clone());
                arrivals.try_send(far)
            }
            sent => sent,
        };
        sent.ok().map(|()| near)
    }
}

/// Starts the task of a gateway, which ends with the returned way to it.
fn begin(team: Arc<dyn GatewayTeam>) -> mpsc::Sender<DuplexStream> {
    let (arrivals, waiting) = mpsc::channel(ARRIVALS);
    task::spawn(GatewayActor::new(team, waiting).run());
    arrivals
}

/// The other end of a stream of the gateway.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Peer {
    Client(u64),
    /// An attachment to an agent.
    Link(u64),
}
