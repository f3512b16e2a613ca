//! Which session and tool call a write belongs to: also one that the relay saw end before the
//! write was noticed, or begin after it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{CallText, NamedPath};
use crate::model::SessionId;

/// Calls of turns that are remembered when they have ended.
const MOST_ENDED: usize = 64;

/// How long after a write the relay may read the line that began its call.
const LATE: Duration = Duration::from_secs(1);

/// The session and the tool call of a write.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct WriteContext {
    pub session: Option<SessionId>,
    pub tool_call: Option<Arc<str>>,
}

/// One tool call, terminal or prompt.
#[derive(Clone, Debug)]
pub(super) struct WriteCall {
    pub(super) session: SessionId,
    pub(super) id: Arc<str>,
    pub(super) said: Arc<CallText>,
    pub(super) began: Instant,
    /// None: it runs.
    pub(super) ended: Option<Instant>,
}

/// The last calls that have ended.
#[derive(Default, Debug)]
pub(super) struct Ended(VecDeque<WriteCall>);

impl Ended {
    pub(super) fn add(&mut self, call: WriteCall) {
        if self.0.len() >= MOST_ENDED {
            self.0.pop_front();
        }
        self.0.push_back(WriteCall { ended: Some(Instant::now()), ..call });
    }

    /// Forgets the calls of a session, whose next turn begins.
    pub(super) fn forget(&mut self, session: &SessionId) {
        self.0.retain(|call| call.session != *session);
    }

    pub(super) fn calls(&self) -> impl Iterator<Item = WriteCall> {
        self.0.iter().cloned()
    }
}

impl WriteCall {
    fn is_tool(&self) -> bool {
        !self.id.starts_with("terminal ") && !self.id.starts_with("prompt ")
    }

    fn ran_at(&self, at: Instant) -> bool {
        self.began <= at && self.ended.is_none_or(|ended| ended >= at)
    }
}

/// The session and tool call of a write at a time. `turns` are the sessions of running turns;
/// `calls` are the running and ended calls.
pub(super) fn write_context(
    place: NamedPath<'_>,
    at: Instant,
    turns: &[SessionId],
    calls: &[WriteCall],
) -> WriteContext {
    let names = |session: &SessionId| naming(place, at, calls).any(|it| it.session == *session);
    let turn = match turns {
        [turn] => Some(turn),
        _ => only(turns.iter().filter(|session| names(session))),
    };
    let Some(session) = turn else { return WriteContext::default() };
    let tool_call = tool_call(session, place, at, calls);
    WriteContext { session: Some(session.clone()), tool_call }
}

/// The tool call of a session that a write at a time belongs to: the only one that ran then, or the
/// only one that names the path.
pub(super) fn tool_call(
    session: &SessionId,
    place: NamedPath<'_>,
    at: Instant,
    calls: &[WriteCall],
) -> Option<Arc<str>> {
    let of_session = |call: &&WriteCall| call.is_tool() && call.session == *session;
    let running = calls.iter().filter(of_session).filter(|call| call.ran_at(at));
    let call = only(running).or_else(|| only(naming(place, at, calls).filter(of_session)))?;
    Some(Arc::clone(&call.id))
}

/// The calls near a time that name a path.
fn naming<'a>(
    place: NamedPath<'a>,
    at: Instant,
    calls: &'a [WriteCall],
) -> impl Iterator<Item = &'a WriteCall> {
    let near = move |call: &&WriteCall| call.ran_at(at) || (at..at + LATE).contains(&call.began);
    calls.iter().filter(near).filter(move |call| call.said.names(place))
}

/// The item of an iterator that has no other.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    items.next().filter(|_| items.next().is_none())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use super::*;

    fn call(
        session: &str,
        id: &str,
        said: &str,
        from: u64,
        to: Option<u64>,
        zero: Instant,
    ) -> WriteCall {
        let at = |ms| zero + Duration::from_millis(ms);
        WriteCall {
            session: SessionId::new(session),
            id: id.into(),
            said: Arc::new(CallText::new(Path::new("/w").into(), &[said.into()])),
            began: at(from),
            ended: to.map(at),
        }
    }

    #[test]
    fn a_write_is_of_the_only_call_or_of_the_one_that_names_it() {
        let zero = Instant::now();
        let calls = [
            call("s", "1", "make all", 0, Some(100), zero),
            call("s", "terminal 7", "sh -c make", 10, None, zero),
            call("s", "2", "edit /w/a.rs", 50, Some(200), zero),
            call("s", "3", "edit /w/b.rs", 300, None, zero),
            call("t", "4", "edit /w/c.rs", 0, None, zero),
        ];
        let check = |wire: &str, ms: u64, turns: &[&str], expected: Option<(&str, &str)>| {
            let turns: Vec<_> = turns.iter().map(|session| SessionId::new(*session)).collect();
            let place = NamedPath { wire, workspace: Path::new("/w") };
            let found = write_context(place, zero + Duration::from_millis(ms), &turns, &calls);
            let session = found.session.as_ref().map(SessionId::as_str).unwrap_or_default();
            let call = found.tool_call.as_deref().unwrap_or_default();
            assert_eq!((session, call), expected.unwrap_or_default(), "{wire} at {ms}");
        };
        let one = ["s"];
        // The only one that ran then, though it has ended since.
        check("x", 20, &one, Some(("s", "1")));
        check("x", 150, &one, Some(("s", "2")));
        // Two ran: the one that names it, or none.
        check("a.rs", 60, &one, Some(("s", "2")));
        check("x", 60, &one, Some(("s", "")));
        // Its line came late.
        check("b.rs", 250, &one, Some(("s", "3")));
        check("x", 250, &one, Some(("s", "")));
        // Of two sessions the one whose call names it.
        let both = ["s", "t"];
        check("c.rs", 250, &both, Some(("t", "4")));
        check("x", 250, &both, None);
        check("x", 250, &[], None);
    }
}
