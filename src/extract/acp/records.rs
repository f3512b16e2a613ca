//! What only the journal wants of the messages: prompts, permissions and loads of sessions.

use serde_json::value::RawValue;

use super::Acp;
use super::frame::Frame;
use crate::model::{Activity, ActivityKind, Record, SessionId};

impl Acp {
    /// Observes the client's response to any request.
    pub(super) fn request_answered(&mut self, frame: &Frame<'_>, activities: &mut Vec<Activity>) {
        let Some(answered) = frame.id.and_then(|id| self.unanswered.remove(id)) else { return };
        if let (Some(id), Some(session)) = (answered.permission, answered.session) {
            let id = id.get().into();
            let result = frame.result.map(|result| result.get().into());
            self.record(&session, Record::PermissionAnswered { id, result }, activities);
        }
    }

    /// Adds a record for the journal, if there is one.
    pub(super) fn record(
        &self,
        session: &SessionId,
        record: Record,
        activities: &mut Vec<Activity>,
    ) {
        if self.reports_updates {
            let session = session.clone();
            activities.push(Activity { session, kind: ActivityKind::Record(record) });
        }
    }

    pub(super) fn permission_asked(
        &self,
        session: &SessionId,
        id: &RawValue,
        frame: &Frame<'_>,
        activities: &mut Vec<Activity>,
    ) {
        let (id, params) = (id.get().into(), frame.params().into());
        self.record(session, Record::PermissionAsked { id, params }, activities);
    }
}
