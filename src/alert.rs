//! Notices for people who look away: an access that waits for a decision, an agent that stalls, an
//! agent that failed. Follows the bus, and never holds it up: each way of telling has a queue and a
//! task of its own.

mod deliver;
mod follow;
#[cfg(test)]
mod tests;

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::bus::{Received, Subscriber};
use crate::model::{AgentStatus, BlockedAccess, TimestampMs};
use crate::process::Launcher;
use follow::Follow;

pub use deliver::deliver;

/// Notices that wait for one channel; past that they are only counted.
const WAITING: usize = 64;

/// How somebody is notified, and of what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channel {
    pub way: Way,
    /// How long a cause lasts before it is worth a notice.
    pub after: Duration,
    pub causes: Vec<Cause>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Way {
    /// Program and arguments; never empty.
    Command(Vec<String>),
    /// An address that takes a POST.
    Webhook(String),
    /// `notify-send`.
    Desktop,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Pending,
    Stall,
    Error,
    /// Nothing is the matter: somebody tries whether notices arrive.
    Test,
}

impl Cause {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Stall => "stall",
            Self::Error => "error",
            Self::Test => "test",
        }
    }
}

/// What is sent, as JSON or in variables.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Notice {
    pub team: String,
    pub event: Cause,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub agent_id: String,
    /// All of it in a sentence.
    pub message: String,
    pub timestamp_ms: TimestampMs,
    /// Of the blocked access.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Notices before this one that found no place in the queue.
    #[serde(skip_serializing_if = "is_zero")]
    pub missed: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Notice {
    /// One that says nothing but that notices arrive.
    pub fn test(team: &str) -> Self {
        Self {
            team: team.to_owned(),
            event: Cause::Test,
            agent_id: String::new(),
            message: format!("this is how the team `{team}` notifies you"),
            timestamp_ms: crate::model::now_ms(),
            id: None,
            path: None,
            action: None,
            missed: 0,
        }
    }
}

/// What stands right now: accesses that are pending, and every agent.
pub type Now =
    Box<dyn Fn() -> BoxFuture<'static, (Vec<BlockedAccess>, Vec<AgentStatus>)> + Send + Sync>;

/// Notifies until `cancel`; what is on its way then is not waited for.
pub async fn run(
    team: String,
    mut events: Subscriber,
    now: Now,
    mut channels: watch::Receiver<Vec<Channel>>,
    launcher: Launcher,
    cancel: CancellationToken,
) {
    let mut follow = Follow::new(team);
    let mut queues = Queues::open(&mut follow, &channels.borrow_and_update(), &launcher);
    loop {
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
                    let (pending, agents) = now().await;
                    follow.anew(&pending, &agents, Instant::now());
                }
                None => return,
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
        for (channel, notice) in follow.due(Instant::now()) {
            queues.push(channel, notice);
        }
    }
}

/// One queue for each channel, and the tasks that empty them, which end with it.
struct Queues {
    queues: Vec<(mpsc::Sender<Notice>, u64)>,
    _tasks: JoinSet<()>,
}

impl Queues {
    fn open(follow: &mut Follow, channels: &[Channel], launcher: &Launcher) -> Self {
        follow.change(channels);
        let mut tasks = JoinSet::new();
        let queue = |channel: &Channel| {
            let (queue, mut waiting) = mpsc::channel(WAITING);
            let (way, launcher) = (channel.way.clone(), launcher.clone());
            tasks.spawn(async move {
                while let Some(notice) = waiting.recv().await {
                    if let Err(why) = deliver(&way, &notice, &launcher).await {
                        tracing::warn!(event = notice.event.as_str(), "a notice failed: {why}");
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
