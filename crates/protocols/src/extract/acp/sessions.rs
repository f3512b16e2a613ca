//! The state of an agent's sessions: folder, replay, turns, tool calls.
//!
//! All of it is bounded, since the agent chooses the ids. Does not know messages.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use super::call::ToolCallState;
use super::heard::{MessageHead, ToldTrouble};
use super::meter::Meter;
use crate::extract::trouble::Trouble;
use crate::model::{ActivityKind, SessionId, Usage};

/// Sessions to keep. When full, an unannounced one makes room, then a closed one, then the oldest.
const MOST_SESSIONS: usize = 256;
/// Calls to keep for one session; when full, the oldest is dropped.
const MOST_CALLS: usize = 1024;
/// Calls of past turns to keep when a new turn begins, the last ones: late updates come soon, and each call
/// takes half a kilobyte and its paths.
const MOST_PAST_CALLS: usize = 32;
/// Compaction ids to keep for one session; when full, the oldest is dropped.
const MOST_COMPACTIONS: usize = 16;
/// Bytes of the longest id; a message with a longer one is ignored.
pub(crate) const LONGEST_ID: usize = 1024;

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct AcpSession {
    pub(crate) cwd: PathBuf,
    /// The client named it, too.
    pub(crate) announced: bool,
    pub(crate) closed: bool,
    /// Its mode is one in which its agent makes model calls that it never reports.
    pub(crate) is_uncounted: bool,
    /// Unanswered `session/load` requests.
    loads: usize,
    /// The last usage that came while a load was running.
    usage_while_loading: Option<Usage>,
    /// Prompts whose turn has not ended.
    running: usize,
    /// Running prompts that the client cancelled: the first ones.
    cancelled: usize,
    /// Prompts of version 2 that were answered but whose turn has not ended.
    accepted: usize,
    work: TurnWork,
    /// The session goes on from another time, and no prompt followed yet: its messages repeat its history.
    only_loaded: bool,
    calls: IndexMap<String, ToolCallState>,
    compactions: VecDeque<String>,
    pub(crate) meter: Meter,
    /// The message of the running turn, or of the last one.
    pub(crate) message: MessageHead,
    /// The trouble that its agent told of since the last prompt.
    pub(crate) told: ToldTrouble,
    /// The running turn, or the last one, has a thought.
    has_thought: bool,
    /// Since the last tool call, where loops are looked for.
    said: Option<MessageHead>,
}

/// The state that a session of version 2 reported since the last prompt.
#[derive(Debug, Default)]
enum TurnWork {
    #[default]
    Unknown,
    Running,
    /// The turn ended this way, before the response to its prompt.
    Ended(ActivityKind),
}

#[derive(Debug)]
pub(crate) struct AcpSessions {
    default_cwd: PathBuf,
    known: IndexMap<SessionId, AcpSession>,
}

impl AcpSessions {
    pub(crate) fn new(default_cwd: PathBuf) -> Self {
        Self { default_cwd, known: IndexMap::new() }
    }

    /// The folder against which a session's relative paths resolve.
    pub(crate) fn cwd(&self, id: &SessionId) -> &Path {
        self.known.get(id).map_or(&self.default_cwd, |session| &session.cwd)
    }

    pub(crate) fn get(&self, id: &SessionId) -> Option<&AcpSession> {
        self.known.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &SessionId) -> Option<&mut AcpSession> {
        self.known.get_mut(id)
    }

    /// The session, created if it is new.
    pub(crate) fn remember(&mut self, id: &SessionId) -> &mut AcpSession {
        if !self.known.contains_key(id) && self.known.len() >= MOST_SESSIONS {
            let known = self.known.values();
            let unannounced = known.clone().position(|session| !session.announced);
            let spare = unannounced.or_else(|| known.clone().position(|session| session.closed));
            self.known.shift_remove_index(spare.unwrap_or(0));
        }
        self.known.entry(id.clone()).or_insert_with(|| AcpSession {
            cwd: self.default_cwd.clone(),
            announced: false,
            closed: false,
            is_uncounted: false,
            loads: 0,
            usage_while_loading: None,
            running: 0,
            cancelled: 0,
            accepted: 0,
            work: TurnWork::Unknown,
            only_loaded: false,
            calls: IndexMap::new(),
            compactions: VecDeque::new(),
            meter: Meter::default(),
            message: MessageHead::default(),
            told: ToldTrouble::default(),
            has_thought: false,
            said: None,
        })
    }

    /// Clears the accepted prompts; returns the session of each.
    pub(crate) fn take_accepted(&mut self) -> Vec<SessionId> {
        let mut all = Vec::new();
        for (id, session) in &mut self.known {
            all.extend(std::iter::repeat_n(id.clone(), std::mem::take(&mut session.accepted)));
        }
        all
    }

    /// Notes that the client opened or named the session, with its folder if the client gave one.
    pub(crate) fn announce(&mut self, id: &SessionId, cwd: Option<&Path>) -> &mut AcpSession {
        let cwd = cwd.map(|cwd| self.default_cwd.join(cwd));
        let session = self.remember(id);
        session.announced = true;
        session.closed = false;
        if let Some(cwd) = cwd {
            session.cwd = cwd;
        }
        session
    }
}

impl AcpSession {
    pub(crate) fn load_began(&mut self) {
        self.loads += 1;
        self.goes_on();
    }

    /// Returns the last usage that came with the load.
    pub(crate) fn load_ended(&mut self) -> Option<Usage> {
        self.loads = self.loads.saturating_sub(1);
        self.usage_while_loading.take()
    }

    /// Notes that it goes on from another time.
    pub(crate) fn goes_on(&mut self) {
        self.only_loaded = self.running == 0;
    }

    /// Returns the usage if it must be reported now. While it is loaded, only the last one counts.
    pub(crate) fn usage_to_report(&mut self, usage: Usage) -> Option<Usage> {
        if self.loads == 0 {
            return Some(usage);
        }
        self.usage_while_loading = Some(usage);
        None
    }

    /// Begins a turn; true if that ends the repetition of its history.
    pub(crate) fn turn_began(&mut self) -> bool {
        if self.running == 0 {
            let past = self.calls.len().saturating_sub(MOST_PAST_CALLS);
            self.calls.drain(..past);
            self.calls.shrink_to(2 * MOST_PAST_CALLS);
        }
        self.running += 1;
        self.work = TurnWork::Unknown;
        self.message = MessageHead::default();
        self.told = ToldTrouble::default();
        self.has_thought = false;
        std::mem::take(&mut self.only_loaded)
    }

    pub(crate) fn note_thought(&mut self) {
        self.has_thought = true;
    }

    /// Whether the running turn has what a model call gave: a tool call, a thought, or words that are no note.
    pub(crate) fn has_output(&self) -> bool {
        self.has_thought
            || self.meter.has_called_tools()
            || self.message.is_cut
            || !Trouble::has_only_notes(&self.message.text)
    }

    /// Takes in a part of the agent's message.
    pub(crate) fn hear(&mut self, text: &str) {
        if !self.message.is_cut {
            self.message.add_to_answer(text);
        }
        if let Some(said) = &mut self.said {
            said.add(text);
        }
    }

    /// Whether more of the agent's message is needed.
    pub(crate) fn reads_chunks(&self) -> bool {
        let said_more = self.said.as_ref().is_some_and(|said| !said.is_cut);
        self.running > 0 && (!self.message.is_cut || said_more)
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running > 0
    }

    /// Notes that the client cancelled what runs.
    pub(crate) fn cancel(&mut self) {
        self.cancelled = self.running;
    }

    /// Ends a turn; true if it was cancelled.
    pub(crate) fn turn_ended(&mut self) -> bool {
        self.running = self.running.saturating_sub(1);
        let was_cancelled = self.cancelled > 0;
        self.cancelled = self.cancelled.saturating_sub(1);
        was_cancelled
    }

    pub(crate) fn set_running(&mut self) {
        self.work = TurnWork::Running;
    }

    /// Notes a prompt answered before its turn ended; returns the turn's end if it came first.
    pub(crate) fn accept_prompt(&mut self) -> Option<ActivityKind> {
        if let TurnWork::Ended(ended) = &self.work {
            return Some(ended.clone());
        }
        self.accepted += 1;
        None
    }

    /// Returns the number of accepted prompts that ended.
    pub(crate) fn set_idle(&mut self, ended: &ActivityKind) -> usize {
        // A resumed session also reports `idle`, for its past.
        if matches!(self.work, TurnWork::Running) && self.running > self.accepted {
            self.work = TurnWork::Ended(ended.clone());
        }
        std::mem::take(&mut self.accepted)
    }

    /// Whether what comes repeats its history. Some agents replay after they answered the
    /// `session/load`, so this lasts until the next prompt.
    pub(crate) fn replays(&self) -> bool {
        self.loads > 0 || self.only_loaded
    }

    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.calls.clear();
        self.compactions.clear();
    }

    pub(crate) fn call(&self, id: &str) -> Option<&ToolCallState> {
        self.calls.get(id)
    }

    pub(crate) fn calls_mut(&mut self) -> impl Iterator<Item = &mut ToolCallState> {
        self.calls.values_mut()
    }

    /// The call, created if it is new.
    pub(crate) fn remember_call(&mut self, id: &str) -> &mut ToolCallState {
        if !self.calls.contains_key(id) && self.calls.len() >= MOST_CALLS {
            self.calls.shift_remove_index(0);
        }
        self.calls.entry(id.to_owned()).or_default()
    }

    /// Notes the next message of a call, for the meter; true if it is the first.
    pub(crate) fn note_call(&mut self, id: &str) -> bool {
        let is_new = self.running > 0 && !self.calls.contains_key(id);
        if is_new {
            self.meter.tool_call_began(id);
        }
        is_new
    }

    /// The agent's message since its last tool call, if there is one and it was not cut.
    pub(crate) fn take_said(&mut self) -> Option<String> {
        let said = std::mem::take(self.said.as_mut()?);
        (!said.is_cut && !said.text.trim().is_empty()).then_some(said.text)
    }

    /// Has its messages read, for finding loops.
    pub(crate) fn read_messages(&mut self) {
        self.said.get_or_insert_default();
    }

    /// Notes that a call is over.
    pub(crate) fn note_call_end(&mut self, id: &str) {
        self.meter.tool_call_ended(id);
    }

    /// Notes a compaction; false if it is known.
    pub(crate) fn is_new_compaction(&mut self, id: &str) -> bool {
        if self.compactions.iter().any(|known| known == id) {
            return false;
        }
        if self.compactions.len() == MOST_COMPACTIONS {
            self.compactions.pop_front();
        }
        self.compactions.push_back(id.to_owned());
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn of_past_turns_the_last_calls_are_remembered() {
        let mut sessions = AcpSessions::new(PathBuf::from("/w"));
        let session = sessions.remember(&SessionId::new("s"));
        for turn in 0..100 {
            session.turn_began();
            for call in 0..20 {
                session.remember_call(&format!("{turn}-{call}"));
            }
            assert!(session.calls.len() <= MOST_PAST_CALLS + 20, "{}", session.calls.len());
            assert!(!session.turn_ended());
        }
        assert!(session.call("99-0").is_some() && session.call("98-19").is_some());
        assert!(session.call("97-0").is_none());
        // A prompt beside one that runs forgets nothing.
        session.turn_began();
        (0..100).for_each(|call| drop(session.remember_call(&format!("many-{call}")).clone()));
        session.turn_began();
        assert!(session.call("many-0").is_some());
    }
}
