//! What is remembered of an agent's sessions between lines: folders, replays, tool calls.
//!
//! All of it is bounded, since the agent chooses the ids. Knows no message.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;

use super::call::ToolCallState;
use crate::model::{ActivityKind, SessionId, Usage};

/// Sessions that are remembered. When full, one makes room: first one that only the agent spoke
/// of, then a closed one, then the oldest.
const MOST_SESSIONS: usize = 256;
/// Calls of one session that are remembered; when full, the oldest is forgotten, and what
/// a late update of it names counts as new.
const MOST_CALLS: usize = 1024;
/// Of these, those of past turns that are still remembered when a new one begins, the last ones: late
/// updates come soon, and each takes half a kilobyte and what it names.
const MOST_PAST_CALLS: usize = 32;
/// Compactions of one session that are remembered; when full, the oldest is forgotten.
const MOST_COMPACTIONS: usize = 16;
/// Bytes of what an agent says in a turn that are kept: enough for an error in an answer's stead.
const MOST_SAID: usize = 512;
/// Bytes of the longest id; a longer one is nobody's.
pub(crate) const LONGEST_ID: usize = 1024;

#[derive(Debug)]
pub(crate) struct AcpSession {
    pub(crate) cwd: PathBuf,
    /// The client spoke of it, too.
    pub(crate) announced: bool,
    pub(crate) closed: bool,
    /// `session/load` requests that are not answered.
    loads: usize,
    /// The last count of its context that came before they are.
    counted: Option<Usage>,
    /// Prompts that are not answered.
    running: usize,
    /// Of those that were, the ones whose end the agent has yet to tell.
    taken_in: usize,
    work: Work,
    /// It was loaded, and nothing was asked of it since.
    only_loaded: bool,
    calls: IndexMap<String, ToolCallState>,
    compactions: VecDeque<String>,
    /// In the turn that runs, or the last.
    pub(crate) said: MessageHead,
}

/// What a session of version 2 said of itself since the last prompt.
#[derive(Debug, Default)]
enum Work {
    #[default]
    Unknown,
    Goes,
    /// So, and there are prompts that it has yet to answer.
    Ended(ActivityKind),
}

/// The beginning of what the agent said to its user.
#[derive(Debug, Default)]
pub(crate) struct MessageHead {
    text: String,
    /// There was more.
    is_cut: bool,
}

#[derive(Debug)]
pub(crate) struct AcpSessions {
    default_cwd: PathBuf,
    known: IndexMap<SessionId, AcpSession>,
}

impl MessageHead {
    pub(crate) fn add(&mut self, text: &str) {
        let room = MOST_SAID - self.text.len();
        let fits = text.floor_char_boundary(room);
        self.text.push_str(&text[..fits]);
        self.is_cut |= fits < text.len();
    }

    pub(crate) fn beginning(&self) -> &str {
        &self.text
    }

    /// None if there was more than is kept.
    pub(crate) fn whole(&self) -> Option<&str> {
        (!self.is_cut).then_some(&self.text)
    }
}

impl AcpSessions {
    pub(crate) fn new(default_cwd: PathBuf) -> Self {
        Self { default_cwd, known: IndexMap::new() }
    }

    /// The folder that a session's relative paths are taken against.
    pub(crate) fn cwd(&self, id: &SessionId) -> &Path {
        self.known.get(id).map_or(&self.default_cwd, |session| &session.cwd)
    }

    pub(crate) fn get(&self, id: &SessionId) -> Option<&AcpSession> {
        self.known.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &SessionId) -> Option<&mut AcpSession> {
        self.known.get_mut(id)
    }

    /// The session, remembered from now on.
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
            loads: 0,
            counted: None,
            running: 0,
            taken_in: 0,
            work: Work::Unknown,
            only_loaded: false,
            calls: IndexMap::new(),
            compactions: VecDeque::new(),
            said: MessageHead::default(),
        })
    }

    /// A session for each prompt that was taken in, and will not be heard of again.
    pub(crate) fn at_work(&mut self) -> Vec<SessionId> {
        let mut all = Vec::new();
        for (id, session) in &mut self.known {
            all.extend(std::iter::repeat_n(id.clone(), std::mem::take(&mut session.taken_in)));
        }
        all
    }

    /// Notes that the client opened or named the session; `cwd` if it said where it works.
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
        self.only_loaded = self.running == 0;
    }

    /// Returns the count of its context that the load came to.
    pub(crate) fn load_ended(&mut self) -> Option<Usage> {
        self.loads = self.loads.saturating_sub(1);
        self.counted.take()
    }

    /// Returns a count of its context if it is news. While a session is loaded old counts come
    /// again, smaller ones than were told before: they would look like compactions.
    pub(crate) fn counted(&mut self, usage: Usage) -> Option<Usage> {
        if self.loads == 0 {
            return Some(usage);
        }
        self.counted = Some(usage);
        None
    }

    pub(crate) fn turn_began(&mut self) {
        if self.running == 0 {
            let past = self.calls.len().saturating_sub(MOST_PAST_CALLS);
            self.calls.drain(..past);
            self.calls.shrink_to(2 * MOST_PAST_CALLS);
        }
        self.running += 1;
        self.work = Work::Unknown;
        self.only_loaded = false;
        self.said = MessageHead::default();
    }

    /// Whether more of what the agent says is wanted.
    pub(crate) fn reads_chunks(&self) -> bool {
        self.running > 0 && !self.said.is_cut
    }

    pub(crate) fn turn_ended(&mut self) {
        self.running = self.running.saturating_sub(1);
    }

    pub(crate) fn works(&mut self) {
        self.work = Work::Goes;
    }

    /// Notes a prompt that goes on behind its answer; returns how it ended, if it did before.
    pub(crate) fn taken_in(&mut self) -> Option<ActivityKind> {
        if let Work::Ended(ended) = &self.work {
            return Some(ended.clone());
        }
        self.taken_in += 1;
        None
    }

    /// Returns how many prompts ended so.
    pub(crate) fn idles(&mut self, ended: &ActivityKind) -> usize {
        // Else it is what a session that was resumed says of its past.
        if matches!(self.work, Work::Goes) && self.running > self.taken_in {
            self.work = Work::Ended(ended.clone());
        }
        std::mem::take(&mut self.taken_in)
    }

    /// Whether the tool calls that come are old ones. Some agents replay them only after they
    /// answered the `session/load`, so that it lasts until something new is asked.
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

    /// The call, remembered from now on.
    pub(crate) fn remember_call(&mut self, id: &str) -> &mut ToolCallState {
        if !self.calls.contains_key(id) && self.calls.len() >= MOST_CALLS {
            self.calls.shift_remove_index(0);
        }
        self.calls.entry(id.to_owned()).or_default()
    }

    /// Whether this compaction is heard of for the first time.
    pub(crate) fn compacted(&mut self, id: &str) -> bool {
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
            session.turn_ended();
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
