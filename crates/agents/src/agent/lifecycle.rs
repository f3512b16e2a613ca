//! `(state, event) → (state, effects)`: the lifecycle of an agent, without side effects. Restarts
//! follow OTP's supervisors: too many within a period put the agent into the error state.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::AgentState;
use crate::process::Exit;

/// When an agent that exited is started again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    Never,
    OnFailure,
    Always,
}

/// The number of restarts, and the wait before each.
#[derive(Clone, Copy, Debug)]
pub struct Restarts {
    pub policy: Policy,
    /// Restarts within `within`; one more puts the agent into the error state.
    pub max: u32,
    pub within: Duration,
    /// First and longest wait; it doubles with each recent restart.
    pub backoff: [Duration; 2],
    /// The reason names its health by the failures in a row, as for one that is restarted for ever.
    pub with_health: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum LifecycleEvent {
    Start,
    Stop,
    Restart,
    /// Its dependencies are ready, and it is admitted.
    Cleared,
    /// The start failed for a reason that a retry would not remove.
    NotSpawned(String),
    Spawned,
    /// Initialized, with its session open.
    Opened,
    /// The process runs, but did not answer or refused.
    Failed(String),
    Exited {
        exit: Exit,
        why: String,
    },
    /// The agent exited after an error of its relay that a restart would not remove.
    BrokeOff(String),
    BackoffOver,
    /// The agent is removed from the team.
    Leave,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Effect {
    /// Publish the state, with a reason.
    Publish(Option<String>),
    /// Wait for the dependencies and for admission, and publish the reason for the wait.
    AwaitClearance,
    Spawn,
    Backoff(Duration),
    StopProcess,
    /// End its sessions and revoke its grants.
    Forget,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Phase {
    Idle(AgentState),
    Waiting,
    Backoff,
    Connecting,
    Ready,
    /// The process is being stopped; `then` follows.
    Stopping {
        shown: AgentState,
        then: Then,
    },
    /// Removed from the team.
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
    /// The restarts that still count.
    recent: VecDeque<Instant>,
    restarts: u32,
    /// Ends of the process in a row without being ready.
    failures: u32,
}

/// Failures in a row after which an agent is degraded, and after which it is unavailable.
const DEGRADED: u32 = 5;
const UNAVAILABLE: u32 = 10;

impl Lifecycle {
    pub(super) fn new(settings: Restarts) -> Self {
        let phase = Phase::Idle(AgentState::Stopped);
        Self { phase, settings, recent: VecDeque::new(), restarts: 0, failures: 0 }
    }

    /// Replaces the restart settings; a wait under way keeps its length.
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

    /// Whether the agent was removed from the team, which is final.
    pub(super) fn is_gone(&self) -> bool {
        self.phase == Phase::Gone
    }

    /// Returns the number of restarts since the team started.
    pub(super) fn restarts(&self) -> u32 {
        self.restarts
    }

    /// Applies an event and returns the effects. `jitter` is a new random number from 0 to 1.
    pub(super) fn on(&mut self, event: LifecycleEvent, now: Instant, jitter: f64) -> Vec<Effect> {
        use LifecycleEvent as E;
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
                self.failures = 0;
                vec![Effect::Publish(None)]
            }
            (P::Connecting | P::Ready, E::Failed(why)) => self.stop(Then::Error(why)),
            // It is known better why.
            (P::Idle(AgentState::Error), E::Failed(why)) => self.rest(AgentState::Error, Some(why)),
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
            // Late events, and those that change nothing.
            _ => Vec::new(),
        }
    }

    fn exited(&mut self, exit: Exit, why: String, now: Instant, jitter: f64) -> Vec<Effect> {
        // An agent that exits before it is ready has failed, whatever its exit status.
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
        self.failures = self.failures.saturating_add(1);
        let why = self.with_health(why);
        let wait = self.backoff(jitter);
        self.recent.push_back(now);
        self.restarts += 1;
        self.phase = Phase::Backoff;
        vec![Effect::Publish(Some(why)), Effect::Backoff(wait)]
    }

    fn with_health(&self, why: String) -> String {
        let health = match self.failures {
            UNAVAILABLE.. => "unavailable",
            DEGRADED.. => "degraded",
            _ => return why,
        };
        if self.settings.with_health {
            return format!("{health}, {} failures in a row: {why}", self.failures);
        }
        why
    }

    /// Doubles with each recent restart. Jitter takes off up to half, so that agents that died
    /// together do not restart together.
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
        // Published now, since the process may take time to end.
        let why = match (&then, &self.phase) {
            (Then::Error(why), Phase::Connecting) => Some(why.clone()),
            _ => None,
        };
        self.phase = Phase::Stopping { shown: self.state(), then };
        let publish = why.map(|why| Effect::Publish(Some(why)));
        publish.into_iter().chain([Effect::StopProcess]).collect()
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
