//! Notifications for users: an access or a write waits for a decision, an agent stalls or fails. Follows the
//! bus and never blocks it: each channel has a queue and a task of its own.

mod chat;
mod deliver;
mod follow;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use eisen_base::task::TaskSet;
use futures_util::future::{BoxFuture, join_all};
use serde::Serialize;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::bus::{Received, Subscriber};
use crate::model::{
    AgentStatus, BlockedAccess, BlockedId, BudgetReport, ChatTarget, Conflict, QuietSpan,
    TimestampMs, left, named, now_ms,
};
use crate::process::Launcher;
use follow::{Follow, LocalTime};

pub use deliver::deliver;

/// Capacity of a channel's queue; past that, notices are only counted.
const QUEUE_CAPACITY: usize = 64;

/// A configured channel: how to notify, and about which causes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channel {
    pub way: Way,
    /// How long a cause lasts before a notice is sent.
    pub after: Duration,
    pub causes: Vec<Cause>,
    /// When notices wait for the end of the span.
    pub quiet: Vec<QuietSpan>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Way {
    /// Runs a program with arguments; never empty.
    Command(Vec<String>),
    /// Sends a POST request to a URL.
    Webhook(String),
    /// Posts the message to a topic of a server of ntfy, by its address.
    Ntfy(String),
    /// Posts a message to a chat.
    Chat(ChatTarget),
    /// Runs `notify-send`.
    Desktop,
}

named! {
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Cause {
        Pending = "pending",
        Stall = "stall",
        Error = "error",
        Budget = "budget",
        Loop = "loop",
        /// No agent works any more.
        Done = "done",
        /// A test notice.
        Test = "test",
    }
}

/// A notice, sent as JSON or in environment variables.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Notice {
    pub team: String,
    pub event: Cause,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent_id: String,
    /// A summary in one sentence.
    pub message: String,
    pub timestamp_ms: TimestampMs,
    /// Id of the blocked access, or of the conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The agents that own the path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<String>,
    /// When nobody waits for the decision any more, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<TimestampMs>,
    /// The agent's words and acts before it, in one line, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Earlier notices that found the queue full.
    #[serde(skip_serializing_if = "is_zero")]
    pub missed: u64,
    /// The origin of the team's page, for links to it, if it is served.
    #[serde(skip)]
    pub page: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Notice {
    /// Its text for people.
    fn for_people(&self) -> String {
        let owners =
            (!self.owners.is_empty()).then(|| format!("owned by {}", self.owners.join(", ")));
        let left = self.until_ms.map(|until| left(until, now_ms()));
        let facts = owners.into_iter().chain(left).collect::<Vec<_>>().join("; ");
        let lines =
            [Some(&self.message), Some(&facts).filter(|it| !it.is_empty()), self.why.as_ref()];
        lines.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// A test notice.
    pub fn test(team: &str) -> Self {
        Self {
            team: team.to_owned(),
            event: Cause::Test,
            agent_id: String::new(),
            message: format!("this is a test notice of the team `{team}`"),
            timestamp_ms: now_ms(),
            id: None,
            path: None,
            action: None,
            owners: Vec::new(),
            until_ms: None,
            why: None,
            missed: 0,
            page: None,
        }
    }
}

/// The state of a team at one moment.
#[derive(Default, Debug)]
pub struct Current {
    /// The accesses that wait for a decision.
    pub pending: Vec<BlockedAccess>,
    /// The writes in conflict that wait.
    pub conflicts: Vec<Conflict>,
    pub agents: Vec<AgentStatus>,
    pub budgets: Vec<BudgetReport>,
    /// No turn runs, and no prompt waits.
    pub is_idle: bool,
}

/// Returns the current state.
pub type Now = Box<dyn Fn() -> BoxFuture<'static, Current> + Send + Sync>;

/// Returns why an access waits, in one line, if that is known.
pub type WhyWaits = Box<dyn Fn(BlockedId) -> BoxFuture<'static, Option<String>> + Send + Sync>;

/// Returns the origin of the team's page, if it is served.
pub type PageOrigin = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// The questions that notices ask the team.
pub struct AlertSources {
    pub now: Now,
    pub why: WhyWaits,
    pub page: PageOrigin,
}

/// Sends notices until `cancel`, which drops queued ones.
pub async fn run(
    team: String,
    mut events: Subscriber,
    sources: AlertSources,
    mut channels: watch::Receiver<Vec<Channel>>,
    launcher: Launcher,
    cancel: CancellationToken,
) {
    let AlertSources { now, why, page } = sources;
    let mut follow = Follow::new(team);
    let mut queues = Queues::open(&mut follow, &channels.borrow_and_update(), &launcher);
    loop {
        follow.set_time(local_time);
        let due = follow.next();
        tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            changed = channels.changed() => {
                if changed.is_err() {
                    return;
                }
                let channels = channels.borrow_and_update().clone();
                queues = Queues::open(&mut follow, &channels, &launcher);
            }
            received = events.recv() => match received {
                Some(Received::Event(_, event)) => follow.event(&event, Instant::now()),
                Some(Received::Missed(_)) => {
                    follow.resync(&now().await, Instant::now());
                }
                None => return,
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
        if follow.is_done(Instant::now()) && !now().await.is_idle {
            follow.goes_on(Instant::now());
        }
        follow.set_time(local_time);
        let mut due = follow.due(Instant::now());
        explain(&mut due, &why).await;
        for (channel, notice) in due {
            queues.push(channel, Notice { page: page(), ..notice });
        }
    }
}

/// Adds why accesses wait, asked at once for all.
async fn explain(due: &mut [(usize, Notice)], why: &WhyWaits) {
    let of = |(_, notice): &(usize, Notice)| {
        notice.id.clone().filter(|_| notice.event == Cause::Pending)
    };
    let ids: BTreeSet<String> = due.iter().filter_map(of).collect();
    let asked = ids.iter().map(|id| why(BlockedId::new(id.as_str())));
    let known: BTreeMap<_, _> = ids.iter().zip(join_all(asked).await).collect();
    for it in due {
        it.1.why = of(it).and_then(|id| known.get(&id)?.clone());
    }
}

fn local_time() -> LocalTime {
    let time = jiff::ZonedDateTime::now().time();
    let second = i32::from(time.hour()) * 3600 + i32::from(time.minute()) * 60;
    let second = second + i32::from(time.second());
    LocalTime { at: Instant::now(), second: second.unsigned_abs() }
}

/// A queue and a delivery task for each channel. Dropping it aborts the tasks.
struct Queues {
    queues: Vec<(mpsc::Sender<Notice>, u64)>,
    _tasks: TaskSet,
}

impl Queues {
    fn open(follow: &mut Follow, channels: &[Channel], launcher: &Launcher) -> Self {
        follow.set_channels(channels);
        let mut tasks = TaskSet::default();
        let queue = |channel: &Channel| {
            let (queue, mut waiting) = mpsc::channel(QUEUE_CAPACITY);
            let (way, launcher) = (channel.way.clone(), launcher.clone());
            tasks.spawn(async move {
                while let Some(notice) = waiting.recv().await {
                    if let Err(why) = deliver(&way, &notice, &launcher).await {
                        tracing::warn!(
                            event = notice.event.as_str(),
                            "cannot deliver a notice: {why}"
                        );
                    }
                }
            });
            (queue, 0)
        };
        Self { queues: channels.iter().map(queue).collect(), _tasks: tasks }
    }

    fn push(&mut self, channel: usize, mut notice: Notice) {
        let Some((queue, missed)) = self.queues.get_mut(channel) else { return };
        notice.missed = *missed;
        if queue.try_send(notice).is_ok() {
            *missed = 0;
        } else {
            *missed += 1;
        }
    }
}
