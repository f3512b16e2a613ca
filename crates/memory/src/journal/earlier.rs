//! The use in earlier runs that counts against budgets: spending, turns and their time, raised totals. Also
//! the run that goes on: one that was killed.

use std::collections::HashMap;
use std::time::Duration;

use super::ids::least;
use super::payload::{BudgetPayload, SpawnPayload};
use super::{EventType, OpenError, Store, spending};
use crate::line::or_default;
use crate::model::{AgentId, BudgetLimits, EarlierUse, TimestampMs, Used};

/// The key of `meta` with the event behind which those of the run are; empty once the run ended.
pub(super) const RUN_AFTER: &str = "run_after";

/// Milliseconds that a change may take until it is recorded.
const UNRECORDED: TimestampMs = 3_000;

/// The events that say what was used.
const TYPES: [EventType; 7] = [
    EventType::SUBAGENT_SPAWN,
    EventType::USAGE_SPENT,
    EventType::MESSAGE_USER,
    EventType::TURN_END,
    EventType::TURN_FAILED,
    EventType::SESSION_END,
    EventType::BUDGET,
];

/// Turns that began and did not end, by session and number, and when they began. Those of a session
/// go with its end.
type OpenTurns = HashMap<(String, u64), TimestampMs>;

/// The event behind which those of the first run are.
pub fn first_run() -> String {
    least(0)
}

impl Store {
    /// The event behind which those of a run are that did not end.
    pub fn killed_run(&self) -> Result<Option<String>, OpenError> {
        Ok(self.meta(RUN_AFTER)?.filter(|after| !after.is_empty()))
    }

    /// The time from which on a run that did not end may have done what it did not record; None if
    /// the last run ended.
    pub fn killed_at(&self) -> Result<Option<TimestampMs>, OpenError> {
        let Some(run) = self.killed_run()? else { return Ok(None) };
        // Not what was added when the file was opened again.
        let sql = "SELECT min(timestamp), max(timestamp) FROM events WHERE id > ?1 AND \
                   type <> 'session.end' AND type NOT LIKE 'message.%'";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let times: Vec<(Option<u64>, Option<u64>)> = self.all(sql, [&run], read)?;
        Ok(times
            .into_iter()
            .find_map(|(first, last)| Some(first?.max(last?.saturating_sub(UNRECORDED)))))
    }

    /// The event behind which those of a new run will be.
    pub fn new_run(&self) -> Result<String, OpenError> {
        Ok(self.last_event()?.unwrap_or_else(first_run))
    }

    /// Calls `take` for all that was used behind the event `run`, or since then, oldest first.
    pub fn used_earlier(
        &self,
        run: Option<&str>,
        since: Option<TimestampMs>,
        mut take: impl FnMut(EarlierUse),
    ) -> Result<(), OpenError> {
        let since = since.map(least);
        let Some(after) = run.into_iter().chain(since.as_deref()).min() else { return Ok(()) };
        let types = TYPES.map(|kind| format!("'{}'", kind.as_str())).join(", ");
        let sql = format!(
            "SELECT id, type, agent_id, session_id, turn, timestamp, \
             CASE WHEN type = 'message.user' THEN '' ELSE payload END \
             FROM events WHERE id > ?1 AND type IN ({types}) ORDER BY number"
        );
        let mut turns = OpenTurns::new();
        self.each(&sql, [after], |row| {
            let id: String = row.get(0)?;
            let (kind, agent): (String, Option<String>) = (row.get(1)?, row.get(2)?);
            let place = (row.get::<_, Option<String>>(3)?.unwrap_or_default(), row.get(4)?);
            let (at, payload): (TimestampMs, String) = (row.get(5)?, row.get(6)?);
            let is_of_run = run.is_some_and(|run| id.as_str() > run);
            let mut took = |timestamp_ms, used| {
                let agent = agent.as_deref().map(AgentId::new);
                take(EarlierUse { agent, timestamp_ms, is_of_run, used });
            };
            let (session, turn): (String, Option<u64>) = place;
            match (kind.as_str(), turn) {
                ("usage.spent", _) => took(at, Used::Spent(spending(&payload))),
                ("message.user", Some(turn)) => {
                    let known = turns.insert((session, turn), at);
                    if known.is_none() {
                        took(at, Used::Turn);
                    }
                }
                ("turn.end" | "turn.failed", Some(turn)) => match turns.remove(&(session, turn)) {
                    Some(began) => took(at, time(began, at)),
                    None => took(at, Used::Turn),
                },
                ("session.end", _) => {
                    for ((_, turn), began) in turns.extract_if(|(it, _), _| *it == session) {
                        let ended = self.last_of_turn(&session, turn, &id)?.unwrap_or(began);
                        took(ended, time(began, ended));
                    }
                }
                ("budget", _) => took(at, totals(&payload)),
                ("subagent.spawn", _) => {
                    let SpawnPayload { agent_id, .. } = or_default(&payload);
                    if let Some(helper) = agent_id {
                        took(at, Used::Helper(AgentId::new(helper)));
                    }
                }
                _ => {}
            }
            Ok(())
        })
    }

    /// The time of a turn's last event before another one. What the next run completed is none.
    fn last_of_turn(
        &self,
        session: &str,
        turn: u64,
        before: &str,
    ) -> rusqlite::Result<Option<TimestampMs>> {
        let sql = "SELECT max(timestamp) FROM events WHERE session_id = ?1 AND turn = ?2 AND id < ?3 \
                   AND NOT (json_valid(payload) AND payload ->> 'incomplete' IS NOT NULL)";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.query_row(rusqlite::params![session, turn, before], |row| row.get(0))
    }
}

fn time(began: TimestampMs, ended: TimestampMs) -> Used {
    Used::Time(Duration::from_millis(ended.saturating_sub(began)))
}

/// Reads the payload of a `budget`.
fn totals(payload: &str) -> Used {
    let BudgetPayload { tokens, cost, turns, minutes, configured, .. } = or_default(payload);
    let limits = BudgetLimits {
        tokens: tokens.limit,
        cost: cost.limit,
        turns: turns.limit,
        minutes: minutes.limit,
    };
    let configured = configured.map_or(limits, |it| BudgetLimits {
        tokens: it.tokens,
        cost: it.cost,
        turns: it.turns,
        minutes: it.minutes,
    });
    Used::Totals { limits, configured }
}
