//! What is the matter, since when, and who knows. Pure: time is handed in.

use std::collections::HashMap;

use tokio::time::Instant;

use super::{Cause, Channel, Notice};
use crate::model::{
    AgentId, AgentState, AgentStatus, BlockedAccess, BlockedId, BlockedStatus, Event, now_ms,
    one_line, quoted,
};

/// Causes that are followed at a time; of more nobody is notified until some are gone.
const MOST: usize = 1_000;

/// Bytes of an agent's reason that are repeated.
const LONGEST_REASON: usize = 500;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum NoticeSubject {
    Access(BlockedId),
    Agent(AgentId),
}

struct Matter {
    notice: Notice,
    since: Instant,
    /// The channels that were notified.
    notified: Vec<bool>,
}

pub(super) struct Follow {
    team: String,
    channels: Vec<Channel>,
    matters: HashMap<NoticeSubject, Matter>,
    /// When the next notice is due.
    next: Option<Instant>,
}

impl Follow {
    pub(super) fn new(team: String) -> Self {
        Self { team, channels: Vec::new(), matters: HashMap::new(), next: None }
    }

    /// Goes on with other channels; one that was there before knows what it knew.
    pub(super) fn change(&mut self, channels: &[Channel]) {
        for matter in self.matters.values_mut() {
            let told = |channel: &Channel| {
                let before = self.channels.iter().position(|old| old == channel);
                before.is_some_and(|before| matter.notified[before])
            };
            matter.notified = channels.iter().map(told).collect();
        }
        self.channels = channels.to_vec();
        self.schedule();
    }

    pub(super) fn event(&mut self, event: &Event, now: Instant) {
        match event {
            Event::Blocked(access) => self.access(access, now),
            Event::Agent(status) => self.agent(status, now),
            _ => return,
        }
        self.schedule();
    }

    /// Takes in how things stand, after events were missed.
    pub(super) fn anew(&mut self, pending: &[BlockedAccess], agents: &[AgentStatus], now: Instant) {
        self.matters.retain(|subject, _| match subject {
            NoticeSubject::Access(id) => pending.iter().any(|access| access.id == *id),
            NoticeSubject::Agent(id) => agents.iter().any(|status| status.agent == *id),
        });
        for access in pending {
            self.access(access, now);
        }
        for status in agents {
            self.agent(status, now);
        }
        self.schedule();
    }

    /// When the next notice is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Takes the notices that are due, each with the number of its channel.
    pub(super) fn due(&mut self, now: Instant) -> Vec<(usize, Notice)> {
        if self.next.is_none_or(|next| next > now) {
            return Vec::new();
        }
        let mut due = Vec::new();
        for matter in self.matters.values_mut() {
            for (at, channel) in self.channels.iter().enumerate() {
                if matter.awaits(at, channel) && matter.since + channel.after <= now {
                    matter.notified[at] = true;
                    due.push((at, matter.notice.clone()));
                }
            }
        }
        due.sort_by_key(|(_, notice)| notice.timestamp_ms);
        self.schedule();
        due
    }

    fn access(&mut self, access: &BlockedAccess, now: Instant) {
        let subject = NoticeSubject::Access(access.id.clone());
        if access.status != BlockedStatus::Pending {
            self.matters.remove(&subject);
            return;
        }
        let (id, agent, path) = (&access.id, &access.key.agent, &access.path);
        let action = access.action.as_str();
        let shown = quoted(path);
        let message = format!("{agent} wants to {action} {shown}, and waits for a decision ({id})");
        let notice = Notice {
            id: Some(id.to_string()),
            path: Some(path.to_string()),
            action: Some(action.to_owned()),
            ..self.notice(Cause::Pending, agent, message)
        };
        self.add(subject, notice, now);
    }

    fn agent(&mut self, status: &AgentStatus, now: Instant) {
        let agent = &status.agent;
        let subject = NoticeSubject::Agent(agent.clone());
        let reason = status.reason.as_deref().unwrap_or_default();
        let reason = one_line(&reason[..reason.floor_char_boundary(LONGEST_REASON)]);
        let (cause, message) = match status.state {
            AgentState::Error => (Cause::Error, format!("{agent} is in error: {reason}")),
            AgentState::Ready if status.is_stalled() => (Cause::Stall, format!("{agent} {reason}")),
            AgentState::Ready if !reason.is_empty() => {
                (Cause::Error, format!("{agent} has a problem: {reason}"))
            }
            _ => {
                self.matters.remove(&subject);
                return;
            }
        };
        let notice = self.notice(cause, agent, message);
        // The same again, as with each restart of the wire, is no news.
        let is_known = self.matters.get(&subject).is_some_and(|known| {
            known.notice.event == cause && known.notice.message == notice.message
        });
        if !is_known {
            self.matters.remove(&subject);
            self.add(subject, notice, now);
        }
    }

    fn notice(&self, event: Cause, agent: &AgentId, message: String) -> Notice {
        Notice {
            event,
            agent_id: agent.to_string(),
            message,
            timestamp_ms: now_ms(),
            ..Notice::test(&self.team)
        }
    }

    fn add(&mut self, subject: NoticeSubject, notice: Notice, since: Instant) {
        if self.matters.len() < MOST {
            let told = vec![false; self.channels.len()];
            self.matters.entry(subject).or_insert(Matter { notice, since, notified: told });
        }
    }

    fn schedule(&mut self) {
        let due = |matter: &Matter| {
            let waiting = self.channels.iter().enumerate();
            let waiting = waiting.filter(|(at, channel)| matter.awaits(*at, channel));
            waiting.map(|(_, channel)| matter.since + channel.after).min()
        };
        self.next = self.matters.values().filter_map(due).min();
    }
}

impl Matter {
    /// Whether a channel is to be notified, and was not.
    fn awaits(&self, at: usize, channel: &Channel) -> bool {
        !self.notified[at] && channel.causes.contains(&self.notice.event)
    }
}
