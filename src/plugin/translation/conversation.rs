use std::sync::{Arc, Mutex, PoisonError};

/// What of an agent's conversation outlasts the run that it was begun in. Shared by the runs of one
/// agent, of which there is one at a time.
#[derive(Clone, Default, Debug)]
pub struct Conversation(Arc<Mutex<Option<ResumableSession>>>);

/// A session that can be gone on with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ResumableSession {
    /// As its client knows it.
    pub(super) session: String,
    /// As the agent does.
    pub(super) known_as: String,
}

impl Conversation {
    pub(super) fn is_kept(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(super) fn keep(&self, kept: ResumableSession) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(kept);
    }

    /// Hands it out once: one that its agent can't go on with would end each run after the other.
    pub(super) fn take(&self, session: &str) -> Option<ResumableSession> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.take_if(|kept| kept.session == session)
    }
}
