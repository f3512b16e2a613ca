//! The part of sent lines that a client may read: its token decides.

use std::borrow::Cow;

use bytes::Bytes;

use super::Viewer;
use crate::model::{
    AgentId, BlockedAccess, Event, Relayed, SessionId, SessionKey, SessionMode, Snapshot, Topic,
};
use crate::serve::sight::{Sight, UpdateSight};
use crate::serve::{Caller, lines, rights};
use crate::session::{Answer, Listed, RegistryRequest};

impl<W> Viewer<W> {
    /// The reduced line of an event whose full line has words that this client may not read.
    pub(super) fn reduced(&self, event: &Event) -> Option<Bytes> {
        match event {
            Event::Blocked(access) => self.without_reason(access),
            Event::Task(task) => {
                let shown = rights::shown_task(self.caller.as_ref(), task);
                matches!(shown, Cow::Owned(_)).then(|| lines::task(&shown))
            }
            Event::Relayed(relayed) => self.reduced_line(relayed),
            _ => None,
        }
    }

    pub(super) fn without_reason(&self, access: &BlockedAccess) -> Option<Bytes> {
        let shown = rights::shown(self.caller.as_ref(), access);
        matches!(shown, Cow::Owned(_)).then(|| lines::blocked(&shown))
    }

    pub(super) fn reduced_line(&self, relayed: &Relayed) -> Option<Bytes> {
        let reduced = relayed.reduced.as_ref()?;
        let may_read = relayed.agent.as_ref().is_some_and(|agent| self.opens(agent));
        (!may_read).then(|| Bytes::copy_from_slice(reduced.as_bytes()))
    }

    /// Whether the client may read what an agent says.
    fn opens(&self, agent: &AgentId) -> bool {
        self.caller.as_ref().is_some_and(|caller| rights::opens(caller, agent))
    }

    /// Finds which contents of files the client may see now.
    pub(super) async fn look(&mut self) {
        self.sight = UpdateSight::new(Sight::of(&self.shared, self.caller.as_ref()).await);
    }

    pub(super) fn passes(&mut self, event: &Event) -> bool {
        let is_open = match event {
            Event::SessionUpdate { key, .. } => self.opens(&key.agent) && self.sight.opens(event),
            Event::Relayed(Relayed { topic: Some(Topic::SessionUpdate), agent, .. }) => {
                agent.as_ref().is_some_and(|agent| self.opens(agent))
            }
            _ => true,
        };
        is_open && rights::covers_event(self.caller.as_ref(), event) && self.filter.passes(event)
    }

    /// Makes the snapshot of a session without a map, with agent and mode from the registry.
    pub(super) async fn not_live(&self, session: SessionId) -> Snapshot {
        let all = self.shared.sources.registry(RegistryRequest::List { agent: None }).await;
        let Ok(Answer::List(mut all)) = all else {
            return unknown(session, SessionMode::SingleAgent);
        };
        all.retain(|listed| {
            let covers = rights::covers(self.caller.as_ref(), &listed.key.agent);
            covers && listed.key.session == session
        });
        let Some(Listed { key, mode, .. }) = all.into_iter().next() else {
            return unknown(session, SessionMode::SingleAgent);
        };
        let mode = SessionMode::ALL.into_iter().find(|known| known.as_str() == mode);
        Snapshot { key, ..unknown(session, mode.unwrap_or(SessionMode::SingleAgent)) }
    }

    /// Whether the client may see what is about the whole team.
    pub(super) fn sees_the_team(&self) -> bool {
        !matches!(&self.caller, Some(Caller::Holder(holder)) if holder.is_limited())
    }
}

/// Makes the empty snapshot of an unknown session.
pub(super) fn unknown(session: SessionId, mode: SessionMode) -> Snapshot {
    Snapshot {
        key: SessionKey::new(AgentId::new(""), session),
        mode,
        seq: 0,
        nodes: Vec::new(),
        omitted: 0,
    }
}
