//! The task that owns the map: takes the inbox out at once, ticks, publishes. Knows the clock and
//! the bus; what anything means is the core's.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::inbox::{Ask, Inbox, Message};
use super::sessions::Sessions;
use super::{Settings, Snapshots};
use crate::bus::Bus;

/// After so many ticks without a change the task ticks more slowly.
const QUIET_TICKS: u32 = 20;

pub(super) struct Task {
    sessions: Sessions,
    inbox: Arc<Inbox>,
    bus: Bus,
    /// Changes when a session is opened or closed, or gets another model or mode.
    roster: watch::Sender<()>,
    tick: Duration,
    idle_tick: Duration,
    /// Ticks without a change.
    quiet: u32,
    next_tick: Instant,
}

impl Task {
    pub(super) fn new(
        settings: Settings,
        sessions: Sessions,
        inbox: Arc<Inbox>,
        bus: Bus,
        roster: watch::Sender<()>,
    ) -> Self {
        let Settings { tick, idle_tick, .. } = settings;
        let next_tick = Instant::now() + tick;
        Self { sessions, inbox, bus, roster, tick, idle_tick, quiet: 0, next_tick }
    }

    pub(super) async fn run(mut self, cancel: CancellationToken) {
        self.publish();
        loop {
            // By the bias, who tells without pause cannot hold the tick up.
            tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                () = sleep_until(self.next_tick) => self.pass_tick(),
                () = self.inbox.filled() => self.take_in(),
            }
        }
        self.take_in();
        self.sessions.flush();
        self.publish();
    }

    fn pass_tick(&mut self) {
        self.take_in();
        self.quiet = if self.sessions.tick() { 0 } else { self.quiet.saturating_add(1) };
        self.publish();
        let period = if self.quiet < QUIET_TICKS { self.tick } else { self.idle_tick };
        let now = Instant::now();
        let next_tick = self.next_tick + period;
        // A tick that came late is not made up for.
        self.next_tick = if next_tick > now { next_tick } else { now + period };
    }

    fn take_in(&mut self) {
        for message in self.inbox.take() {
            match message {
                Message::Input(key, told, at) => {
                    self.sessions.input(&key, told, at);
                    self.wake();
                }
                Message::Orchestrate(key) => self.sessions.orchestrate(key),
                Message::Forget(agent) => self.sessions.forget(&agent),
                Message::Join(symbols) => self.sessions.join(symbols),
                Message::DiskWrote(path, at) => {
                    self.sessions.disk_wrote(&path, at);
                    self.wake();
                }
                Message::Ask(ask) => self.answer(ask),
            }
        }
        self.publish();
    }

    /// Lets the next tick come no later than if there had always been something to do.
    fn wake(&mut self) {
        self.quiet = 0;
        self.next_tick = self.next_tick.min(Instant::now() + self.tick);
    }

    /// What an answer contains is published first, so that whoever gets it has missed nothing.
    fn answer(&mut self, ask: Ask) {
        self.sessions.flush();
        self.publish();
        // Who asked may have gone.
        let _ = match ask {
            Ask::Settled(reply) => reply.send(()).is_ok(),
            Ask::Snapshots(reply) => {
                let (as_of, sessions) = (self.bus.position(), self.sessions.snapshots());
                reply.send(Snapshots { as_of, sessions }).is_ok()
            }
            Ask::Usages(reply) => reply.send(self.sessions.usages()).is_ok(),
            Ask::Sessions(reply) => reply.send(self.sessions.reports()).is_ok(),
        };
    }

    fn publish(&mut self) {
        for event in self.sessions.take_events() {
            self.bus.publish(event);
        }
        if self.sessions.take_roster_changed() {
            self.roster.send_replace(());
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.inbox.close();
    }
}

#[cfg(test)]
mod tests;
