//! Answers to agents that ask before they try.

use std::path::PathBuf;

use tokio::sync::oneshot;

use super::Settlement;
use crate::model::{AgentId, BlockedId};

/// The answer to an agent's request for an access.
#[derive(Debug)]
pub enum AccessAnswer {
    /// The access is allowed already.
    Open,
    /// No decider can allow it, or will.
    Closed(String),
    /// The access waits for a decision, which comes here. Dropping the receiver expires it.
    Waits(BlockedId, oneshot::Receiver<Settlement>),
}

/// The owners of a path, and an agent's rights there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Whose {
    /// As on the wire.
    pub path: String,
    /// The same, absolute.
    pub file: PathBuf,
    pub owners: Vec<AgentId>,
    /// The rights of the asking agent.
    pub may_read: bool,
    pub may_write: bool,
}
