//! The tracker's inbox. Senders never wait: repeated inputs are merged, and inputs over an agent's
//! bound are dropped. Does not interpret them.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tracing::warn;

use super::session_input::{SessionInput, Weight};
use super::{SessionReport, Snapshots, Symbols};
use crate::model::{AgentId, Overlap, SessionKey, TimestampMs, UsageReport};

/// Bytes of one agent's waiting inputs, and of its waiting `session/update`s. Over it, touches,
/// usages, compactions and updates are dropped, counted and logged. Inputs caused by the client's
/// requests (sessions opened and closed, turns begun and ended) are always accepted.
const AGENT_BYTES: usize = 16 << 20;

/// Bytes of a message without its text.
const MESSAGE_BYTES: usize = 256;

/// Bytes of the longest path and session id; inputs with longer ones are dropped.
const TEXT_BYTES: usize = 4_096;

/// Inputs of one agent that are held back, and bytes of their texts. Beyond this, all of them pass.
const MOST_HELD: usize = 100_000;
const MOST_HELD_BYTES: usize = 16 << 20;

/// Waiting writes seen on the disk. Over it they are dropped: so many are not an agent's work.
const MOST_ON_DISK: usize = 100_000;

#[derive(Default)]
pub(super) struct Inbox {
    waiting: Mutex<Waiting>,
    filled: Notify,
}

#[derive(Debug)]
pub(super) enum TrackerMsg {
    Input(SessionKey, SessionInput, TimestampMs),
    /// The session that shows the orchestrator's view.
    Orchestrate(SessionKey),
    /// The agent left the team.
    Forget(AgentId),
    /// The source of the symbols of files.
    Join(Arc<dyn Symbols>),
    /// The turns of sessions before this run.
    GoOnBehind(HashMap<SessionKey, u64>),
    /// A write seen on the disk, whose author is not known.
    DiskWrote(Arc<str>, TimestampMs),
    /// The number of the agent's inputs that were dropped.
    Dropped(AgentId, u64),
    Query(Query),
}

/// Answered after all earlier messages are applied and published.
#[derive(Debug)]
pub(super) enum Query {
    Settled(oneshot::Sender<()>),
    Snapshots(oneshot::Sender<Snapshots>),
    Usages(oneshot::Sender<Vec<UsageReport>>),
    Sessions(oneshot::Sender<Vec<SessionReport>>),
    Overlaps(oneshot::Sender<Vec<Overlap>>),
}

#[derive(Default)]
struct Waiting {
    /// The task has ended.
    is_closed: bool,
    messages: Vec<TrackerMsg>,
    on_disk: IndexMap<Arc<str>, TimestampMs>,
    sessions: HashMap<SessionKey, Mergeable>,
    agents: HashMap<AgentId, Load>,
    held: HashMap<AgentId, HeldInputs>,
}

/// Inputs of an agent that are held back.
#[derive(Default)]
struct HeldInputs {
    holds: usize,
    inputs: Vec<(SessionKey, SessionInput, TimestampMs)>,
    bytes: usize,
}

/// Indexes of a session's messages since its last ordered input, to merge later ones into.
#[derive(Default)]
struct Mergeable {
    touched: HashMap<Arc<str>, usize>,
    usage: Option<usize>,
}

#[derive(Default)]
struct Load {
    bytes: usize,
    update_bytes: usize,
    dropped: u64,
}

impl Inbox {
    pub(super) fn push_input(&self, key: SessionKey, input: SessionInput, at: TimestampMs) {
        self.push_inputs(std::iter::once((key, input)), at);
    }

    /// Adds several inputs, and wakes the task once.
    pub(super) fn push_inputs(
        &self,
        all: impl IntoIterator<Item = (SessionKey, SessionInput)>,
        at: TimestampMs,
    ) {
        let mut waiting = self.waiting.lock();
        if !waiting.is_closed {
            all.into_iter().for_each(|(key, input)| waiting.hold_or_push(key, input, at));
            drop(waiting);
            self.filled.notify_one();
        }
    }

    /// Adds an input before those that are held back.
    pub(super) fn push_ahead(&self, key: SessionKey, input: SessionInput, at: TimestampMs) {
        let mut waiting = self.waiting.lock();
        if !waiting.is_closed {
            waiting.push_input(key, input, at);
            drop(waiting);
            self.filled.notify_one();
        }
    }

    /// Holds the inputs of an agent back, until as many calls of [`Self::release`].
    pub(super) fn hold(&self, agent: &AgentId) {
        self.waiting.lock().held.entry(agent.clone()).or_default().holds += 1;
    }

    pub(super) fn release(&self, agent: &AgentId) {
        let mut waiting = self.waiting.lock();
        let Some(held) = waiting.held.get_mut(agent) else { return };
        held.holds -= 1;
        if held.holds == 0
            && let Some(held) = waiting.held.remove(agent)
            && !waiting.is_closed
        {
            held.inputs.into_iter().for_each(|(key, input, at)| waiting.push_input(key, input, at));
            drop(waiting);
            self.filled.notify_one();
        }
    }

    pub(super) fn orchestrate(&self, key: SessionKey) {
        self.push(TrackerMsg::Orchestrate(key));
    }

    pub(super) fn forget(&self, agent: AgentId) {
        self.push(TrackerMsg::Forget(agent));
    }

    pub(super) fn join(&self, symbols: Arc<dyn Symbols>) {
        self.push(TrackerMsg::Join(symbols));
    }

    pub(super) fn go_on_behind(&self, turns: HashMap<SessionKey, u64>) {
        self.push(TrackerMsg::GoOnBehind(turns));
    }

    pub(super) fn disk_wrote(&self, path: Arc<str>, at: TimestampMs) {
        let mut waiting = self.waiting.lock();
        let is_known = waiting.on_disk.contains_key(&path);
        if !waiting.is_closed && (is_known || waiting.on_disk.len() < MOST_ON_DISK) {
            waiting.on_disk.insert(path, at);
            drop(waiting);
            self.filled.notify_one();
        }
    }

    /// After [`Self::close`] the reply channel closes without an answer.
    pub(super) fn query(&self, query: Query) {
        self.push(TrackerMsg::Query(query));
    }

    /// Waits until there may be messages.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Takes all messages out, in order; writes seen on the disk come first, since their order
    /// against agents' claims does not matter.
    pub(super) fn take(&self) -> Vec<TrackerMsg> {
        let mut waiting = self.waiting.lock();
        let taken = mem::take(&mut *waiting);
        waiting.is_closed = taken.is_closed;
        waiting.held = taken.held;
        drop(waiting);
        let mut messages = taken.messages;
        for (agent, load) in taken.agents {
            if load.dropped > 0 {
                let dropped = load.dropped;
                warn!(%agent, dropped, "activities dropped: too many at a time, or too long");
                messages.push(TrackerMsg::Dropped(agent, dropped));
            }
        }
        let on_disk = taken.on_disk.into_iter();
        let on_disk = on_disk.map(|(path, at)| TrackerMsg::DiskWrote(path, at));
        on_disk.chain(messages).collect()
    }

    /// Rejects further messages and drops the waiting ones.
    pub(super) fn close(&self) {
        *self.waiting.lock() = Waiting { is_closed: true, ..Waiting::default() };
    }

    fn push(&self, message: TrackerMsg) {
        let mut waiting = self.waiting.lock();
        if !waiting.is_closed {
            waiting.messages.push(message);
            drop(waiting);
            self.filled.notify_one();
        }
    }
}

impl Waiting {
    fn hold_or_push(&mut self, key: SessionKey, input: SessionInput, at: TimestampMs) {
        let held = if self.held.is_empty() { None } else { self.held.get_mut(&key.agent) };
        let Some(held) = held else { return self.push_input(key, input, at) };
        held.bytes += match &input {
            SessionInput::Update(update) => update.len(),
            SessionInput::Record(record) => record.text_bytes(),
            _ => 0,
        };
        held.inputs.push((key, input, at));
        if held.inputs.len() > MOST_HELD || held.bytes > MOST_HELD_BYTES {
            held.bytes = 0;
            for (key, input, at) in mem::take(&mut held.inputs) {
                self.push_input(key, input, at);
            }
        }
    }

    fn push_input(&mut self, key: SessionKey, input: SessionInput, at: TimestampMs) {
        if self.merge(&key, &input, at) {
            return;
        }
        let load = self.agents.entry(key.agent.clone()).or_default();
        if is_too_long(&key, &input) || !load.take_room(&key, &input) {
            load.dropped += 1;
            return;
        }
        let place = self.messages.len();
        let mergeable = self.sessions.entry(key.clone()).or_default();
        match &input {
            SessionInput::Touched { path, .. } => {
                mergeable.touched.insert(Arc::clone(path), place);
            }
            // It may mean a compaction: touches must not move across it.
            SessionInput::Usage { .. } => {
                *mergeable = Mergeable { usage: Some(place), ..Mergeable::default() };
            }
            SessionInput::Opened { .. }
            | SessionInput::Closed
            | SessionInput::Compacted
            | SessionInput::TurnBegan
            | SessionInput::TurnEnded { .. } => *mergeable = Mergeable::default(),
            SessionInput::Wrote { .. }
            | SessionInput::Spent(..)
            | SessionInput::Looped(_)
            | SessionInput::Model(_)
            | SessionInput::Update(_)
            | SessionInput::Record(_) => {}
        }
        self.messages.push(TrackerMsg::Input(key, input, at));
    }

    /// Merges `input` into a waiting message; false if none fits.
    fn merge(&mut self, key: &SessionKey, input: &SessionInput, at: TimestampMs) -> bool {
        let Some(mergeable) = self.sessions.get(key) else { return false };
        let place = match input {
            SessionInput::Touched { path, .. } | SessionInput::Wrote { path, .. } => {
                mergeable.touched.get(path).copied()
            }
            SessionInput::Usage { .. } => mergeable.usage,
            _ => None,
        };
        let waiting = place.and_then(|place| self.messages.get_mut(place));
        let Some(TrackerMsg::Input(_, earlier, earlier_at)) = waiting else { return false };
        match (earlier, input) {
            (
                SessionInput::Touched { written: known_written, .. },
                SessionInput::Wrote { written, .. },
            ) => {
                *known_written = known_written.and(*written);
                // A write is no touch: the time stays.
                return true;
            }
            (
                SessionInput::Touched {
                    touch: last,
                    weight: weightiest,
                    lines: known,
                    edited: known_edited,
                    written: known_written,
                    ..
                },
                SessionInput::Touched { touch, weight, lines, edited, written, .. },
            ) => match (*weightiest, *weight) {
                // The access already includes it.
                (Weight::Accessed, Weight::Glimpsed) => return true,
                // The effect of a glimpse depends on the context.
                (Weight::Marked, Weight::Glimpsed) => return false,
                _ => {
                    *last = *touch;
                    *weightiest = (*weightiest).max(*weight);
                    known.extend(lines);
                    if let Some(edited) = edited {
                        known_edited.get_or_insert_default().extend(edited);
                    }
                    *known_written = known_written.and(*written);
                }
            },
            // Fewer tokens may mean a compaction, which a merge would lose.
            (SessionInput::Usage { usage: last, .. }, SessionInput::Usage { usage, .. })
                if usage.used >= last.used =>
            {
                last.clone_from(usage);
            }
            _ => return false,
        }
        *earlier_at = at;
        true
    }
}

impl Load {
    /// Reserves room for `input`; false if there is no room. One message may exceed the bound, so
    /// that a single long update still fits.
    fn take_room(&mut self, key: &SessionKey, input: &SessionInput) -> bool {
        let (bytes, text) = match input {
            SessionInput::Opened { .. }
            | SessionInput::Closed
            | SessionInput::TurnBegan
            | SessionInput::TurnEnded { .. } => return true,
            SessionInput::Touched { path, lines, .. } => {
                (&mut self.bytes, path.len() + 2 * size_of_val(lines.ranges()))
            }
            SessionInput::Wrote { path, .. } => (&mut self.bytes, path.len()),
            SessionInput::Model(model) => (&mut self.bytes, model.id.len() + model.name.len()),
            SessionInput::Usage { .. }
            | SessionInput::Compacted
            | SessionInput::Spent(..)
            | SessionInput::Looped(_) => (&mut self.bytes, 0),
            SessionInput::Update(update) => (&mut self.update_bytes, update.len()),
            SessionInput::Record(record) => (&mut self.update_bytes, record.text_bytes()),
        };
        let has_room = *bytes < AGENT_BYTES;
        if has_room {
            *bytes += text + key.session.as_str().len() + MESSAGE_BYTES;
        }
        has_room
    }
}

fn is_too_long(key: &SessionKey, input: &SessionInput) -> bool {
    let path = match input {
        SessionInput::Touched { path, .. } | SessionInput::Wrote { path, .. } => path.len(),
        _ => 0,
    };
    path > TEXT_BYTES || key.session.as_str().len() > TEXT_BYTES
}

#[cfg(test)]
mod tests;
