//! Owns what all connections of the port share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

use super::{Sources, Team, Tokens};
use crate::bus::Bus;

/// State of the port for each connection.
pub(super) struct Shared {
    pub(super) bus: Bus,
    pub(super) sources: Arc<dyn Sources>,
    pub(super) team: Arc<dyn Team>,
    pub(super) tokens: Tokens,
    pub(super) limits: Limits,
    /// Other machines can connect, so all requests need a token.
    pub(super) guarded: bool,
    /// Held by each read of the journal.
    pub(super) reads: Arc<Semaphore>,
    /// Held by each replay for one client.
    pub(super) replays: Arc<Semaphore>,
    /// Asks connections to probe their clients, because slots are short.
    pub(super) crowded: watch::Sender<()>,
}

/// Limits of the port.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Past that a new client replaces one of a lower rank; see `places`.
    pub max_connections: usize,
    /// Longest line of a client; a longer one is answered with 400.
    pub max_line_bytes: usize,
    /// A client that accepts no byte for that long is disconnected.
    pub write_deadline: Duration,
}
