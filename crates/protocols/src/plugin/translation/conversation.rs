//! Owns the part of a conversation that outlasts one run of an agent, so that a later run resumes
//! it.

use std::sync::Arc;

use parking_lot::Mutex;

/// The part of a conversation that outlasts a run. The runs of one agent share it, one run at a
/// time.
#[derive(Clone, Default, Debug)]
pub struct Conversation(Arc<Mutex<Option<ResumableSession>>>);

/// A session that can be resumed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ResumableSession {
    /// The client's id.
    pub(super) session: String,
    /// The agent's id.
    pub(super) known_as: String,
}

impl Conversation {
    pub(super) fn is_kept(&self) -> bool {
        self.0.lock().is_some()
    }

    pub(super) fn keep(&self, kept: ResumableSession) {
        *self.0.lock() = Some(kept);
    }

    /// Returns the session once: one that the agent can't resume would end run after run.
    pub(super) fn take(&self, session: &str) -> Option<ResumableSession> {
        let mut kept = self.0.lock();
        kept.take_if(|kept| kept.session == session)
    }
}
