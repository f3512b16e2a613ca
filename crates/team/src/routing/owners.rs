//! Accesses that a rule puts before the owner of the path: the questions.

use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::model::{AgentId, BlockedId};

/// Questions that wait to be put; beyond that an access goes on as if it had no owner.
pub(super) const MOST_QUESTIONS: usize = 256;

/// A question to an owner.
#[derive(Debug)]
pub struct OwnerQuestion {
    pub id: BlockedId,
    pub asker: AgentId,
    /// Agents that own the path, without the asker; never empty.
    pub owners: Vec<AgentId>,
    /// As on the wire.
    pub path: Arc<str>,
    pub file: PathBuf,
    /// Why the asker wants it, in its words.
    pub reason: Option<Arc<str>>,
    /// Cancelled when nobody waits for the answer any more.
    pub withdrawn: CancellationToken,
}
