//! Whether an agent gets on: when it was heard last, whether it is at work or waits for somebody, and
//! what its last turn failed of. Fed by the relay; read from any task.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::model::{Activity, ActivityKind};

#[derive(Debug)]
pub struct Vitals {
    began: Instant,
    /// Milliseconds after `began`.
    heard: AtomicU64,
    state: watch::Sender<ProxyState>,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ProxyState {
    /// Prompts that run.
    pub turns: usize,
    /// What it waits for: decisions of others, its client's answers, terminals.
    pub waits: usize,
    /// The first of its accesses that wait for a decision, the oldest first.
    pub held: Vec<Arc<str>>,
    /// Why its last turn failed, if it did.
    pub failed: Option<Arc<str>>,
}

/// While it lives, the agent waits for somebody else.
#[derive(Debug)]
pub struct Waits {
    vitals: Arc<Vitals>,
    held: Option<Arc<str>>,
}

/// Accesses that are named in [`ProxyState::held`]; those beyond wait as well.
const MOST_HELD: usize = 8;

impl Vitals {
    /// Those of an agent that was heard just now.
    pub fn new() -> Arc<Self> {
        let (began, heard) = (Instant::now(), AtomicU64::new(0));
        Arc::new(Self { began, heard, state: watch::Sender::default() })
    }

    /// The agent said something.
    pub fn record_activity(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard.store(now, Ordering::Relaxed);
    }

    pub fn last_activity(&self) -> Instant {
        self.began + Duration::from_millis(self.heard.load(Ordering::Relaxed))
    }

    /// Takes note of what a line told.
    pub fn update(&self, activity: &Activity) {
        match &activity.kind {
            ActivityKind::TurnBegan => self.state.send_modify(|state| state.turns += 1),
            ActivityKind::TurnEnded { reason, .. } => self.state.send_modify(|state| {
                state.turns = state.turns.saturating_sub(1);
                state.failed.clone_from(reason);
            }),
            _ => {}
        }
    }

    /// Says that the agent waits for somebody else, as long as the result lives.
    pub fn wait(self: &Arc<Self>) -> Waits {
        self.state.send_modify(|state| state.waits += 1);
        Waits { vitals: Arc::clone(self), held: None }
    }

    /// The same, for the decision of an access.
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

    /// Does some work that the agent has to do within a time, of which only that counts in which
    /// it waits for nobody else. None: it took longer.
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
    /// Whether it is the agent's turn to do something.
    pub fn is_at_work(&self) -> bool {
        self.turns > 0 && self.waits == 0
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
