//! Extracts the activities of each relayed line, updates the relay's state by them, and sends them
//! to the tracker.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWrite;

use super::Relay;
use crate::line::{Direction, content, lines};
use crate::model::{Activity, ActivityKind, Record, SessionKey};
use crate::proxy::Branches;
use crate::proxy::handle::EndedTurn;

/// How long message chunks are merged. A crash loses at most 250 ms, with the time of a commit.
pub(super) const MERGE_TIME: Duration = Duration::from_millis(20);

impl<AW, CW> Relay<AW, CW>
where
    AW: AsyncWrite + Unpin + Send,
    CW: AsyncWrite + Unpin + Send,
{
    pub(super) fn observe_all(&mut self, block: &[u8]) {
        for line in lines(block) {
            self.observe(Direction::ToClient, line);
        }
    }

    pub(super) fn count(&self, direction: Direction, block: &[u8]) {
        self.proxy.tally.relayed(direction, block);
    }

    /// Extracts and handles the activities of a relayed line.
    pub(super) fn observe(&mut self, direction: Direction, line: &[u8]) {
        self.proxy.extractor.observe(direction, content(line), &mut self.activities);
        self.on_activities();
    }

    /// Handles the activities of a line.
    pub(super) fn on_activities(&mut self) {
        if self.activities.is_empty() {
            return;
        }
        self.unconfirmed.drop_prevented(self.proxy.gate.as_ref(), &mut self.activities);
        // The activities of the agent's exit skip this: no turn failed by it.
        self.activities.iter().for_each(|activity| self.proxy.vitals.update(activity));
        self.dispatch();
    }

    pub(super) fn dispatch(&mut self) {
        let mut activities = std::mem::take(&mut self.activities);
        for mut activity in activities.drain(..) {
            if let ActivityKind::TurnEnded { reason, .. } = &mut activity.kind {
                let by_client = self.cancelled.contains(&activity.session);
                self.end_calls(&activity.session, reason, by_client);
                *reason = reason.take().or_else(|| self.turns.why(&activity.session, by_client));
            }
            if let ActivityKind::Opened { is_new } = &mut activity.kind {
                // A rewound session goes on in a new one of its agent's.
                let behind = self.branches().and_then(|it| it.behind(&activity.session));
                *is_new &= behind.is_none();
            }
            if !self.account(&mut activity) {
                continue;
            }
            if let ActivityKind::Step(step) = &activity.kind {
                let looped = self.step(&activity.session, step);
                self.unsent.extend(looped);
                continue;
            }
            if let Some(running) = &self.proxy.running {
                running.update(&activity);
            }
            if let Some(gatekeeping) = &self.proxy.gate {
                gatekeeping.observe(&activity);
            }
            match &activity.kind {
                ActivityKind::TurnBegan => {
                    self.turns.began(&activity.session);
                    self.cancelled.remove(&activity.session);
                }
                ActivityKind::Ran { call, failed: true } => {
                    if let Some(gatekeeping) = &self.proxy.gate {
                        let key =
                            SessionKey::new(self.proxy.agent.clone(), activity.session.clone());
                        gatekeeping.routing.call_failed(key, Arc::clone(call));
                    }
                }
                ActivityKind::Runs { .. } => self.turns.on_tool_call(&activity.session),
                ActivityKind::TurnEnded { stop_reason, reason } => {
                    let end =
                        EndedTurn { stop_reason: stop_reason.clone(), reason: reason.clone() };
                    self.turns.ended(&activity.session, end);
                    self.cancelled.remove(&activity.session);
                    self.release_later(self.waiting.of_session(&activity.session));
                    if let Some(gatekeeping) = &self.proxy.gate {
                        let (agent, session) = (self.proxy.agent.clone(), activity.session.clone());
                        gatekeeping.routing.turn_over(SessionKey::new(agent, session));
                    }
                }
                ActivityKind::CancelRequested => {
                    self.cancelled.insert(activity.session.clone());
                    self.release_later(self.waiting.of_session(&activity.session));
                }
                ActivityKind::RequestCancelled { id } => {
                    self.release_later(self.waiting.of_request(id));
                }
                ActivityKind::Performed { path, action, by_program } => {
                    // The access comes first in the tracker, before routing reports it blocked.
                    self.flush_to_tracker();
                    self.performed(&activity.session, path, *action, *by_program);
                }
                _ => {}
            }
            self.settle_files(&activity);
            let began = matches!(activity.kind, ActivityKind::TurnBegan);
            let began = began.then(|| activity.session.clone());
            self.unsent.push(activity);
            if let Some(session) = began {
                self.count_early_calls(&session);
            }
        }
        self.activities = activities;
        self.cut_turns();
    }

    /// Gives the agent's lines the names under which its sessions go.
    pub(super) fn named(&mut self, block: Bytes) -> Bytes {
        let Some(branches) = self.branches() else { return block };
        let (block, forks) = branches.to_client(block);
        for (session, fork) in forks {
            let kind = ActivityKind::Record(Record::Forked(fork));
            self.unsent.push(Activity { session, kind });
        }
        block
    }

    /// Sends lines that name sessions.
    pub(super) fn send_to_agent(&mut self, block: Bytes) {
        let block = match self.branches() {
            Some(branches) => branches.to_agent(block),
            None => block,
        };
        self.to_agent.push(block);
    }

    fn branches(&self) -> Option<&Arc<Branches>> {
        self.proxy.gate.as_ref()?.permits.as_ref().map(|permits| permits.branches())
    }

    /// Has the files settled that the agent wrote, before the tracker gets the turn's end.
    fn settle_files(&mut self, activity: &Activity) {
        if self.proxy.files.is_none() {
            return;
        }
        match &activity.kind {
            ActivityKind::TurnBegan => {
                self.proxy.files.iter().for_each(|files| files.turn_began(&activity.session));
            }
            ActivityKind::TurnEnded { .. } => {
                self.flush_to_tracker();
                self.proxy.files.iter().for_each(|files| files.turn_ended(&activity.session));
            }
            _ => {}
        }
    }

    /// Sends everything that was observed, with the update whose chunks are merged so far.
    pub(super) fn flush_updates(&mut self) {
        self.proxy.extractor.flush_updates(&mut self.unsent);
        self.flush_to_tracker();
    }

    pub(super) fn flush_to_tracker(&mut self) {
        if !self.unsent.is_empty() {
            self.proxy.tracker.record_all(&self.proxy.agent, self.unsent.drain(..));
        }
    }
}
