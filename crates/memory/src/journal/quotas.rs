//! Quotas of a journal, and the part that exceeds them.

use std::fmt;

use rusqlite::{Connection, OptionalExtension as _};
use serde_json::{Value, json};

use super::database::note;
use super::prune::candidates::{
    MB, Quota, Team, count_outside, next_session, outside_before, removable, target, used_bytes,
};
use super::prune::{Prune, Pruned};
use crate::model::TimestampMs;

pub(super) const DAY_MS: u64 = 86_400_000;

/// The last days, of which nothing goes by size.
const KEPT_DAYS: u64 = 7;

/// How much of a journal is kept; 0: no limit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Quotas {
    /// Days that a session is kept after its end.
    pub keep_days: u64,
    /// Size of the file past which the oldest sessions go.
    pub max_mb: u64,
}

/// The part of a journal that exceeds a quota.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Excess {
    quota: Quota,
    /// The number of sessions that go, if it is known before.
    pub sessions: Option<u64>,
    /// Approximate bytes that go.
    pub bytes: u64,
}

impl Quotas {
    /// Whether at least one of the limits is set.
    pub fn are_set(self) -> bool {
        self != Self::default()
    }

    /// Notes them in the journal, for commands that read it after its team is gone.
    pub(super) fn note(self, connection: &Connection) -> rusqlite::Result<()> {
        note(connection, "keep_days", &self.keep_days.to_string())?;
        note(connection, "max_mb", &self.max_mb.to_string())
    }

    /// The quotas that its team had last.
    pub(super) fn noted(connection: &Connection) -> rusqlite::Result<Self> {
        let value = |key| -> rusqlite::Result<u64> {
            let sql = "SELECT value FROM meta WHERE key = ?1";
            let text: Option<String> =
                connection.query_row(sql, [key], |row| row.get(0)).optional()?;
            Ok(text.and_then(|text| text.parse().ok()).unwrap_or(0))
        };
        Ok(Self { keep_days: value("keep_days")?, max_mb: value("max_mb")? })
    }

    /// The part that exceeds the quotas and can go.
    pub(super) fn excess(
        self,
        connection: &Connection,
        team: Team,
        now: TimestampMs,
    ) -> rusqlite::Result<Option<Excess>> {
        if self.keep_days > 0 {
            // By whole days, so that sessions go once a day.
            let before = (now / DAY_MS).saturating_sub(self.keep_days) * DAY_MS;
            let quota = Quota::Age { name: "keep_days", days: self.keep_days, before };
            if let Some(excess) = too_old(connection, team, quota, before)? {
                return Ok(Some(excess));
            }
        }
        if self.max_mb == 0 {
            return Ok(None);
        }
        let bytes = used_bytes(connection)?;
        let before = now.saturating_sub(KEPT_DAYS * DAY_MS);
        let quota = Quota::Size { max_mb: self.max_mb, bytes, before };
        let may_go = bytes > self.max_mb * MB
            && (next_session(connection, team, quota)?.is_some()
                || count_outside(connection, outside_before(connection, team, quota)?)? > 0);
        let bytes = bytes.saturating_sub(target(self.max_mb));
        Ok(may_go.then_some(Excess { quota, sessions: None, bytes }))
    }

    /// The notice of a file that is larger than its quota while nothing in it can go.
    pub(super) fn overflow(self, connection: &Connection) -> rusqlite::Result<Option<String>> {
        let bytes = used_bytes(connection)?;
        let is_over = self.max_mb > 0 && bytes > self.max_mb * MB;
        Ok(is_over.then(|| {
            format!(
                "it has {} MB, `max_mb` is {}, and nothing in it can go: its sessions are open or \
                 pinned, or of the last {KEPT_DAYS} days",
                bytes.div_ceil(MB),
                self.max_mb
            )
        }))
    }
}

impl Excess {
    pub(super) fn removal(&self, team: Team) -> Prune {
        Prune::new(team, self.quota)
    }

    /// The payload of the event that records a removal.
    pub(super) fn event(&self, pruned: Pruned) -> Value {
        let Pruned { sessions, events, contents } = pruned;
        let reason = self.quota.to_string();
        json!({ "sessions": sessions, "events": events, "contents": contents, "reason": reason })
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.sessions, self.quota) {
            (Some(0), _) => write!(f, "events of no session")?,
            (Some(1), _) => write!(f, "1 session")?,
            (Some(count), _) => write!(f, "{count} sessions")?,
            (None, _) => write!(f, "the oldest ended sessions")?,
        }
        write!(f, ": {}", self.quota)
    }
}

pub(super) fn too_old(
    connection: &Connection,
    team: Team,
    quota: Quota,
    before: TimestampMs,
) -> rusqlite::Result<Option<Excess>> {
    let sql = format!("SELECT count(*) FROM sessions s WHERE {}", removable(team));
    let sessions = connection.query_row(&sql, [before], |row| row.get(0))?;
    if sessions == 0 && count_outside(connection, before)? == 0 {
        return Ok(None);
    }
    let sql = format!(
        "SELECT coalesce(sum(length(payload)), 0) FROM events WHERE session_id IN \
         (SELECT id FROM sessions s WHERE {})",
        removable(team)
    );
    let bytes = connection.query_row(&sql, [before], |row| row.get(0))?;
    Ok(Some(Excess { quota, sessions: Some(sessions), bytes }))
}
