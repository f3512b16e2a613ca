//! Continuations of one agent's sessions: the agent's session that goes on under another's name
//! after a rewind, and the document that a session gets in front of its next prompt. Outlives the
//! agent's runs.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use indexmap::IndexMap;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::line::{lines, readable};
use crate::model::{Fork, SessionId};

/// Awaited answers; beyond this the oldest is forgotten, and its session is an ordinary one.
const MOST_EXPECTED: usize = 64;

/// Sessions of the agent that go under another name.
const MOST_NAMES: usize = 4_096;

/// Documents that wait for a prompt; beyond this the oldest is forgotten.
const MOST_DOCUMENTS: usize = 256;

/// The sessions of one agent that continue others.
#[derive(Debug, Default)]
pub struct Branches {
    /// Lines must be read for the names in them.
    is_used: AtomicBool,
    state: Mutex<BranchState>,
}

/// The purpose of a session that the agent must open.
#[derive(Clone, Debug)]
pub enum Opening {
    /// The session begins as a fork.
    Fork(Fork),
    /// The session goes on under the name of this session.
    Behind(SessionId),
}

#[derive(Debug, Default)]
struct BranchState {
    /// By the id of the request.
    expected: IndexMap<u64, Opening>,
    /// Sessions of the agent, and the names under which they go.
    names: HashMap<SessionId, SessionId>,
    /// The session of the agent that a name means.
    behind: HashMap<SessionId, SessionId>,
    documents: IndexMap<SessionId, Value>,
}

impl Branches {
    /// Notes the purpose of the session that the answer to the request `id` will name.
    pub fn expect(&self, id: u64, opening: Opening) {
        let mut state = self.state.lock();
        if state.expected.len() >= MOST_EXPECTED {
            state.expected.shift_remove_index(0);
        }
        state.expected.insert(id, opening);
        self.is_used.store(true, Ordering::Release);
    }

    /// Whether a further session may go under another name.
    pub fn has_room(&self) -> bool {
        self.state.lock().names.len() < MOST_NAMES
    }

    /// The agent's session that a name means, if it is another.
    pub fn behind(&self, name: &SessionId) -> Option<SessionId> {
        self.state.lock().behind.get(name).cloned()
    }

    /// Sets the agent's session that a name means; None: the one of that name.
    pub fn set_behind(&self, name: &SessionId, session: Option<SessionId>) {
        let behind = &mut self.state.lock().behind;
        match session {
            Some(session) => drop(behind.insert(name.clone(), session)),
            None => drop(behind.remove(name)),
        }
    }

    /// Begins a run of the agent, which restores the session `last` only.
    pub fn begin_run(&self, last: Option<&SessionId>) {
        let mut state = self.state.lock();
        let kept = last.and_then(|last| Some((last.clone(), state.behind.get(last)?.clone())));
        let document = last.and_then(|last| state.documents.shift_remove(last));
        *state = BranchState::default();
        if let (Some(last), Some(document)) = (last, document) {
            state.documents.insert(last.clone(), document);
        }
        self.is_used.store(kept.is_some(), Ordering::Release);
        if let Some((name, session)) = kept {
            state.names.insert(session.clone(), name.clone());
            state.behind.insert(name, session);
        }
    }

    /// Sets the block that a session gets in front of its next prompt.
    pub fn set_document(&self, session: &SessionId, block: Option<Value>) {
        let documents = &mut self.state.lock().documents;
        documents.shift_remove(session);
        if let Some(block) = block {
            if documents.len() >= MOST_DOCUMENTS {
                documents.shift_remove_index(0);
            }
            documents.insert(session.clone(), block);
        }
    }

    /// The block that a session gets in front of its prompts, until one of them has ended well.
    pub fn document(&self, session: &SessionId) -> Option<Value> {
        self.state.lock().documents.get(session).cloned()
    }

    /// Gives the agent's lines the names under which its sessions go; returns the forks that they
    /// open, too.
    pub fn to_client(&self, block: Bytes) -> (Bytes, Vec<(SessionId, Fork)>) {
        let mut forks = Vec::new();
        if !self.is_used.load(Ordering::Acquire) {
            return (block, forks);
        }
        let mut state = self.state.lock();
        let block = edit(block, |line, envelope| {
            if envelope.method.is_some() {
                let (span, session) = session_in(line, envelope.params?)?;
                return Some((span, state.names.get(&session)?.clone()));
            }
            let id: u64 = envelope.id?.get().parse().ok()?;
            let opening = state.expected.shift_remove(&id)?;
            let (span, session) = session_in(line, envelope.result?)?;
            match opening {
                Opening::Fork(fork) => {
                    forks.push((session, fork));
                    None
                }
                Opening::Behind(name) => {
                    state.names.insert(session.clone(), name.clone());
                    state.behind.insert(name.clone(), session);
                    Some((span, name))
                }
            }
        });
        let is_used = !state.expected.is_empty() || !state.names.is_empty();
        self.is_used.store(is_used, Ordering::Release);
        (block, forks)
    }

    /// Gives lines to the agent its own names of its sessions.
    pub fn to_agent(&self, block: Bytes) -> Bytes {
        if !self.is_used.load(Ordering::Acquire) {
            return block;
        }
        let state = self.state.lock();
        if state.behind.is_empty() {
            return block;
        }
        edit(block, |line, envelope| {
            let (span, name) = session_in(line, envelope.params?)?;
            Some((span, state.behind.get(&name)?.clone()))
        })
    }
}

#[derive(Deserialize)]
struct MessageFields<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<&'a RawValue>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

/// Replaces the parts of each line of a block that `edit` returns. A line that is no message stays
/// as it is.
fn edit(
    block: Bytes,
    mut edit: impl FnMut(&str, MessageFields<'_>) -> Option<(Range<usize>, SessionId)>,
) -> Bytes {
    let (mut edited, mut copied, mut end) = (Vec::new(), 0, 0);
    for line in lines(&block) {
        let start = end;
        end += line.len();
        // As long as the line, and each member in its place.
        let readable = readable(line);
        let Ok(line) = std::str::from_utf8(&readable) else { continue };
        let Ok(envelope) = serde_json::from_str(line) else { continue };
        if let Some((span, session)) = edit(line, envelope) {
            edited.extend_from_slice(&block[copied..start + span.start]);
            edited.extend_from_slice(Value::from(session.as_str()).to_string().as_bytes());
            copied = start + span.end;
        }
    }
    if copied == 0 {
        return block;
    }
    edited.extend_from_slice(&block[copied..]);
    edited.into()
}

/// The `sessionId` of an object in a line, and where it stands.
fn session_in(line: &str, object: &RawValue) -> Option<(Range<usize>, SessionId)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Named<'a> {
        #[serde(borrow)]
        session_id: &'a RawValue,
    }
    let Named { session_id } = serde_json::from_str(object.get()).ok()?;
    let session: String = serde_json::from_str(session_id.get()).ok()?;
    let start = session_id.get().as_ptr().addr().checked_sub(line.as_ptr().addr())?;
    Some((start..start + session_id.get().len(), SessionId::new(session)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::How;

    fn session(name: &str) -> SessionId {
        SessionId::new(name)
    }

    fn fork() -> Fork {
        Fork { session: "j".into(), event: "e".into(), how: How::Primed }
    }

    fn renamed(branches: &Branches, lines: &str) -> String {
        let (block, forks) = branches.to_client(Bytes::copy_from_slice(lines.as_bytes()));
        assert!(forks.is_empty(), "{forks:?}");
        String::from_utf8_lossy(&block).into_owned()
    }

    fn to_agent(branches: &Branches, lines: &str) -> String {
        let block = branches.to_agent(Bytes::copy_from_slice(lines.as_bytes()));
        String::from_utf8_lossy(&block).into_owned()
    }

    #[test]
    fn a_session_goes_on_under_the_name_of_another() {
        let branches = Branches::default();
        branches.expect(7, Opening::Behind(session("s")));
        let opened = "{\"id\":6,\"result\":{\"sessionId\":\"x\"}}\r\n{ \"result\" : { \"sessionId\" : \"t\\u0031\" }, \"id\":7}\n";
        let expected = opened.replace("\"t\\u0031\"", "\"s\"");
        assert_eq!(renamed(&branches, opened), expected);
        assert_eq!(branches.behind(&session("s")), Some(session("t1")));

        let lines = "{\"method\":\"session/update\",\"params\":{\"update\":{\"sessionId\":\"t1\"},\"sessionId\":\"t1\"}}\nnonsense\n{\"method\":\"a\",\"params\":{\"sessionId\":\"s2\"}}\n{\"id\":8,\"result\":{\"sessionId\":\"t1\"}}\n";
        let expected = lines.replacen("\"sessionId\":\"t1\"}}\n", "\"sessionId\":\"s\"}}\n", 1);
        assert_eq!(renamed(&branches, lines), expected);
        let prompt = "{\"id\":1,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"s\",\"prompt\":[{\"text\":\"s\"}]}}\n";
        let expected = prompt.replacen("\"s\"", "\"t1\"", 1);
        assert_eq!(to_agent(&branches, prompt), expected);

        // A second time: what stood behind it stays hidden, and the last one is meant.
        branches.expect(9, Opening::Behind(session("s")));
        renamed(&branches, "{\"id\":9,\"result\":{\"sessionId\":\"t2\"}}\n");
        let late = "{\"method\":\"m\",\"params\":{\"sessionId\":\"t1\"}}\n";
        assert_eq!(renamed(&branches, late), late.replace("t1", "s"));
        assert!(to_agent(&branches, prompt).contains("\"t2\""));
        branches.set_behind(&session("s"), Some(session("t1")));
        assert!(to_agent(&branches, prompt).contains("\"t1\""));

        // The next run has the last session only.
        branches.begin_run(Some(&session("s")));
        assert!(to_agent(&branches, prompt).contains("\"t1\""));
        branches.begin_run(Some(&session("other")));
        assert_eq!(to_agent(&branches, prompt), prompt);
    }

    #[test]
    fn an_answer_that_opens_a_fork_is_found() {
        let branches = Branches::default();
        branches.expect(3, Opening::Fork(fork()));
        branches.expect(4, Opening::Fork(fork()));
        let line = "{\"id\":3,\"result\":{\"sessionId\":\"f\"}}\n{\"id\":4,\"error\":{}}\n";
        let (block, forks) = branches.to_client(Bytes::from_static(line.as_bytes()));
        assert_eq!((&block[..], forks), (line.as_bytes(), vec![(session("f"), fork())]));
        assert!(!branches.is_used.load(Ordering::Relaxed));
    }

    #[test]
    fn a_document_waits_for_its_session() {
        let branches = Branches::default();
        branches.set_document(&session("s"), Some(Value::from(1)));
        assert_eq!(branches.document(&session("s")), Some(Value::from(1)));
        branches.begin_run(Some(&session("s")));
        assert_eq!(branches.document(&session("s")), Some(Value::from(1)));
        branches.set_document(&session("s"), None);
        assert_eq!(branches.document(&session("s")), None);
        for number in 0..=MOST_DOCUMENTS {
            branches.set_document(&session(&number.to_string()), Some(Value::Null));
        }
        assert_eq!(branches.document(&session("0")), None);
    }
}
