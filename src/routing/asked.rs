//! Answers to agents that ask before they try.

use tokio::sync::oneshot;

use super::Settlement;
use crate::model::{AgentId, BlockedId};

/// What becomes of an access that an agent asks for.
#[derive(Debug)]
pub enum AccessAnswer {
    /// It is allowed already.
    Open,
    /// Nobody can allow it, or nobody will.
    Closed(String),
    /// It waits for a decision, which comes here. Dropping the receiver expires it.
    Waits(BlockedId, oneshot::Receiver<Settlement>),
}

/// Whose a path is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Whose {
    /// As on the wire.
    pub path: String,
    pub owners: Vec<AgentId>,
    /// What the asking agent may do.
    pub may_read: bool,
    pub may_write: bool,
}
