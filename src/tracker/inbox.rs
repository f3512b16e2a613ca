//! What was told and not yet taken in. Whoever tells never waits: what comes twice is merged, and
//! past its bound an agent's news are left out. Knows nothing of what the map does with them.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use tokio::sync::{Notify, oneshot};
use tracing::warn;

use super::session_input::{SessionInput, Weight};
use super::{SessionReport, Snapshots, Symbols};
use crate::model::{AgentId, SessionKey, TimestampMs, UsageReport};

/// Waiting news of one agent, in bytes; of its `session/update`s as many again. Past it touches,
/// usages and compactions (and updates) are left out, counted and logged. What a client's own
/// requests cause (sessions opened and closed, turns begun and ended) is always taken.
const AGENT_BYTES: usize = 16 << 20;

/// What a message takes beside its text, in bytes.
const MESSAGE_BYTES: usize = 256;

/// A path or a session's id that is longer, in bytes, is left out like what has no room.
const TEXT_BYTES: usize = 4_096;

/// Files that the disk told of and that wait. Past it they are left out: a watcher that tells of so
/// many sees no agent's work.
const MOST_ON_DISK: usize = 100_000;

#[derive(Default)]
pub(super) struct Inbox {
    waiting: Mutex<Waiting>,
    filled: Notify,
}

#[derive(Debug)]
pub(super) enum Message {
    Input(SessionKey, SessionInput, TimestampMs),
    /// The session that shows the orchestrator's view.
    Orchestrate(SessionKey),
    /// The agent left the team.
    Forget(AgentId),
    /// Who knows the symbols of files.
    Join(Arc<dyn Symbols>),
    /// The disk shows that a file was written, nobody knows by whom.
    DiskWrote(Arc<str>, TimestampMs),
    Ask(Ask),
}

/// Answered when all messages before are taken in and published.
#[derive(Debug)]
pub(super) enum Ask {
    Settled(oneshot::Sender<()>),
    Snapshots(oneshot::Sender<Snapshots>),
    Usages(oneshot::Sender<Vec<UsageReport>>),
    Sessions(oneshot::Sender<Vec<SessionReport>>),
}

#[derive(Default)]
struct Waiting {
    /// Nobody takes anything out any more.
    is_closed: bool,
    messages: Vec<Message>,
    on_disk: IndexMap<Arc<str>, TimestampMs>,
    sessions: HashMap<SessionKey, Mergeable>,
    agents: HashMap<AgentId, Load>,
}

/// Places of a session's messages that later ones can be merged into: those since its last event
/// whose order matters.
#[derive(Default)]
struct Mergeable {
    touched: HashMap<Arc<str>, usize>,
    usage: Option<usize>,
}

#[derive(Default)]
struct Load {
    bytes: usize,
    update_bytes: usize,
    left_out: u64,
}

impl Inbox {
    pub(super) fn push_input(&self, key: SessionKey, input: SessionInput, at: TimestampMs) {
        self.push_inputs(std::iter::once((key, input)), at);
    }

    /// Tells what came together, and wakes whoever takes it out once.
    pub(super) fn push_inputs(
        &self,
        all: impl IntoIterator<Item = (SessionKey, SessionInput)>,
        at: TimestampMs,
    ) {
        let mut waiting = self.lock();
        if !waiting.is_closed {
            all.into_iter().for_each(|(key, input)| waiting.tell(key, input, at));
            drop(waiting);
            self.filled.notify_one();
        }
    }

    pub(super) fn orchestrate(&self, key: SessionKey) {
        self.push(Message::Orchestrate(key));
    }

    pub(super) fn forget(&self, agent: AgentId) {
        self.push(Message::Forget(agent));
    }

    pub(super) fn join(&self, symbols: Arc<dyn Symbols>) {
        self.push(Message::Join(symbols));
    }

    pub(super) fn disk_wrote(&self, path: Arc<str>, at: TimestampMs) {
        let mut waiting = self.lock();
        let is_known = waiting.on_disk.contains_key(&path);
        if !waiting.is_closed && (is_known || waiting.on_disk.len() < MOST_ON_DISK) {
            waiting.on_disk.insert(path, at);
            drop(waiting);
            self.filled.notify_one();
        }
    }

    /// After [`Self::close`] the asker's channel closes with no answer.
    pub(super) fn ask(&self, ask: Ask) {
        self.push(Message::Ask(ask));
    }

    /// Waits until there may be messages.
    pub(super) async fn filled(&self) {
        self.filled.notified().await;
    }

    /// Takes all messages out, in order; what the disk told comes first, since with what agents
    /// tell of it order does not matter.
    pub(super) fn take(&self) -> Vec<Message> {
        let mut waiting = self.lock();
        let taken = mem::take(&mut *waiting);
        waiting.is_closed = taken.is_closed;
        drop(waiting);
        for (agent, load) in taken.agents {
            if load.left_out > 0 {
                let left_out = load.left_out;
                warn!(%agent, left_out, "news left out: too many at a time, or too long");
            }
        }
        let on_disk = taken.on_disk.into_iter();
        let on_disk = on_disk.map(|(path, at)| Message::DiskWrote(path, at));
        on_disk.chain(taken.messages).collect()
    }

    /// Takes no more messages and forgets those that wait.
    pub(super) fn close(&self) {
        *self.lock() = Waiting { is_closed: true, ..Waiting::default() };
    }

    fn push(&self, message: Message) {
        let mut waiting = self.lock();
        if !waiting.is_closed {
            waiting.messages.push(message);
            drop(waiting);
            self.filled.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Whatever panicked left at worst one message out.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn tell(&mut self, key: SessionKey, input: SessionInput, at: TimestampMs) {
        if self.merge(&key, &input, at) {
            return;
        }
        let load = self.agents.entry(key.agent.clone()).or_default();
        if is_too_long(&key, &input) || !load.take_room(&key, &input) {
            load.left_out += 1;
            return;
        }
        let place = self.messages.len();
        let mergeable = self.sessions.entry(key.clone()).or_default();
        match &input {
            SessionInput::Touched { path, .. } => {
                mergeable.touched.insert(Arc::clone(path), place);
            }
            // It may tell of a compaction, so that it matters what was touched before.
            SessionInput::Usage { .. } => {
                *mergeable = Mergeable { usage: Some(place), ..Mergeable::default() };
            }
            SessionInput::Opened
            | SessionInput::Closed
            | SessionInput::Compacted
            | SessionInput::TurnBegan
            | SessionInput::TurnEnded { .. } => *mergeable = Mergeable::default(),
            SessionInput::Wrote { .. } | SessionInput::Model(_) | SessionInput::Update(_) => {}
        }
        self.messages.push(Message::Input(key, input, at));
    }

    /// Adds `told` to a message that waits; false if there is none for it.
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
        let Some(Message::Input(_, earlier, earlier_at)) = waiting else { return false };
        match (earlier, input) {
            (
                SessionInput::Touched { written: by_then, .. },
                SessionInput::Wrote { written, .. },
            ) => {
                *by_then = by_then.and(*written);
                // No touch of its own, whose time would count.
                return true;
            }
            (
                SessionInput::Touched {
                    touch: last,
                    weight: weightiest,
                    lines: known,
                    edited: known_edited,
                    written: by_then,
                    ..
                },
                SessionInput::Touched { touch, weight, lines, edited, written, .. },
            ) => match (*weightiest, *weight) {
                // It is in context by then, and told already.
                (Weight::Accessed, Weight::Glimpsed) => return true,
                // What comes of it depends on whether it is in context.
                (Weight::Marked, Weight::Glimpsed) => return false,
                _ => {
                    *last = *touch;
                    *weightiest = (*weightiest).max(*weight);
                    known.extend(lines);
                    if let Some(edited) = edited {
                        known_edited.get_or_insert_default().extend(edited);
                    }
                    *by_then = by_then.and(*written);
                }
            },
            // Fewer tokens may be a compaction, which would be lost.
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
    /// Takes room for `told`; false if there is none. One message may exceed the bound, so that an
    /// update longer than it is not left out for that alone.
    fn take_room(&mut self, key: &SessionKey, input: &SessionInput) -> bool {
        let (bytes, text) = match input {
            SessionInput::Opened
            | SessionInput::Closed
            | SessionInput::TurnBegan
            | SessionInput::TurnEnded { .. } => return true,
            SessionInput::Touched { path, lines, .. } => {
                (&mut self.bytes, path.len() + 2 * size_of_val(lines.ranges()))
            }
            SessionInput::Wrote { path, .. } => (&mut self.bytes, path.len()),
            SessionInput::Model(model) => (&mut self.bytes, model.id.len() + model.name.len()),
            SessionInput::Usage { .. } | SessionInput::Compacted => (&mut self.bytes, 0),
            SessionInput::Update(update) => (&mut self.update_bytes, update.len()),
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
