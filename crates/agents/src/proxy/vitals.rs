//! An agent's liveness: its last output, its running turns, its waits, and the failure of its last
//! turn. Written by the relay; read from any task.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anstream::adapter::strip_str;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::model::{Activity, ActivityKind, one_line};

#[derive(Debug)]
pub struct Vitals {
    began: Instant,
    /// Milliseconds after `began`.
    active_at: AtomicU64,
    state: watch::Sender<ProxyState>,
    /// The last line of its output that was no message, cut.
    stray: Mutex<Option<String>>,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ProxyState {
    /// Running prompts.
    pub turns: usize,
    /// The number of its waits: for decisions, its client's answers, terminals.
    pub waits: usize,
    /// Its accesses that wait for a decision, oldest first, `MOST_HELD` at most.
    pub held: Vec<Arc<str>>,
    /// Why its last turn failed, if it did.
    pub failed: Option<Arc<str>>,
    /// The trouble that it reported in its running turn, without progress since.
    pub trouble: Option<Arc<str>>,
    /// Why its provider does not serve, as the team's endpoint saw in its running turn: that does not go by waiting.
    pub set_back: Option<Arc<str>>,
}

/// Marks the agent as waiting until it is dropped.
#[derive(Debug)]
pub struct Waits {
    vitals: Arc<Vitals>,
    held: Option<Arc<str>>,
}

/// Bytes of a stray line that are kept.
const LONGEST_STRAY: usize = 500;

/// Accesses that are named in [`ProxyState::held`]; further ones only count as waits.
const MOST_HELD: usize = 8;

impl Vitals {
    /// The vitals of an agent that was active just now.
    pub fn new() -> Arc<Self> {
        let (began, active_at) = (Instant::now(), AtomicU64::new(0));
        Arc::new(Self {
            began,
            active_at,
            state: watch::Sender::default(),
            stray: Mutex::default(),
        })
    }

    /// Keeps a line of its output that is no message: it may say why the agent ends.
    pub fn stray(&self, line: &[u8]) {
        let start = &line[..line.len().min(LONGEST_STRAY)];
        let text = strip_str(&String::from_utf8_lossy(start)).to_string();
        let text = one_line(text.trim());
        if !text.is_empty() {
            *self.stray.lock() = Some(text);
        }
    }

    /// The last line that was kept.
    pub fn last_stray(&self) -> Option<String> {
        self.stray.lock().clone()
    }

    /// Records output of the agent that is progress: it got over a trouble.
    pub fn record_activity(&self) {
        self.state.send_if_modified(ProxyState::forget_trouble);
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.active_at.store(now, Ordering::Relaxed);
    }

    pub fn last_activity(&self) -> Instant {
        self.began + Duration::from_millis(self.active_at.load(Ordering::Relaxed))
    }

    /// Updates the state by an activity.
    pub fn update(&self, activity: &Activity) {
        match &activity.kind {
            ActivityKind::TurnBegan => self.state.send_modify(|state| {
                state.turns += 1;
                state.forget_trouble();
            }),
            ActivityKind::TurnEnded { reason, .. } => self.state.send_modify(|state| {
                state.turns = state.turns.saturating_sub(1);
                state.failed.clone_from(reason);
                state.forget_trouble();
            }),
            ActivityKind::Troubled { why } => {
                self.troubled(Arc::clone(why));
            }
            _ => {}
        }
    }

    /// Records a trouble that is known otherwise than by its lines.
    pub fn troubled(&self, why: Arc<str>) {
        self.state.send_modify(|state| state.trouble = Some(why));
    }

    /// Records a trouble that does not go by waiting. What the agent says of its own troubles does not replace it.
    pub fn set_back(&self, why: Arc<str>) {
        self.state.send_modify(|state| state.set_back = Some(why));
    }

    /// Marks the agent as waiting, until the result is dropped.
    pub fn wait(self: &Arc<Self>) -> Waits {
        self.state.send_modify(|state| state.waits += 1);
        Waits { vitals: Arc::clone(self), held: None }
    }

    /// Like [`Self::wait`], for the decision of an access.
    pub fn wait_for(self: &Arc<Self>, access: &str) -> Waits {
        let held: Arc<str> = access.into();
        self.state.send_modify(|state| {
            state.waits += 1;
            if state.held.len() < MOST_HELD {
                state.held.push(Arc::clone(&held));
            }
        });
        Waits { vitals: Arc::clone(self), held: Some(held) }
    }

    /// Runs work that the agent must finish in time; while the agent waits, the clock stops. `None`
    /// if the time ran out.
    pub async fn within<F: Future>(&self, time: Duration, work: F) -> Option<F::Output> {
        tokio::pin!(work);
        let mut state = self.state.subscribe();
        let mut left = time;
        loop {
            let waits = state.borrow_and_update().waits > 0;
            let began = Instant::now();
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                _ = state.changed() => {}
                () = tokio::time::sleep(left), if !waits => return None,
            }
            if !waits {
                left = left.saturating_sub(began.elapsed());
            }
        }
    }

    pub fn watch(&self) -> watch::Receiver<ProxyState> {
        self.state.subscribe()
    }
}

impl ProxyState {
    /// Whether a turn runs and waits for nothing.
    pub fn is_at_work(&self) -> bool {
        self.turns > 0 && self.waits == 0
    }

    /// Forgets a trouble that the agent got over; false if there was none.
    fn forget_trouble(&mut self) -> bool {
        let forgot = [self.trouble.take(), self.set_back.take()];
        forgot.iter().any(Option::is_some)
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.vitals.state.send_modify(|state| {
            state.waits -= 1;
            let own =
                |other: &Arc<str>| self.held.as_ref().is_some_and(|it| Arc::ptr_eq(it, other));
            state.held.retain(|other| !own(other));
        });
    }
}
