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
    state: watch::Sender<State>,
}

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct State {
    /// Prompts that run.
    pub turns: usize,
    /// What it waits for: decisions of others, its client's answers, terminals.
    pub waits: usize,
    /// Why its last turn failed, if it did.
    pub failed: Option<Arc<str>>,
}

/// While it lives, the agent waits for somebody else.
#[derive(Debug)]
pub struct Waits(Arc<Vitals>);

impl Vitals {
    /// Those of an agent that was heard just now.
    pub fn new() -> Arc<Self> {
        let (began, heard) = (Instant::now(), AtomicU64::new(0));
        Arc::new(Self { began, heard, state: watch::Sender::default() })
    }

    /// The agent said something.
    pub fn heard(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard.store(now, Ordering::Relaxed);
    }

    pub fn last_heard(&self) -> Instant {
        self.began + Duration::from_millis(self.heard.load(Ordering::Relaxed))
    }

    /// Takes note of what a line told.
    pub fn tell(&self, activity: &Activity) {
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
        Waits(Arc::clone(self))
    }

    pub fn watch(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }
}

impl State {
    /// Whether it is the agent's turn to do something.
    pub fn is_at_work(&self) -> bool {
        self.turns > 0 && self.waits == 0
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.waits -= 1);
    }
}
