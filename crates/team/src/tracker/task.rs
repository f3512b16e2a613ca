//! The task that owns the map: applies the inbox to the core, ticks, publishes events. Knows the
//! clock and the bus; the core interprets the inputs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::inbox::{Inbox, Query, TrackerMsg};
use super::session_input::SessionInput;
use super::sessions::Sessions;
use super::{Settings, Snapshots};
use crate::bus::{Bus, Demand};
use crate::model::{AgentId, Record, SessionId, SessionKey, TimestampMs, Topic, now_ms};

/// Ticks without a change before the task changes to the idle tick.
const QUIET_TICKS: u32 = 20;

pub(super) struct Task {
    sessions: Sessions,
    inbox: Arc<Inbox>,
    bus: Bus,
    /// Subscribers of `session/update`.
    updates: Demand,
    /// Subscribers of records.
    records: Demand,
    /// Notified when a session is opened or closed, or gets another model or mode.
    roster: watch::Sender<()>,
    tick_period: Duration,
    idle_period: Duration,
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
        let Settings { tick: tick_period, idle_tick: idle_period, .. } = settings;
        let next_tick = Instant::now() + tick_period;
        let (updates, records) = (bus.demand(Topic::SessionUpdate), bus.demand(Topic::Record));
        Self {
            sessions,
            inbox,
            bus,
            updates,
            records,
            roster,
            tick_period,
            idle_period,
            quiet: 0,
            next_tick,
        }
    }

    pub(super) async fn run(mut self, cancel: CancellationToken) {
        self.publish();
        loop {
            // Biased: a full inbox must not delay the tick.
            tokio::select! {
                biased;
                () = cancel.cancelled() => break,
                () = sleep_until(self.next_tick) => self.tick(),
                () = self.inbox.filled() => self.drain_inbox(),
            }
        }
        self.drain_inbox();
        self.sessions.flush();
        self.publish();
    }

    fn tick(&mut self) {
        self.drain_inbox();
        self.quiet = if self.sessions.tick() { 0 } else { self.quiet.saturating_add(1) };
        self.publish();
        let period = if self.quiet < QUIET_TICKS { self.tick_period } else { self.idle_period };
        let now = Instant::now();
        let next_tick = self.next_tick + period;
        // A late tick is not made up for.
        self.next_tick = if next_tick > now { next_tick } else { now + period };
    }

    fn drain_inbox(&mut self) {
        for message in self.inbox.take() {
            match message {
                TrackerMsg::Input(key, input, at) => self.input(&key, input, at),
                TrackerMsg::Orchestrate(key) => self.sessions.orchestrate(key),
                TrackerMsg::Forget(agent) => self.sessions.forget(&agent),
                TrackerMsg::Join(symbols) => self.sessions.join(symbols),
                TrackerMsg::GoOnBehind(turns) => self.sessions.go_on_behind(turns),
                TrackerMsg::DiskWrote(path, at) => {
                    self.sessions.disk_wrote(&path, at);
                    self.wake();
                }
                TrackerMsg::Dropped(agent, dropped) => self.record_dropped(agent, dropped),
                TrackerMsg::Query(query) => self.answer(query),
            }
        }
        self.publish();
    }

    fn input(&mut self, key: &SessionKey, input: SessionInput, at: TimestampMs) {
        if self.records.is_there() {
            if self.sessions.is_compacted_by(key, &input) {
                // As if its agent had said so.
                self.sessions.record(key, Record::Compacted, (at, None));
            }
            if let Some(record) = input.record() {
                self.sessions.record(key, record, (at, input.of_time(at)));
            }
        }
        match input {
            SessionInput::Record(_) => return,
            // The journal has it already, and it has no other receiver.
            SessionInput::Update(_) if !self.updates.is_there() => return,
            input => self.sessions.input(key, input, at),
        }
        self.wake();
    }

    fn record_dropped(&mut self, agent: AgentId, dropped: u64) {
        let (key, record) = (SessionKey::new(agent, SessionId::new("")), Record::Dropped(dropped));
        if self.records.is_there() {
            self.sessions.record(&key, record, (now_ms(), None));
        }
    }

    /// Returns to the normal tick, at the latest one period from now.
    fn wake(&mut self) {
        self.quiet = 0;
        self.next_tick = self.next_tick.min(Instant::now() + self.tick_period);
    }

    /// Publishes all changes before the answer: a client that gets it has missed no event.
    fn answer(&mut self, query: Query) {
        self.sessions.flush();
        self.publish();
        // The receiver may be gone.
        let _ = match query {
            Query::Settled(reply) => reply.send(()).is_ok(),
            Query::Snapshots(reply) => {
                let (as_of, sessions) = (self.bus.position(), self.sessions.snapshots());
                reply.send(Snapshots { as_of, sessions }).is_ok()
            }
            Query::Usages(reply) => reply.send(self.sessions.usages()).is_ok(),
            Query::Sessions(reply) => reply.send(self.sessions.reports()).is_ok(),
            Query::Overlaps(reply) => reply.send(self.sessions.current_overlaps()).is_ok(),
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
