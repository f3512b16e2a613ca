//! Admission: limits how many agents run at once and how much memory they use. Agents that do not
//! fit wait in one queue and start in the order in which they came.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::slot_wait::{SlotWait, SlotWish};
use crate::model::AgentId;
use crate::process::Family;

const MB: u64 = 1024 * 1024;

/// Assumed memory of an agent that has not run yet, in bytes.
pub(super) const USUAL_MEMORY: u64 = 512 * MB;

/// Interval at which the memory of running agents is measured.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Limits of a team; 0 means no limit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Capacity {
    pub max_running: usize,
    pub max_memory_mb: u64,
}

/// The admission queue of a team; cheap to clone.
#[derive(Clone, Debug)]
pub struct Admission(Arc<AdmissionShared>);

#[derive(Debug)]
struct AdmissionShared {
    line: Mutex<AdmissionQueue>,
    changed: Notify,
}

#[derive(Debug)]
struct AdmissionQueue {
    capacity: Capacity,
    last: u64,
    /// Agents that run or start.
    running: BTreeMap<u64, Reservation>,
    waiting: VecDeque<Waiter>,
    /// Memory use is above `capacity`, and this was logged.
    is_over: bool,
}

#[derive(Debug)]
struct Reservation {
    need: u64,
    family: Option<Family>,
}

#[derive(Debug)]
struct Waiter {
    number: u64,
    agent: AgentId,
    need: u64,
    turn: watch::Sender<AdmissionState>,
}

/// State of an agent in the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
enum AdmissionState {
    /// Waits, with the reason.
    Waits(String),
    Comes,
}

/// A place in the queue, then the permission to run. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct StartPermit {
    admission: Admission,
    number: u64,
    turn: watch::Receiver<AdmissionState>,
    /// Waited for once it is admitted.
    slot: Option<SlotWait>,
}

impl Admission {
    pub fn new(capacity: Capacity) -> Self {
        let line = AdmissionQueue {
            capacity,
            last: 0,
            running: BTreeMap::new(),
            waiting: VecDeque::new(),
            is_over: false,
        };
        Self(Arc::new(AdmissionShared { line: Mutex::new(line), changed: Notify::new() }))
    }

    /// Replaces the limits. Running agents continue.
    pub fn set(&self, capacity: Capacity) {
        let mut line = self.0.line.lock();
        line.capacity = capacity;
        line.advance();
        self.0.changed.notify_one();
    }

    /// Admits agents as memory becomes free, and logs when the team uses too much, until `cancel`.
    pub async fn watch(self, cancel: CancellationToken) {
        loop {
            if !self.0.line.lock().is_watched() {
                tokio::select! {
                    () = cancel.cancelled() => return,
                    () = self.0.changed.notified() => continue,
                }
            }
            tokio::select! {
                () = cancel.cancelled() => return,
                () = tokio::time::sleep(LOOK_AGAIN) => self.0.line.lock().look(),
            }
        }
    }

    /// Adds an agent to the queue; `need` is its expected memory in bytes.
    pub(super) fn enter(&self, agent: AgentId, need: u64) -> StartPermit {
        let mut line = self.0.line.lock();
        line.last += 1;
        let number = line.last;
        let (turn, seen) = watch::channel(AdmissionState::Waits(String::new()));
        line.waiting.push_back(Waiter { number, agent, need, turn });
        line.advance();
        drop(line);
        self.0.changed.notify_one();
        StartPermit { admission: self.clone(), number, turn: seen, slot: None }
    }
}

impl StartPermit {
    /// Waits until the agent may start (None) or the reason for the wait changes. Cancel safe.
    pub(super) async fn news(&mut self) -> Option<String> {
        if *self.turn.borrow() != AdmissionState::Comes {
            // The sender lives as long as this permit.
            let _ = self.turn.changed().await;
        }
        match (self.waits_for(), &mut self.slot) {
            (None, Some(slot)) => slot.news().await,
            (waits_for, _) => waits_for,
        }
    }

    /// Has the agent wait for a slot, too.
    pub(super) fn wish(&mut self, slot: Option<&SlotWish>, agent: &AgentId) {
        self.slot = slot.map(|wish| SlotWait::new(wish, agent));
    }

    /// Returns the reason for the wait; None if the agent may start.
    pub(super) fn waits_for(&mut self) -> Option<String> {
        match &*self.turn.borrow_and_update() {
            AdmissionState::Waits(why) => Some(why.clone()),
            AdmissionState::Comes => None,
        }
    }

    /// Sets the process family whose memory is counted.
    pub(super) fn set_family(&self, family: &Family) {
        if let Some(claim) = self.admission.0.line.lock().running.get_mut(&self.number) {
            claim.family = Some(family.clone());
        }
    }
}

impl Drop for StartPermit {
    fn drop(&mut self) {
        let mut line = self.admission.0.line.lock();
        line.running.remove(&self.number);
        line.waiting.retain(|waiting| waiting.number != self.number);
        line.advance();
    }
}

impl AdmissionQueue {
    /// Admits agents from the front of the queue while they fit, and updates the reason of the
    /// others.
    fn advance(&mut self) {
        while let Some(first) = self.waiting.front() {
            if self.obstacle(first).is_some() {
                break;
            }
            let Some(Waiter { number, need, turn, .. }) = self.waiting.pop_front() else { break };
            self.running.insert(number, Reservation { need, family: None });
            turn.send_replace(AdmissionState::Comes);
        }
        let Some(obstacle) = self.waiting.front().and_then(|first| self.obstacle(first)) else {
            return;
        };
        for waiting in &self.waiting {
            let why = self.obstacle(waiting).unwrap_or_else(|| obstacle.clone());
            let now = AdmissionState::Waits(why);
            waiting.turn.send_if_modified(|turn| {
                let is_news = *turn != now;
                turn.clone_from(&now);
                is_news
            });
        }
    }

    /// Returns the reason why an agent cannot start now.
    fn obstacle(&self, waiting: &Waiter) -> Option<String> {
        let Capacity { max_running, max_memory_mb } = self.capacity;
        if max_running > 0 && self.running.len() >= max_running {
            return Some(
                "waits for a place: as many agents run as `max_running` allows".to_owned(),
            );
        }
        let claimed = self.running.values().map(Reservation::bytes).fold(0, u64::saturating_add);
        let fits = claimed.saturating_add(waiting.need) <= max_memory_mb.saturating_mul(MB);
        // A single agent may exceed the limit; otherwise it would never start.
        if max_memory_mb == 0 || fits || self.running.is_empty() {
            return None;
        }
        let (uses, needs, agent) =
            (claimed.div_ceil(MB), waiting.need.div_ceil(MB), &waiting.agent);
        Some(format!(
            "waits for memory: the team uses {uses} MB of max_memory_mb = {max_memory_mb}, and \
             `{agent}` may use {needs} MB"
        ))
    }

    fn is_watched(&self) -> bool {
        self.capacity.max_memory_mb > 0 && !self.running.is_empty()
    }

    fn look(&mut self) {
        let used = self.running.values().filter_map(|claim| claim.family.as_ref());
        let used = used.map(|family| family.usage().memory_bytes).sum::<u64>();
        let max_memory_mb = self.capacity.max_memory_mb;
        let is_over = max_memory_mb > 0 && used > max_memory_mb.saturating_mul(MB);
        if is_over && !self.is_over {
            tracing::warn!(
                used_mb = used.div_ceil(MB),
                max_memory_mb,
                "the team uses more memory than `max_memory_mb`: it only keeps agents from \
                 starting; `memory_mb` in `[agents.limits]` ends one that takes too much"
            );
        }
        self.is_over = is_over;
        // Changed figures alone are not published: they would change all the time.
        if self.waiting.front().is_some_and(|first| self.obstacle(first).is_none()) {
            self.advance();
        }
    }
}

impl Reservation {
    /// Returns the expected or the used memory, whichever is larger.
    fn bytes(&self) -> u64 {
        let used = self.family.as_ref().map_or(0, |family| family.usage().memory_bytes);
        self.need.max(used)
    }
}

/// Waits for a time, if there is one.
pub(super) async fn until(instant: Option<tokio::time::Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// Waits for a future, if there is one.
pub(super) async fn pending_or<F: Future + Unpin>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Waits for news of a place in the queue, if there is one.
pub(super) async fn news_of(place: &mut Option<StartPermit>) -> Option<String> {
    match place {
        Some(place) => place.news().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
