//! The steps of a session, for finding loops: prompts, ended tool calls, whole messages.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::sessions::AcpSession;
use super::{Acp, Reported};
use crate::extract::json::{Members, elements};
use crate::extract::uri;
use crate::model::{ActivityKind, Lines, SessionId, SessionStep, Source, Touch};

impl Acp {
    /// Reports the prompt as a step.
    pub(super) fn asked(&mut self, session: &SessionId, params: &Members<'_>) {
        if !self.finds_loops {
            return;
        }
        let mut hasher = DefaultHasher::new();
        params.get("prompt").hash(&mut hasher);
        let kind = ActivityKind::Step(SessionStep::Asked(hasher.finish()));
        self.reported.add(session, kind);
        if let Some(known) = self.sessions.get_mut(session) {
            known.read_messages();
        }
    }

    /// Reports the message that ends with the turn.
    pub(super) fn last_message(&mut self, session: &SessionId) {
        if self.finds_loops
            && let Some(known) = self.sessions.get_mut(session).filter(|known| !known.replays())
        {
            message_ended(known, session, &mut self.reported);
            self.chunks.forget(session);
        }
    }

    /// Reports the files that a prompt names.
    pub(super) fn prompt(&mut self, session: &SessionId, params: &Members<'_>) {
        for block in params.get("prompt").and_then(elements).unwrap_or_default() {
            let Some(block) = Members::of(block) else { continue };
            let (uri, touch) = match block.text("type").as_deref() {
                Some("resource") => {
                    let resource = block.get("resource").and_then(Members::of);
                    (resource.and_then(|resource| resource.text("uri")), Touch::UserProvided)
                }
                Some("resource_link") => (block.text("uri"), Touch::UserReferenced),
                _ => continue,
            };
            let path = uri.and_then(|uri| uri::path_of(&uri)).filter(|path| path.is_absolute());
            if let Some(path) = path {
                self.push_touch(session, &path, touch, Source::Prompt, Lines::default());
            }
        }
    }
}

/// Reports the agent's message that ends here, if it is short enough to be compared. The caller
/// forgets the chunks of the session, so that the next message is read again.
pub(super) fn message_ended(known: &mut AcpSession, session: &SessionId, reported: &mut Reported) {
    if let Some(text) = known.take_said() {
        let mut hasher = DefaultHasher::new();
        text.trim().hash(&mut hasher);
        let kind = ActivityKind::Step(SessionStep::Said(hasher.finish()));
        reported.add(session, kind);
    }
}
