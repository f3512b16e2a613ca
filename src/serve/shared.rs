//! What all connections of the port share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::{Sources, Team, Tokens};
use crate::bus::Bus;

/// What every connection needs.
pub(super) struct Shared {
    pub(super) bus: Bus,
    pub(super) sources: Arc<dyn Sources>,
    pub(super) team: Arc<dyn Team>,
    pub(super) tokens: Tokens,
    pub(super) limits: Limits,
    /// Whoever is not on this machine can connect, so everything needs a token.
    pub(super) guarded: bool,
    /// Clients that may be gone should be tried: others want their places.
    pub(super) crowded: watch::Sender<()>,
}

/// Limits of the port.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// One more client gets the place of another, if that one has shown less; see `places`.
    pub max_connections: usize,
    /// Longest line of a client; a longer one is answered with 400.
    pub max_line_bytes: usize,
    /// A client that accepts nothing for that long is cut off.
    pub write_deadline: Duration,
}
