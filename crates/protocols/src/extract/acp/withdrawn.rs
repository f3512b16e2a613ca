//! Permission requests answered in the client's place, and the client's late responses to them.

use bytes::Bytes;

use super::frame::Frame;
use super::{Acp, MARK, replies};
use crate::extract::Withdrawal;
use crate::line::lines;
use crate::model::SessionId;

impl Acp {
    pub(super) fn withdraw_permissions(&mut self, session: &SessionId) -> Withdrawal {
        let open = self.unanswered.take(|request| {
            request.permission.is_some() && request.session.as_ref().is_some_and(|of| of == session)
        });
        let (mut to_agent, mut to_client) = (Vec::new(), Vec::new());
        for id in open.into_iter().filter_map(|request| request.permission) {
            to_agent.extend_from_slice(&replies::cancelled_permission(&id));
            to_client.extend_from_slice(&replies::cancel_request(&id));
            self.withdrawn.insert(&id, ());
        }
        Withdrawal { to_agent: to_agent.into(), to_client: to_client.into() }
    }

    pub(super) fn drop_withdrawn(&mut self, block: &[u8]) -> Bytes {
        let mut kept = Vec::with_capacity(block.len());
        for line in lines(block) {
            if !self.is_late(line) {
                kept.extend_from_slice(line);
            }
        }
        kept.into()
    }

    /// Whether the line is a response to a withdrawn request, which a client may send at any time.
    fn is_late(&mut self, line: &[u8]) -> bool {
        let Ok(line) = simdutf8::basic::from_utf8(line.trim_ascii()) else { return false };
        let Some(frame) = Frame::of(line.trim_start_matches(MARK)) else { return false };
        let id = frame.id.filter(|_| frame.method.is_none());
        id.is_some_and(|id| self.withdrawn.remove(id).is_some())
    }
}
