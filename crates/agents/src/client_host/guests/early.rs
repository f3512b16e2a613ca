//! Notifications about a session that arrive before its editor knows the id.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::model::SessionId;

/// Bytes of notifications kept; when full, the oldest are dropped with a log entry.
const MAX_BYTES: usize = 4 << 20;

/// Notifications about unknown sessions while one is being opened: agents send some before their
/// answer to `session/new`, and the editor that opens the session must receive them.
#[derive(Debug, Default)]
pub(in crate::client_host) struct Early {
    lines: VecDeque<(SessionId, Bytes)>,
    bytes: usize,
}

impl Early {
    pub(in crate::client_host) fn hold(&mut self, session: SessionId, line: Bytes) {
        self.bytes += line.len();
        self.lines.push_back((session, line));
        while self.bytes > MAX_BYTES
            && let Some((session, line)) = self.lines.pop_front()
        {
            self.bytes -= line.len();
            tracing::warn!(%session, "dropped a notification that came before its session was open");
        }
    }

    /// Removes and returns the notifications of a session, in order.
    pub(in crate::client_host) fn take(&mut self, session: &SessionId) -> Vec<Bytes> {
        let (taken, rest) =
            std::mem::take(&mut self.lines).into_iter().partition(|(of, _)| of == session);
        let taken: VecDeque<(SessionId, Bytes)> = taken;
        self.lines = rest;
        self.bytes = self.lines.iter().map(|(_, line)| line.len()).sum();
        taken.into_iter().map(|(_, line)| line).collect()
    }

    pub(in crate::client_host) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_early_is_kept_by_session_and_bounded() {
        let (a, b) = (SessionId::new("a"), SessionId::new("b"));
        let mut early = Early::default();
        for (session, line) in [(&a, "1"), (&b, "2"), (&a, "3")] {
            early.hold(session.clone(), Bytes::from_static(line.as_bytes()));
        }
        assert_eq!(early.take(&a), ["1", "3"]);
        assert_eq!(early.take(&a), Vec::<Bytes>::new());
        early.hold(a.clone(), Bytes::from(vec![b'x'; MAX_BYTES]));
        assert_eq!(early.take(&b), Vec::<Bytes>::new(), "the oldest gave way");
        assert_eq!(early.take(&a).len(), 1);
        assert_eq!(early.bytes, 0);
    }
}
