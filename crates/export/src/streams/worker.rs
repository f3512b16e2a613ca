//! Follows the journal for one stream: a task that tries one delivery after the other, on threads that
//! may block, and pauses after failures. Nothing waits for it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use eisen_base::task;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::attempt::{Attempted, Delivery, History};
use super::health::{Failure, Health};
use crate::bus::Bus;
use crate::model::{Event, StreamReport, StreamState, now_ms};

/// Replays that wait for a stream to take them, and as many that it has taken.
pub(super) const MOST_REPLAYS: usize = 4;

/// How often the journal is looked at without news: other programs may write it.
const POLL: Duration = Duration::from_secs(5);

/// How often a canary line is sent.
const CANARY: Duration = Duration::from_mins(1);

/// How long the last deliveries may take at the end of a team, and one that is under way when the stream
/// is detached.
const LAST: Duration = Duration::from_millis(1_500);

/// The bus, until it is to end.
pub(super) type BusOutlet = Arc<Mutex<Option<Bus>>>;

/// A session that is to be delivered again, with who waits for that.
pub(super) type Replay = (History, oneshot::Sender<History>);

/// The parts that a try hands back.
type Tried = (Delivery, Option<Replay>, Attempted);

pub(super) struct Worker {
    delivery: Option<Delivery>,
    under_way: Option<JoinHandle<Tried>>,
    /// Sessions that are to be delivered again, with who waits for each.
    histories: VecDeque<Replay>,
    /// The next try is one of a session.
    is_historys_turn: bool,
    health: Health,
    report: Arc<Mutex<StreamReport>>,
    outlet: BusOutlet,
    /// When the next try begins.
    due: Instant,
    /// Something was written since the last try began.
    is_fresh: bool,
    /// When the next canary line is due; None: they are not wanted.
    canary: Option<Instant>,
}

impl Worker {
    pub(super) fn new(
        delivery: Delivery,
        report: Arc<Mutex<StreamReport>>,
        outlet: BusOutlet,
        health: Health,
        canary: bool,
    ) -> Self {
        let now = Instant::now();
        Self {
            delivery: Some(delivery),
            under_way: None,
            histories: VecDeque::new(),
            is_historys_turn: false,
            health,
            report,
            outlet,
            due: now,
            is_fresh: false,
            canary: canary.then_some(now),
        }
    }

    /// Delivers until the journal has ended, or `stop`.
    pub(super) async fn run(
        mut self,
        mut written: watch::Receiver<()>,
        mut replays: mpsc::Receiver<Replay>,
        stop: CancellationToken,
    ) {
        let mut last = None;
        loop {
            if self.under_way.is_none() && self.due <= Instant::now() {
                self.begin();
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = sleep_until(last.unwrap_or(self.due)), if last.is_some() => break,
                changed = written.changed(), if last.is_none() => {
                    self.is_fresh = true;
                    if changed.is_err() {
                        last = Some(Instant::now() + LAST);
                        self.due = Instant::now();
                    } else if self.health.failures == 0 {
                        self.due = Instant::now();
                    }
                }
                attempted = ended(&mut self.under_way) => {
                    self.under_way = None;
                    let has_more = self.attempted(attempted);
                    if last.is_some() && !has_more || self.delivery.is_none() {
                        break;
                    }
                }
                Some(replay) = replays.recv(), if self.histories.len() < MOST_REPLAYS => {
                    self.histories.push_back(replay);
                    if self.health.failures == 0 {
                        self.due = Instant::now();
                    }
                }
                () = sleep_until(self.due), if self.under_way.is_none() => {}
            }
        }
        if let Some(under_way) = self.under_way.take().filter(|_| last.is_none()) {
            let left = timeout(LAST, under_way).await;
            self.delivery = left.ok().and_then(Result::ok).map(|(delivery, ..)| delivery);
        }
        if let Some(mut delivery) = self.delivery.take() {
            let _ = task::spawn_blocking(move || delivery.rest()).await;
        }
    }

    fn begin(&mut self) {
        let Some(mut delivery) = self.delivery.take() else { return };
        // Who does not wait any more, wants it no more.
        self.histories.retain(|(_, asker)| !asker.is_closed());
        self.is_historys_turn = !self.is_historys_turn && !self.histories.is_empty();
        if self.is_historys_turn
            && let Some((mut history, asker)) = self.histories.pop_front()
        {
            self.under_way = Some(task::spawn_blocking(move || {
                let attempted = delivery.history(&mut history);
                (delivery, Some((history, asker)), attempted)
            }));
            return;
        }
        self.is_fresh = false;
        let now = Instant::now();
        let canary = self.canary.is_some_and(|due| due <= now);
        if canary {
            self.canary = Some(now + CANARY);
        }
        self.under_way = Some(task::spawn_blocking(move || {
            let attempted = delivery.next(canary);
            (delivery, None, attempted)
        }));
    }

    /// Returns whether the next try begins at once.
    fn attempted(&mut self, tried: Result<Tried, String>) -> bool {
        let attempted = match tried {
            Ok((delivery, replay, attempted)) => {
                self.delivery = Some(delivery);
                match replay {
                    Some(replay) if attempted.failure.is_some() || attempted.more => {
                        self.histories.push_front(replay);
                    }
                    // Who asked may be gone.
                    Some((history, asker)) => drop(asker.send(history)),
                    None => {}
                }
                attempted
            }
            // It ends here: a bug.
            Err(why) => Attempted { failure: Some(Failure::new(why)), ..Attempted::default() },
        };
        let now = Instant::now();
        let goes_on = attempted.failure.is_none()
            && (attempted.more || self.is_fresh || !self.histories.is_empty());
        // A try without anything to deliver says nothing of a receiver that fails at a session.
        let is_idle = attempted.failure.is_none() && self.histories.is_empty();
        if attempted.has_progress || is_idle {
            self.health.succeeded();
        }
        self.due = if let Some(failure) = &attempted.failure {
            now + self.health.failed(failure)
        } else if goes_on {
            now
        } else {
            self.canary.map_or(now + POLL, |canary| canary.min(now + POLL))
        };
        self.tell(&attempted);
        goes_on
    }

    /// Brings the report up to date, and says if the stream stands differently.
    fn tell(&self, attempted: &Attempted) {
        let state = self.health.state();
        let mut report = self.report.lock();
        let before = std::mem::replace(&mut report.state, state);
        report.failures = self.health.failures;
        report.reason = attempted.failure.as_ref().map(|failure| failure.why.as_str().into());
        report.delivered += attempted.delivered;
        report.lost += attempted.lost;
        report.dead += attempted.dead;
        report.position = attempted.position.or(report.position);
        if state == before {
            return;
        }
        report.timestamp_ms = now_ms();
        let report = report.clone();
        let (stream, why) = (&*report.name, report.reason.as_deref().unwrap_or_default());
        if state == StreamState::Ok {
            tracing::info!(stream, "the stream delivers again");
        } else {
            tracing::warn!(stream, why, "the stream is {}", state.as_str());
        }
        if let Some(bus) = &*self.outlet.lock() {
            bus.publish(Event::Stream(report));
        }
    }
}

/// Waits for a try that is under way.
async fn ended(under_way: &mut Option<JoinHandle<Tried>>) -> Result<Tried, String> {
    match under_way {
        Some(under_way) => under_way.await.map_err(|error| error.to_string()),
        None => std::future::pending().await,
    }
}
