//! Who may run: so many agents at once, and no more than so much memory. Agents that do not fit
//! wait in one line, and start in the order in which they came.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::model::AgentId;
use crate::process::Family;

const MB: u64 = 1024 * 1024;

/// What an agent is expected to need of which nothing is known yet.
pub(super) const USUAL_MEMORY: u64 = 512 * MB;

/// How often the memory of those that run is looked at, while it matters.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What a team may use at a time; 0: as much as there is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Capacity {
    pub max_running: usize,
    pub max_memory_mb: u64,
}

/// Cheap to clone.
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
    /// Those that run, or are just starting.
    running: BTreeMap<u64, Reservation>,
    waiting: VecDeque<Waiter>,
    /// More memory is used than `capacity` says, and that was told.
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

/// How it stands with one who waits.
#[derive(Clone, PartialEq, Eq, Debug)]
enum AdmissionState {
    /// For the reason given.
    Waits(String),
    Comes,
}

/// A place in the line, and later among those that run. It is free when this is dropped.
#[derive(Debug)]
pub(super) struct StartPermit {
    admission: Admission,
    number: u64,
    turn: watch::Receiver<AdmissionState>,
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

    /// From now on it is so much. Who runs goes on.
    pub fn set(&self, capacity: Capacity) {
        let mut line = self.line();
        line.capacity = capacity;
        line.advance();
        self.0.changed.notify_one();
    }

    /// Lets agents in as memory becomes free, and tells when the team uses too much, until
    /// `cancel`.
    pub async fn watch(self, cancel: CancellationToken) {
        loop {
            if !self.line().is_watched() {
                tokio::select! {
                    () = cancel.cancelled() => return,
                    () = self.0.changed.notified() => continue,
                }
            }
            tokio::select! {
                () = cancel.cancelled() => return,
                () = tokio::time::sleep(LOOK_AGAIN) => self.line().look(),
            }
        }
    }

    /// Puts an agent into the line that is expected to need so many bytes of memory.
    pub(super) fn enter(&self, agent: AgentId, need: u64) -> StartPermit {
        let mut line = self.line();
        line.last += 1;
        let number = line.last;
        let (turn, seen) = watch::channel(AdmissionState::Waits(String::new()));
        line.waiting.push_back(Waiter { number, agent, need, turn });
        line.advance();
        drop(line);
        self.0.changed.notify_one();
        StartPermit { admission: self.clone(), number, turn: seen }
    }

    fn line(&self) -> MutexGuard<'_, AdmissionQueue> {
        // Every change of it is made before anything could panic.
        self.0.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StartPermit {
    /// Waits until the agent may start, or is told to wait for something else; None: it may start.
    /// May be dropped and called again.
    pub(super) async fn news(&mut self) -> Option<String> {
        if *self.turn.borrow() != AdmissionState::Comes {
            // Its sender is there for as long as this waits.
            let _ = self.turn.changed().await;
        }
        self.waits_for()
    }

    /// What it waits for; None: it may start.
    pub(super) fn waits_for(&mut self) -> Option<String> {
        match &*self.turn.borrow_and_update() {
            AdmissionState::Waits(why) => Some(why.clone()),
            AdmissionState::Comes => None,
        }
    }

    /// Says whose memory counts from now on.
    pub(super) fn is_taken_by(&self, family: &Family) {
        if let Some(claim) = self.admission.line().running.get_mut(&self.number) {
            claim.family = Some(family.clone());
        }
    }
}

impl Drop for StartPermit {
    fn drop(&mut self) {
        let mut line = self.admission.line();
        line.running.remove(&self.number);
        line.waiting.retain(|waiting| waiting.number != self.number);
        line.advance();
    }
}

impl AdmissionQueue {
    /// Lets in who fits, the first of the line first, and tells the others what they wait for.
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

    /// What keeps an agent from starting now.
    fn obstacle(&self, waiting: &Waiter) -> Option<String> {
        let Capacity { max_running, max_memory_mb } = self.capacity;
        if max_running > 0 && self.running.len() >= max_running {
            return Some(
                "waits for a place: as many agents run as `max_running` allows".to_owned(),
            );
        }
        let claimed = self.running.values().map(Reservation::bytes).fold(0, u64::saturating_add);
        let fits = claimed.saturating_add(waiting.need) <= max_memory_mb.saturating_mul(MB);
        // One alone may need what it needs, or it would wait for ever.
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
        // Only who is let in hears of it: numbers that go up and down all the time are no news.
        if self.waiting.front().is_some_and(|first| self.obstacle(first).is_none()) {
            self.advance();
        }
    }
}

impl Reservation {
    /// What it needs or uses, whichever is more.
    fn bytes(&self) -> u64 {
        let used = self.family.as_ref().map_or(0, |family| family.usage().memory_bytes);
        self.need.max(used)
    }
}

#[cfg(test)]
mod tests;
