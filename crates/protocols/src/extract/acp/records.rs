//! Records of messages for the journal alone: prompts, permissions and loads of sessions.

use serde_json::value::RawValue;

use super::Acp;
use super::frame::Frame;
use crate::model::{ActivityKind, Record, SessionId, UpdateDetail};

impl Acp {
    /// Observes the client's response to any request.
    pub(super) fn request_answered(&mut self, frame: &Frame<'_>) {
        let Some(answered) = frame.id.and_then(|id| self.unanswered.remove(id)) else { return };
        if let (Some(id), Some(session)) = (answered.permission, answered.session) {
            let id = id.get().into();
            let result = frame.result.map(|result| result.get().into());
            self.record(&session, Record::PermissionAnswered { id, result });
        }
    }

    /// Adds a record for the journal, if there is one.
    pub(super) fn record(&mut self, session: &SessionId, record: Record) {
        if self.updates != UpdateDetail::None {
            self.reported.add(session, ActivityKind::Record(record));
        }
    }

    pub(super) fn permission_asked(
        &mut self,
        session: &SessionId,
        id: &RawValue,
        frame: &Frame<'_>,
    ) {
        let (id, params) = (id.get().into(), frame.params().into());
        self.record(session, Record::PermissionAsked { id, params });
    }
}
