//! `(state, event) → (state, effects)`: what an agent does next, without doing it. Restarts follow
//! OTP's supervisors: at most so many within so long, then the agent is in error.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::AgentState;
use crate::process::Exit;

/// When an agent that ended is started again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    Never,
    OnFailure,
    Always,
}

/// How often, and after which wait.
#[derive(Clone, Copy, Debug)]
pub struct Restarts {
    pub policy: Policy,
    /// Within `within`; one more and the agent is in error.
    pub max: u32,
    pub within: Duration,
    /// First and longest wait; it doubles with each restart that still counts.
    pub backoff: [Duration; 2],
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Event {
    Start,
    Stop,
    Restart,
    /// What it depends on is ready, and there is a place for it.
    Cleared,
    /// It could not be started, for a reason that another try would not mend.
    NotSpawned(String),
    Spawned,
    /// Initialized, and its session is open.
    Opened,
    /// It runs, but is of no use: it did not answer, or refused.
    Failed(String),
    Exited {
        exit: Exit,
        why: String,
    },
    /// It exited, and what its relay met is nothing that another start would mend.
    BrokeOff(String),
    BackoffOver,
    /// It leaves the team.
    Leave,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// Tell everyone of the state, with a reason.
    Publish(Option<String>),
    /// Wait for what it depends on and for a place; tell everyone what it waits for.
    AwaitClearance,
    Spawn,
    Backoff(Duration),
    StopProcess,
    /// End its sessions, and forget what it was granted.
    Forget,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Phase {
    Idle(AgentState),
    Waiting,
    Backoff,
    Connecting,
    Ready,
    /// The process is being ended; then comes what `then` says.
    Stopping {
        shown: AgentState,
        then: Then,
    },
    /// It left the team.
    Gone,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Then {
    Stopped,
    StartAgain,
    Error(String),
    Gone,
}

#[derive(Debug)]
pub(super) struct Lifecycle {
    phase: Phase,
    settings: Restarts,
    /// When it was restarted, as far as that still counts.
    recent: VecDeque<Instant>,
    restarts: u32,
}

impl Lifecycle {
    pub(super) fn new(settings: Restarts) -> Self {
        let phase = Phase::Idle(AgentState::Stopped);
        Self { phase, settings, recent: VecDeque::new(), restarts: 0 }
    }

    /// Goes on by other settings; a wait that runs keeps its length.
    pub(super) fn set_restarts(&mut self, settings: Restarts) {
        self.settings = settings;
    }

    pub(super) fn state(&self) -> AgentState {
        match &self.phase {
            Phase::Idle(state) | Phase::Stopping { shown: state, .. } => *state,
            Phase::Waiting => AgentState::Initializing,
            Phase::Backoff => AgentState::Restarting,
            Phase::Connecting => AgentState::Connecting,
            Phase::Ready => AgentState::Ready,
            Phase::Gone => AgentState::Stopped,
        }
    }

    /// Whether it left the team: nothing brings it back.
    pub(super) fn is_gone(&self) -> bool {
        self.phase == Phase::Gone
    }

    /// Restarts since the team came up.
    pub(super) fn restarts(&self) -> u32 {
        self.restarts
    }

    /// Takes in what happened; returns what is to be done. `jitter` is 0 … 1, drawn anew each
    /// time.
    pub(super) fn on(&mut self, event: Event, now: Instant, jitter: f64) -> Vec<Effect> {
        use Event as E;
        use Phase as P;
        match (self.phase.clone(), event) {
            (P::Idle(_), E::Start | E::Restart) => {
                self.recent.clear();
                self.wait()
            }
            (P::Backoff, E::Start | E::Restart | E::BackoffOver) => self.wait(),
            (P::Waiting | P::Backoff, E::Stop) => self.rest(AgentState::Stopped, None),
            (P::Waiting, E::Cleared) => {
                self.phase = P::Connecting;
                vec![Effect::Spawn]
            }
            (P::Connecting, E::Spawned) => vec![Effect::Publish(None)],
            (P::Connecting, E::NotSpawned(why)) | (P::Connecting | P::Ready, E::BrokeOff(why)) => {
                self.rest(AgentState::Error, Some(why))
            }
            (P::Connecting, E::Opened) => {
                self.phase = P::Ready;
                vec![Effect::Publish(None)]
            }
            (P::Connecting | P::Ready, E::Failed(why)) => self.stop(Then::Error(why)),
            (P::Connecting | P::Ready, E::Stop) => self.stop(Then::Stopped),
            (P::Connecting | P::Ready, E::Restart) => self.stop(Then::StartAgain),
            (P::Connecting | P::Ready, E::Exited { exit, why }) => {
                self.exited(exit, why, now, jitter)
            }
            (P::Idle(_) | P::Waiting | P::Backoff, E::Leave) => self.leave(),
            (P::Connecting | P::Ready, E::Leave) => self.stop(Then::Gone),
            (P::Stopping { shown, .. }, E::Leave) => {
                self.phase = P::Stopping { shown, then: Then::Gone };
                Vec::new()
            }
            (P::Stopping { then: Then::Gone, .. }, E::Start | E::Restart | E::Stop) => Vec::new(),
            (P::Stopping { shown, .. }, E::Stop) => {
                self.phase = P::Stopping { shown, then: Then::Stopped };
                Vec::new()
            }
            (P::Stopping { shown, .. }, E::Start | E::Restart) => {
                self.phase = P::Stopping { shown, then: Then::StartAgain };
                Vec::new()
            }
            (P::Stopping { then, .. }, E::Exited { .. } | E::BrokeOff(_)) => match then {
                Then::Stopped => self.rest(AgentState::Stopped, None),
                Then::Error(why) => self.rest(AgentState::Error, Some(why)),
                Then::Gone => self.leave(),
                Then::StartAgain => {
                    self.restarts += 1;
                    self.wait()
                }
            },
            // What came too late or changes nothing.
            _ => Vec::new(),
        }
    }

    fn exited(&mut self, exit: Exit, why: String, now: Instant, jitter: f64) -> Vec<Effect> {
        // An agent that leaves before it was of any use has failed, whatever its status says.
        let failed = !exit.success() || self.phase == Phase::Connecting;
        let again = match self.settings.policy {
            Policy::Never => false,
            Policy::OnFailure => failed,
            Policy::Always => true,
        };
        if !again {
            let state = if failed { AgentState::Error } else { AgentState::Stopped };
            return self.rest(state, Some(why));
        }
        while self
            .recent
            .front()
            .is_some_and(|then| now.duration_since(*then) > self.settings.within)
        {
            self.recent.pop_front();
        }
        if self.recent.len() >= self.settings.max as usize {
            let (max, within) = (self.settings.max, self.settings.within.as_secs());
            let why = format!("{why}; restarted {max} times within {within} s already");
            return self.rest(AgentState::Error, Some(why));
        }
        let wait = self.backoff(jitter);
        self.recent.push_back(now);
        self.restarts += 1;
        self.phase = Phase::Backoff;
        vec![Effect::Publish(Some(why)), Effect::Backoff(wait)]
    }

    /// Doubles with each recent restart, and is shortened by up to half, so that agents that died
    /// together do not come back together.
    fn backoff(&self, jitter: f64) -> Duration {
        let [first, longest] = self.settings.backoff;
        let doublings = u32::try_from(self.recent.len()).unwrap_or(u32::MAX).min(30);
        let full = first.saturating_mul(1 << doublings).min(longest);
        full.mul_f64(1.0 - jitter.clamp(0.0, 1.0) / 2.0)
    }

    fn wait(&mut self) -> Vec<Effect> {
        self.phase = Phase::Waiting;
        vec![Effect::AwaitClearance]
    }

    fn stop(&mut self, then: Then) -> Vec<Effect> {
        if then == Then::StartAgain {
            self.phase = Phase::Stopping { shown: AgentState::Restarting, then };
            return vec![Effect::Publish(None), Effect::StopProcess];
        }
        // Said at once, since the end of the process may take its time.
        let why = match (&then, &self.phase) {
            (Then::Error(why), Phase::Connecting) => Some(why.clone()),
            _ => None,
        };
        self.phase = Phase::Stopping { shown: self.state(), then };
        let said = why.map(|why| Effect::Publish(Some(why)));
        said.into_iter().chain([Effect::StopProcess]).collect()
    }

    fn leave(&mut self) -> Vec<Effect> {
        self.phase = Phase::Gone;
        vec![Effect::Forget, Effect::Publish(Some("it was removed from the team".to_owned()))]
    }

    fn rest(&mut self, state: AgentState, why: Option<String>) -> Vec<Effect> {
        self.phase = Phase::Idle(state);
        vec![Effect::Publish(why)]
    }
}
