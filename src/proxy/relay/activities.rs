//! What lines mean: read off each line that was relayed, it changes what the relay does and goes to
//! the tracker.

use tokio::io::AsyncWrite;

use super::Relay;
use crate::line::{Direction, content, lines};
use crate::model::{ActivityKind, SessionKey};

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

    /// Reads along with a line that was relayed.
    pub(super) fn observe(&mut self, direction: Direction, line: &[u8]) {
        self.proxy.extractor.observe(direction, content(line), &mut self.activities);
        self.on_activities();
    }

    /// Takes in what a line told.
    pub(super) fn on_activities(&mut self) {
        if self.activities.is_empty() {
            return;
        }
        self.hearsay.drop_prevented(self.proxy.gate.as_ref(), &mut self.activities);
        // Not what the agent's end tells: that is no turn that it failed.
        self.activities.iter().for_each(|activity| self.proxy.vitals.update(activity));
        self.dispatch();
    }

    pub(super) fn dispatch(&mut self) {
        let mut activities = std::mem::take(&mut self.activities);
        for mut activity in activities.drain(..) {
            if let ActivityKind::TurnEnded { reason, .. } = &mut activity.kind {
                *reason = reason.take().or_else(|| self.turns.why(&activity.session));
            }
            if let Some(running) = &self.proxy.running {
                running.update(&activity);
            }
            match &activity.kind {
                ActivityKind::TurnBegan => {
                    self.turns.began(&activity.session);
                    self.cancelled.remove(&activity.session);
                }
                ActivityKind::Runs { .. } => self.turns.on_next_turn(&activity.session),
                ActivityKind::TurnEnded { reason, .. } => {
                    self.turns.ended(&activity.session, reason.as_ref());
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
                ActivityKind::Performed { path, action } => {
                    // Routing tells it that the path was blocked, which comes after.
                    self.flush_to_tracker();
                    self.performed(&activity.session, path, *action);
                }
                _ => {}
            }
            self.news.push(activity);
        }
        self.activities = activities;
    }

    pub(super) fn flush_to_tracker(&mut self) {
        if !self.news.is_empty() {
            self.proxy.tracker.record_all(&self.proxy.agent, self.news.drain(..));
        }
    }
}
