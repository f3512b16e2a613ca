//! Tasks that agents were given: the turn of each, and its end.

use serde_json::json;

use super::{Fold, Row};
use crate::journal::event::{EventType, NewEvent, Place, cut};
use crate::model::{SessionKey, TaskReport, TimestampMs};

/// Tasks that are followed; past that the oldest is given up.
const MOST_TASKS: usize = 1_024;

/// A turn that began longer before its task was sent is another prompt's, whose end is on its way.
const LATEST_MS: u64 = 1_000;

/// Bytes of the reason of an end.
const LONGEST_REASON: usize = 4_096;

/// A task that has not ended.
pub(super) struct FollowedTask {
    /// When it was given.
    given: TimestampMs,
    has_turn: bool,
}

/// The last turn of a session that began.
pub(super) struct BegunTurn {
    number: u64,
    began: TimestampMs,
    /// Whether a task is known whose turn it is.
    has_task: bool,
}

impl Fold {
    pub(super) fn turn_began(&mut self, key: &SessionKey, at: TimestampMs) {
        let session = self.session(key);
        let number = session.turn + session.running;
        session.running += 1;
        let task = session.next_task.take();
        session.begun = Some(BegunTurn { number, began: at, has_task: task.is_some() });
        if let Some(task) = task {
            self.put_turn(key, &task, number);
        }
    }

    pub(super) fn task(&mut self, report: &TaskReport) {
        if !self.tasks.contains_key(&report.id) && !report.state.is_ended() {
            if self.tasks.len() >= MOST_TASKS {
                self.tasks.shift_remove_index(0);
            }
            let given = report.timestamp_ms;
            self.tasks.insert(report.id.clone(), FollowedTask { given, has_turn: false });
        }
        self.find_turn(report);
        if report.state.is_ended() {
            self.tasks.shift_remove(&report.id);
            let place = Place::Agent(report.agent.clone());
            let event = NewEvent::new(place, EventType::TASK, &self.payload(report));
            self.rows.push(Row::Event(event.at(report.timestamp_ms).found_by(report.id.as_str())));
        }
    }

    /// Finds the turn of a task whose session is known. The bus tells of both, in any order.
    fn find_turn(&mut self, report: &TaskReport) {
        let Some(session) = &report.session else { return };
        let Some(task) = self.tasks.get(&report.id).filter(|task| !task.has_turn) else { return };
        let given = task.given;
        let key = SessionKey::new(report.agent.clone(), session.clone());
        let session = self.session(&key);
        let is_next = session.next_task.as_ref().is_some_and(|next| next.id == report.id);
        // A turn from before belongs to another prompt. One that ended is the task's only if no other
        // begins before the task ends.
        let may_be = session.running > 0 || report.state.is_ended();
        let is_late = |turn: &BegunTurn| report.timestamp_ms.saturating_sub(turn.began) > LATEST_MS;
        let begun = session.begun.as_mut().filter(|turn| {
            may_be
                && !turn.has_task
                && turn.began >= given
                && (report.state.is_ended() || !is_late(turn))
        });
        let Some(begun) = begun else {
            if is_next || !report.state.is_ended() {
                session.next_task = Some(report.clone());
            }
            return;
        };
        begun.has_task = true;
        let number = begun.number;
        if is_next {
            session.next_task = None;
        }
        self.put_turn(&key, report, number);
    }

    fn put_turn(&mut self, key: &SessionKey, report: &TaskReport, number: u64) {
        if let Some(task) = self.tasks.get_mut(&report.id) {
            task.has_turn = true;
        }
        let payload = json!({
            "task": report.id.as_str(),
            "by": report.by.as_str(),
            "state": "running",
            "reason": null,
        });
        let event = NewEvent::new(Place::Wire(key.clone()), EventType::TASK, &payload);
        let event = event.at(report.timestamp_ms).in_turn(number);
        self.rows.push(Row::Event(event.found_by(report.id.as_str())));
    }

    fn payload(&self, report: &TaskReport) -> serde_json::Value {
        // The reason has the agent's words.
        let reason = report.reason.as_deref().filter(|_| self.keeps_texts());
        json!({
            "task": report.id.as_str(),
            "by": report.by.as_str(),
            "state": report.state.as_str(),
            "reason": reason.map(|reason| cut(reason, LONGEST_REASON).0),
        })
    }
}
