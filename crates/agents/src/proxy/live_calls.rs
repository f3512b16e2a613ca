//! The running turns of one agent, and the text of their tool calls and terminals. Written by the
//! relay; read from any thread.

mod call_text;
mod write_context;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use indexmap::IndexMap;
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::call_text::CallText;
pub use self::write_context::WriteContext;
use self::write_context::{Ended, WriteCall};
use crate::model::{Action, Activity, ActivityKind, SessionId};

/// Calls and terminals that are kept, and the bytes of their text; beyond either the oldest is
/// dropped, and paths that only it named count as not asked for.
const MOST_CALLS: usize = 256;
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// Accesses of one turn that are withheld; beyond this a permission is judged by the zone alone.
const MOST_WITHHELD: usize = 256;
/// Updates that wait for a slow subscriber; beyond this it must read all calls again.
const UPDATES: usize = 64;

#[derive(Debug)]
pub struct LiveCalls {
    now: Mutex<Now>,
    /// Whether any turn withholds an access: checked whenever a file is opened.
    withholds: AtomicBool,
    /// The number of turns that began or ended.
    changes: AtomicU64,
    /// The same, with tool calls.
    epoch: AtomicU64,
    updates: broadcast::Sender<Arc<CallText>>,
    stopped: CancellationToken,
}

/// The turns to which an access may belong.
#[derive(Clone, Debug)]
pub struct TurnContext {
    /// The session of the only running turn; empty if none or several run.
    pub session: SessionId,
    /// The turn's number, unique within one run of the agent; 0 without `session`.
    pub turn: u64,
    /// When the first of the running turns began.
    pub began: Option<Instant>,
    /// One for each running turn, cancelled when the turn ends or is cancelled.
    over: Vec<CancellationToken>,
    stopped: CancellationToken,
}

/// A path that a call may have named.
#[derive(Clone, Copy, Debug)]
pub struct NamedPath<'a> {
    /// As the wire shows it.
    pub wire: &'a str,
    /// Absolute and real.
    pub workspace: &'a Path,
}

#[derive(Default, Debug)]
struct Now {
    /// The running turns.
    turns: IndexMap<SessionId, Turn>,
    last_turn: u64,
    /// When the agent was prompted first.
    prompted: Option<Instant>,
    calls: IndexMap<(SessionId, Arc<str>), RunningCall>,
    bytes: usize,
    ended: Ended,
}

#[derive(Clone, Debug)]
struct RunningCall {
    said: Arc<CallText>,
    began: Instant,
}

#[derive(Debug)]
struct Turn {
    /// Prompts of the session that overlap.
    prompts: usize,
    number: u64,
    began: Instant,
    over: CancellationToken,
    /// Accesses outside the zone, by real paths, for which permission was asked.
    withheld: Vec<(PathBuf, Action)>,
}

impl Default for LiveCalls {
    fn default() -> Self {
        Self {
            now: Mutex::default(),
            withholds: AtomicBool::default(),
            changes: AtomicU64::default(),
            epoch: AtomicU64::default(),
            updates: broadcast::channel(UPDATES).0,
            stopped: CancellationToken::default(),
        }
    }
}

impl LiveCalls {
    /// Updates the turns and calls by an activity.
    pub fn update(&self, activity: &Activity) {
        let Activity { session, kind } = activity;
        if matches!(kind, ActivityKind::TurnBegan | ActivityKind::TurnEnded { .. }) {
            self.changes.fetch_add(1, Ordering::Relaxed);
            self.epoch.fetch_add(1, Ordering::Relaxed);
        }
        match kind {
            ActivityKind::TurnBegan => self.now.lock().began(session),
            ActivityKind::TurnEnded { .. } => {
                let mut now = self.now.lock();
                now.ended(session);
                let withholds = now.turns.values().any(|turn| !turn.withheld.is_empty());
                self.withholds.store(withholds, Ordering::Relaxed);
            }
            ActivityKind::CancelRequested => {
                if let Some(turn) = self.now.lock().turns.get(session) {
                    turn.over.cancel();
                }
            }
            ActivityKind::Runs { call, cwd, said } => {
                let (said, is_new) = self.now.lock().runs(session, call, cwd, said);
                if is_new {
                    self.epoch.fetch_add(1, Ordering::Relaxed);
                }
                if let Some(said) = said {
                    // There may be no subscriber.
                    let _ = self.updates.send(said);
                }
            }
            ActivityKind::Ran { call, .. } => {
                self.now.lock().forget(session, call);
                self.epoch.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }

    /// Ends all waits for this agent.
    pub fn stop(&self) {
        self.stopped.cancel();
    }

    /// Withholds an access from all processes of the agent until the turn ends, though the kernel
    /// would allow it: its permission was forwarded for the kernel to refuse. False if no turn runs
    /// or too many accesses are withheld.
    pub fn withhold(&self, session: &SessionId, real: &Path, action: Action) -> bool {
        let mut now = self.now.lock();
        let Some(turn) = now.turns.get_mut(session) else { return false };
        let access = (real.to_owned(), action);
        if !turn.withheld.contains(&access) {
            if turn.withheld.len() >= MOST_WITHHELD {
                return false;
            }
            turn.withheld.push(access);
        }
        self.withholds.store(true, Ordering::Relaxed);
        true
    }

    /// Whether an access to a real path is withheld.
    pub fn withholds(&self, real: &Path, action: Action) -> bool {
        self.withholds.load(Ordering::Relaxed)
            && self
                .now
                .lock()
                .turns
                .values()
                .any(|turn| turn.withheld.iter().any(|(path, of)| *of == action && path == real))
    }

    /// Changes whenever a turn begins or ends.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Changes whenever a turn or a tool call begins or ends.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// The session and tool call that a write of a path made at a time belongs to, as far as
    /// they are certain: of one turn or call, or of the one that names the path. May resolve links
    /// on the disk.
    pub fn write_context(&self, place: NamedPath<'_>, at: Instant) -> WriteContext {
        let (turns, calls) = {
            let now = self.now.lock();
            (now.turns.keys().cloned().collect::<Vec<_>>(), now.all_calls())
        };
        write_context::write_context(place, at, &turns, &calls)
    }

    /// The tool call of such a write in a session, whose turn may have ended.
    pub fn tool_call(
        &self,
        session: &SessionId,
        place: NamedPath<'_>,
        at: Instant,
    ) -> Option<Arc<str>> {
        let calls = self.now.lock().all_calls();
        write_context::tool_call(session, place, at, &calls)
    }

    /// How long a tool call of a session has run.
    pub fn since(&self, session: &SessionId, call: &str) -> Option<Duration> {
        let now = self.now.lock();
        Some(now.calls.get(&(session.clone(), call.into()))?.began.elapsed())
    }

    /// The turns to which an access made now may belong.
    pub fn moment(&self) -> TurnContext {
        let now = self.now.lock();
        let over = now.turns.values().map(|turn| turn.over.clone()).collect();
        let began = now.turns.values().map(|turn| turn.began).min();
        let stopped = self.stopped.clone();
        let (session, turn) = match now.turns.iter().next() {
            Some((session, turn)) if now.turns.len() == 1 => (session.clone(), turn.number),
            _ => (SessionId::new(""), 0),
        };
        TurnContext { session, turn, began, over, stopped }
    }

    /// When the agent was prompted first, in this run of it.
    pub fn prompted(&self) -> Option<Instant> {
        self.now.lock().prompted
    }

    /// Whether a tool call or terminal runs.
    pub fn has_running(&self) -> bool {
        // A prompt counts as a call for what it names.
        self.now.lock().calls.keys().any(|(_, call)| !call.starts_with("prompt "))
    }

    /// Whether a running tool call or terminal names the path. May resolve links on the disk.
    pub fn names(&self, place: NamedPath<'_>) -> bool {
        let calls: Vec<_> = self.now.lock().calls.values().cloned().collect();
        calls.iter().any(|call| call.said.names(place))
    }

    /// The file that a temporary one at this path will replace, if a running tool call names it.
    pub fn names_beside(&self, place: NamedPath<'_>) -> Option<PathBuf> {
        let calls: Vec<_> = self.now.lock().calls.values().cloned().collect();
        calls.iter().rev().find_map(|call| call.said.names_beside(place))
    }

    /// The path below a folder that is not there, if a running tool call names one.
    pub fn names_below(&self, folder: NamedPath<'_>) -> Option<PathBuf> {
        let calls: Vec<_> = self.now.lock().calls.values().cloned().collect();
        calls.iter().rev().find_map(|call| call.said.names_below(folder))
    }

    /// Subscribes to updates of tool calls and terminals, each with the whole text so far.
    pub fn news(&self) -> broadcast::Receiver<Arc<CallText>> {
        self.updates.subscribe()
    }
}

impl TurnContext {
    /// Waits until all these turns have ended or were cancelled, or the agent stops; without a turn
    /// only the latter.
    pub async fn over(&self) {
        let turns = async {
            if self.over.is_empty() {
                std::future::pending::<()>().await;
            }
            for turn in &self.over {
                turn.cancelled().await;
            }
        };
        tokio::select! {
            () = self.stopped.cancelled() => {}
            () = turns => {}
        }
    }
}

impl Now {
    fn began(&mut self, session: &SessionId) {
        self.last_turn += 1;
        self.ended.forget(session);
        let number = self.last_turn;
        self.prompted.get_or_insert_with(Instant::now);
        let turn = self.turns.entry(session.clone()).or_insert_with(|| Turn {
            prompts: 0,
            number,
            began: Instant::now(),
            over: CancellationToken::new(),
            withheld: Vec::new(),
        });
        turn.prompts += 1;
    }

    fn ended(&mut self, session: &SessionId) {
        let Some(turn) = self.turns.get_mut(session) else { return };
        turn.over.cancel();
        turn.prompts -= 1;
        if turn.prompts > 0 {
            self.last_turn += 1;
            turn.number = self.last_turn;
            turn.over = CancellationToken::new();
            return;
        }
        self.turns.shift_remove(session);
        let calls: Vec<_> = self.calls.keys().filter(|(of, _)| of == session).cloned().collect();
        for (session, call) in calls {
            self.forget(&session, &call);
        }
    }

    /// The calls that run, and those that have ended.
    fn all_calls(&self) -> Vec<WriteCall> {
        let running = self.calls.iter().map(|((session, id), call)| WriteCall {
            session: session.clone(),
            id: Arc::clone(id),
            said: Arc::clone(&call.said),
            began: call.began,
            ended: None,
        });
        running.chain(self.ended.calls()).collect()
    }

    /// Adds to the text of a call; returns it if it grew, and whether the call is new.
    fn runs(
        &mut self,
        session: &SessionId,
        call: &Arc<str>,
        cwd: &Arc<Path>,
        said: &[Arc<str>],
    ) -> (Option<Arc<CallText>>, bool) {
        let key = (session.clone(), Arc::clone(call));
        let known = self.calls.get(&key);
        let is_new = known.is_none();
        let more = match known {
            Some(known) => known.said.with(cwd, said),
            None => Some(CallText::new(Arc::clone(cwd), said)),
        };
        let Some(more) = more.map(Arc::new) else { return (None, is_new) };
        self.bytes += more.bytes();
        let began = known.map_or_else(Instant::now, |known| known.began);
        let call = RunningCall { said: Arc::clone(&more), began };
        if let Some(before) = self.calls.insert(key, call) {
            self.bytes -= before.said.bytes();
        }
        while self.calls.len() > MOST_CALLS || self.bytes > MOST_BYTES {
            let Some((_, oldest)) = self.calls.shift_remove_index(0) else { break };
            self.bytes -= oldest.said.bytes();
        }
        (Some(more), is_new)
    }

    fn forget(&mut self, session: &SessionId, call: &Arc<str>) {
        let key = (session.clone(), Arc::clone(call));
        if let Some(RunningCall { said, began }) = self.calls.shift_remove(&key) {
            self.bytes -= said.bytes();
            let (session, id) = key;
            self.ended.add(WriteCall { session, id, said, began, ended: None });
        }
    }
}
