//! Sessions that begin, or go on from another time, and what their agent says of them.

use super::{Acp, failure};
use crate::extract::json::Members;
use crate::model::{ActivityKind, Record, SessionId};

impl Acp {
    pub(super) fn session_opened(
        &mut self,
        session: &SessionId,
        is_new: bool,
        result: Option<&Members<'_>>,
    ) {
        self.sessions.announce(session, None);
        self.reported.add(session, ActivityKind::Opened { is_new });
        if let Some(result) = result {
            self.learn_mode(session, result);
        }
        self.report_model(session, result);
    }

    /// Notes that a session goes on: until its next prompt its messages are from before it was opened here.
    pub(super) fn session_goes_on(&mut self, session: &SessionId) {
        let known = self.sessions.remember(session);
        known.goes_on();
        if known.replays() {
            self.record(session, Record::Replays(true));
        }
    }

    /// Reads what an agent says of its session in fields of its own.
    pub(super) fn session_info(&mut self, session: &SessionId, update: &Members<'_>) {
        let known = self.sessions.get_mut(session).filter(|known| known.is_running());
        let meta = update.get("_meta").and_then(Members::of);
        if let (Some(known), Some(meta)) = (known, meta)
            && let Some(error) = known.told.learn(&meta)
        {
            let why = failure::of_error(error).into();
            self.reported.add(session, ActivityKind::Troubled { why });
        }
    }

    /// Reads that an agent asks its model's service again, which is no progress.
    pub(super) fn retries(&mut self, session: &SessionId, params: &Members<'_>) {
        self.keeps_house = true;
        let known = self.sessions.get_mut(session).filter(|known| known.is_running());
        if let Some(error) = known.and_then(|known| known.told.learn_retry(params)) {
            let why = failure::of_error(error).into();
            self.reported.add(session, ActivityKind::Troubled { why });
        }
    }
}
