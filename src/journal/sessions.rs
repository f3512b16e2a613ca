//! The turns and the model of a session in the journal.

use super::{OpenError, Store};

impl Store {
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
