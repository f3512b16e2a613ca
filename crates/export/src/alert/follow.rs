//! Open issues (pending accesses and conflicts, stalled and failed agents, budgets), their start, and the channels
//! notified of each. Pure: the caller passes the time.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::{Cause, Channel, Current, Notice};
use crate::model::{
    Action, AgentId, AgentState, AgentStatus, BlockedAccess, BlockedId, BlockedStatus,
    BudgetReport, BudgetState, Conflict, ConflictId, Event, LoopReport, SessionKey, now_ms,
    one_line, quoted,
};

/// Maximum open issues; further ones are ignored until some are resolved.
const MOST: usize = 1_000;

/// How long at least until a team that works is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long before the end of a wait its reminder is sent, unless a quarter of the wait is shorter.
const REMINDER_MS: u64 = 30_000;

/// Maximum bytes of an agent's reason in a notice.
const LONGEST_REASON: usize = 500;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum NoticeSubject {
    Access(BlockedId),
    /// The time to decide it is nearly over.
    Ending(BlockedId),
    Conflict(ConflictId),
    Agent(AgentId),
    /// None: the team's.
    Budget(Option<AgentId>),
    Loop(SessionKey),
    /// The whole team: it is done.
    Team,
}

struct Issue {
    notice: Notice,
    since: Instant,
    /// Channels are notified without their delay.
    is_urgent: bool,
    /// Whether each channel was notified.
    notified: Vec<bool>,
}

/// The time of the wall clock at an instant.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalTime {
    pub(super) at: Instant,
    /// The second of the day.
    pub(super) second: u32,
}

pub(super) struct Follow {
    team: String,
    time: Option<LocalTime>,
    channels: Vec<Channel>,
    issues: HashMap<NoticeSubject, Issue>,
    /// When the next notice is due.
    next: Option<Instant>,
}

impl Follow {
    pub(super) fn new(team: String) -> Self {
        Self { team, time: None, channels: Vec::new(), issues: HashMap::new(), next: None }
    }

    /// Sets the time of the day, for quiet times. When a notice is due changes with it.
    pub(super) fn set_time(&mut self, time: impl FnOnce() -> LocalTime) {
        if self.channels.iter().any(|channel| !channel.quiet.is_empty()) {
            self.time = Some(time());
            self.schedule();
        }
    }

    /// Replaces the channels; an unchanged channel is not notified again.
    pub(super) fn set_channels(&mut self, channels: &[Channel]) {
        for issue in self.issues.values_mut() {
            let was_notified = |channel: &Channel| {
                let before = self.channels.iter().position(|old| old == channel);
                before.is_some_and(|before| issue.notified[before])
            };
            issue.notified = channels.iter().map(was_notified).collect();
        }
        self.channels = channels.to_vec();
        self.schedule();
    }

    pub(super) fn event(&mut self, event: &Event, now: Instant) {
        match event {
            Event::Blocked(access) => self.access(access, now),
            Event::Conflict(conflict) => self.conflict(conflict, now),
            Event::Agent(status) => self.agent(status, now),
            Event::Budget(report) => self.budget(report, now),
            Event::Loop(report) => self.looped(report, now),
            Event::Turn(turn) => {
                if &*turn.stop_reason == "end_turn" {
                    self.issues.remove(&NoticeSubject::Loop(turn.key.clone()));
                }
                self.turn_ended(now);
            }
            _ => return,
        }
        self.schedule();
    }

    /// Applies the current state, after events were missed.
    pub(super) fn resync(&mut self, current: &Current, now: Instant) {
        let Current { pending, conflicts, agents, budgets, is_idle } = current;
        self.issues.retain(|subject, _| match subject {
            NoticeSubject::Access(id) | NoticeSubject::Ending(id) => {
                pending.iter().any(|access| access.id == *id)
            }
            NoticeSubject::Conflict(id) => conflicts.iter().any(|conflict| conflict.id == *id),
            NoticeSubject::Agent(id) => agents.iter().any(|status| status.agent == *id),
            // Its end may be among what was missed.
            NoticeSubject::Loop(_) => false,
            NoticeSubject::Team => *is_idle,
            NoticeSubject::Budget(of) => budgets.iter().any(|report| report.agent == *of),
        });
        for access in pending {
            self.access(access, now);
        }
        for conflict in conflicts {
            self.conflict(conflict, now);
        }
        for status in agents {
            self.agent(status, now);
        }
        for report in budgets {
            self.budget(report, now);
        }
        self.schedule();
    }

    /// When the next notice is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Returns the notices that are due, each with the index of its channel.
    pub(super) fn due(&mut self, now: Instant) -> Vec<(usize, Notice)> {
        if self.next.is_none_or(|next| next > now) {
            return Vec::new();
        }
        let mut due = Vec::new();
        for issue in self.issues.values_mut() {
            for (at, channel) in self.channels.iter().enumerate() {
                if issue.awaits(at, channel) && opens(channel, issue, now, self.time) <= now {
                    issue.notified[at] = true;
                    due.push((at, issue.notice.clone()));
                }
            }
        }
        due.sort_by_key(|(_, notice)| notice.timestamp_ms);
        self.schedule();
        due
    }

    fn access(&mut self, access: &BlockedAccess, now: Instant) {
        let subject = NoticeSubject::Access(access.id.clone());
        let ending = NoticeSubject::Ending(access.id.clone());
        if access.status != BlockedStatus::Pending {
            self.issues.remove(&subject);
            self.issues.remove(&ending);
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
            owners: access.owners.iter().map(AgentId::to_string).collect(),
            until_ms: access.until_ms,
            ..self.notice(Cause::Pending, agent, message)
        };
        let known = self.issues.get_mut(&subject).map(|known| &mut known.notice.until_ms);
        let is_new =
            known.is_none_or(|known| std::mem::replace(known, access.until_ms) != access.until_ms);
        if is_new {
            self.issues.remove(&ending);
            self.remind(ending, access, &notice, now);
        }
        self.add(subject, notice, now);
    }

    /// Has channels reminded once, before the time to decide an access is over.
    fn remind(&mut self, ending: NoticeSubject, access: &BlockedAccess, of: &Notice, now: Instant) {
        let Some(until) = access.until_ms else { return };
        let whole = until.saturating_sub(access.timestamp_ms);
        let before = (whole / 4).min(REMINDER_MS);
        let wait = Duration::from_millis(until.saturating_sub(now_ms()).saturating_sub(before));
        let (id, agent, path) = (&access.id, &access.key.agent, quoted(&access.path));
        let action = access.action.as_str();
        let message =
            format!("the time to decide ends soon: {agent} wants to {action} {path} ({id})");
        self.add(ending, Notice { message, ..of.clone() }, now + wait);
    }

    /// A write that waits for another agent's lock, or for a person, who may decide either.
    fn conflict(&mut self, conflict: &Conflict, now: Instant) {
        let subject = NoticeSubject::Conflict(conflict.id.clone());
        let Some(agent) = conflict.agents.first().filter(|_| conflict.waits()) else {
            self.issues.remove(&subject);
            return;
        };
        let (id, shown) = (&conflict.id, quoted(&conflict.path));
        let others: Vec<_> = conflict.agents[1..].iter().map(AgentId::as_str).collect();
        let others = others.join(", ");
        let message = format!("{agent} waits to write {shown}, in conflict with {others} ({id})");
        let notice = Notice {
            id: Some(id.to_string()),
            path: Some(conflict.path.to_string()),
            action: Some(Action::Write.as_str().to_owned()),
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
                self.issues.remove(&subject);
                return;
            }
        };
        let notice = self.notice(cause, agent, message);
        // A repeated status must not restart the delay.
        let is_known = self.issues.get(&subject).is_some_and(|known| {
            known.notice.event == cause && known.notice.message == notice.message
        });
        if !is_known {
            self.issues.remove(&subject);
            self.add(subject, notice, now);
        }
    }

    /// A loop lasts until a turn of its session ends well.
    fn looped(&mut self, report: &LoopReport, now: Instant) {
        if report.found.action.is_some() {
            let agent = &report.key.agent;
            let message = format!("{agent} goes in a loop: {}", one_line(&report.found.describe()));
            let notice = self.notice(Cause::Loop, agent, message);
            self.add(NoticeSubject::Loop(report.key.clone()), notice, now);
        }
    }

    /// The team may be done, unless another turn runs or begins.
    fn turn_ended(&mut self, now: Instant) {
        let team = AgentId::new("");
        let message = "the team is done: no agent works any more".to_owned();
        let notice = self.notice(Cause::Done, &team, message);
        self.issues.remove(&NoticeSubject::Team);
        self.add(NoticeSubject::Team, notice, now);
    }

    /// Whether it is time to say that the team is done.
    pub(super) fn is_done(&self, now: Instant) -> bool {
        self.issues.get(&NoticeSubject::Team).is_some_and(|issue| {
            let mut channels = self.channels.iter().enumerate();
            channels.any(|(at, channel)| {
                issue.awaits(at, channel) && opens(channel, issue, now, self.time) <= now
            })
        })
    }

    /// The team is not done, since an agent works: is to be looked at again.
    pub(super) fn goes_on(&mut self, now: Instant) {
        if let Some(issue) = self.issues.get_mut(&NoticeSubject::Team) {
            issue.since = now + LOOK_AGAIN;
        }
        self.schedule();
    }

    fn budget(&mut self, report: &BudgetReport, now: Instant) {
        let subject = NoticeSubject::Budget(report.agent.clone());
        let whose = report.agent.as_ref().map_or_else(
            || "the team's budget".to_owned(),
            |agent| format!("the budget of `{agent}`"),
        );
        let message = match (&report.reason, report.state) {
            (Some(reason), _) => reason.to_string(),
            (None, BudgetState::Warned) => format!("{whose} is nearly used up"),
            (None, _) => {
                self.issues.remove(&subject);
                return;
            }
        };
        // The first reason stands, whatever is used later.
        let is_known = self.issues.get(&subject).is_some_and(|known| {
            let was_exceeded = known.notice.message.contains("used up: ");
            was_exceeded == report.reason.is_some()
        });
        if !is_known {
            self.issues.remove(&subject);
            let team = AgentId::new("");
            let agent = report.agent.as_ref().unwrap_or(&team);
            let notice = self.notice(Cause::Budget, agent, message);
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
        if self.issues.len() < MOST {
            let notified = vec![false; self.channels.len()];
            let is_urgent = matches!(subject, NoticeSubject::Ending(_));
            let issue = Issue { notice, since, is_urgent, notified };
            self.issues.entry(subject).or_insert(issue);
        }
    }

    fn schedule(&mut self) {
        let time = self.time;
        let due = |issue: &Issue| {
            let waiting = self.channels.iter().enumerate();
            let waiting = waiting.filter(|(at, channel)| issue.awaits(*at, channel));
            waiting.map(|(_, channel)| opens(channel, issue, issue.since, time)).min()
        };
        self.next = self.issues.values().filter_map(due).min();
    }
}

/// From when on, and not before `from`, a channel is to be notified of an issue: once it has lasted,
/// and not in a quiet time.
fn opens(channel: &Channel, issue: &Issue, from: Instant, time: Option<LocalTime>) -> Instant {
    let delay = if issue.is_urgent { Duration::ZERO } else { channel.after };
    let mut at = from.max(issue.since + delay);
    let Some(LocalTime { at: known, second }) = time else { return at };
    // Each span once: they may follow each other.
    for _ in &channel.quiet {
        let ahead = at.saturating_duration_since(known).as_secs();
        let then = ((u64::from(second) + ahead) % 86_400) as u32;
        let left = channel.quiet.iter().filter_map(|span| span.left(then)).max();
        let Some(left) = left else { break };
        at = at.max(known) + Duration::from_secs(left.into());
    }
    at
}

impl Issue {
    /// Whether a channel must still be notified.
    fn awaits(&self, at: usize, channel: &Channel) -> bool {
        !self.notified[at] && channel.causes.contains(&self.notice.event)
    }
}
