//! The turns and the model of a session in the journal.

use std::collections::HashMap;

use super::{OpenError, Session, Store};
use crate::model::{AgentId, SessionId, SessionKey};

/// The key of `meta` with the last id before the team was started last.
pub(super) const STARTED_AFTER: &str = "started_after";

impl Store {
    /// The first session of an agent that was open since the team was started last; else its last one.
    pub fn first_session(&self, agent: Option<&str>) -> Result<Option<Session>, OpenError> {
        let started_after = self.meta(STARTED_AFTER)?.unwrap_or_default();
        let mut sessions = self.sessions()?;
        sessions.retain(|session| agent.is_none_or(|agent| session.agent_id == agent));
        let is_of_run = |session: &&Session| session.head_event_id > started_after;
        Ok(sessions.iter().find(is_of_run).or(sessions.last()).cloned())
    }

    /// Counts the turns of each session of the wire. Where sessions have the same id, the last one counts.
    pub fn turns_of_sessions(&self) -> Result<HashMap<SessionKey, u64>, OpenError> {
        let sql = "SELECT s.agent_id, s.wire_session_id, coalesce((SELECT e.turn + 1 FROM events e \
                   WHERE e.session_id = s.id AND e.turn IS NOT NULL \
                   AND e.type IN ('message.user', 'turn.end', 'turn.failed') \
                   ORDER BY e.sequence DESC LIMIT 1), 0) \
                   FROM sessions s WHERE s.wire_session_id IS NOT NULL ORDER BY s.id";
        let all = self.all(sql, [], |row| {
            let (agent, session): (String, String) = (row.get(0)?, row.get(1)?);
            let key = SessionKey::new(AgentId::new(agent), SessionId::new(session));
            Ok((key, row.get(2)?))
        })?;
        Ok(all.into_iter().collect())
    }

    /// The turns of a session that have events.
    pub fn turns(&self, session_id: &str) -> Result<Vec<u64>, OpenError> {
        let sql = "SELECT DISTINCT turn FROM events WHERE session_id = ?1 AND turn IS NOT NULL \
                   ORDER BY turn";
        self.all(sql, [session_id], |row| row.get(0))
    }

    /// The id of the model that a session ran on last, or last before the event with this id.
    pub fn model_of(
        &self,
        session_id: &str,
        before: Option<&str>,
    ) -> Result<Option<String>, OpenError> {
        let sql = "SELECT payload ->> '$.update.model.id' FROM events WHERE session_id = ?1 \
                   AND type = 'update' AND id < ?2 AND CASE WHEN json_valid(payload) \
                   THEN payload ->> 'kind' = 'model' ELSE 0 END ORDER BY number DESC LIMIT 1";
        let before = before.unwrap_or("\u{10ffff}");
        let found = self.all(sql, [session_id, before], |row| row.get::<_, Option<String>>(0))?;
        Ok(found.into_iter().next().flatten())
    }
}
