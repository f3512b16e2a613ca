//! The attached editors of one agent: their pipes, their sessions and their open requests. Pure
//! state, without access to the agent or the port.

mod early;
mod editor;
mod pipe;
mod requests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use agent_client_protocol_schema::v1::Error;
use eisen_base::task::TaskSet;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

use super::{HostError, rpc};
use crate::model::SessionId;
use crate::model::code;
use crate::proxy::Permits;
use early::Early;
use editor::Editor;
use pipe::Pipe;

pub(super) use pipe::PipeEvent;

/// Editors attached to one agent; one more is refused.
const MAX_EDITORS: usize = 64;

/// Identifies an editor within the host's run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct EditorId(u64);

/// An editor's request that the agent has not answered.
#[derive(Debug)]
pub(super) struct Forwarded {
    pub(super) editor: EditorId,
    /// The editor's id, as the JSON that it sent.
    pub(super) id: Box<RawValue>,
    pub(super) kind: AnswerEffect,
}

/// The effect of the answer to a request.
#[derive(Debug)]
pub(super) enum AnswerEffect {
    /// The owner of the session that it names.
    Opens,
    /// The owner of a session that the editor claimed with this request.
    Takes {
        session: SessionId,
        claim: Claimed,
    },
    /// Ends a turn.
    Prompt(SessionId),
    /// Ends a session.
    Closes(SessionId),
    Nothing,
}

/// The previous owner of a session that an editor named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Claimed {
    Its,
    Nobodys,
    /// The host, after an editor left it.
    Left,
}

/// The editors of one agent, and the sessions of each.
#[derive(Debug)]
pub(super) struct Guests {
    permits: Arc<Permits>,
    /// The agent's answer to `initialize`.
    introduction: Option<Box<RawValue>>,
    editors: BTreeMap<EditorId, Editor>,
    owners: HashMap<SessionId, EditorId>,
    pub(super) early: Early,
    events: mpsc::Receiver<(EditorId, PipeEvent)>,
    event_sender: mpsc::Sender<(EditorId, PipeEvent)>,
    /// Editors whose output exceeds its limit.
    pub(super) overfull: Vec<EditorId>,
    pipes: TaskSet,
    last_id: u64,
}

impl Guests {
    pub(super) fn new(permits: Arc<Permits>) -> Self {
        // One line at a time, so that an editor is read only as fast as the host takes its lines.
        let (event_sender, events) = mpsc::channel(1);
        Self {
            permits,
            introduction: None,
            editors: BTreeMap::new(),
            owners: HashMap::new(),
            early: Early::default(),
            events,
            event_sender,
            overfull: Vec::new(),
            pipes: TaskSet::default(),
            last_id: 0,
        }
    }

    /// Keeps the agent's answer to `initialize` for editors.
    pub(super) fn introduce(&mut self, introduction: Box<RawValue>) {
        self.introduction = Some(introduction);
    }

    /// Adds an editor and returns its end of the pipe.
    pub(super) fn admit(&mut self) -> Result<DuplexStream, HostError> {
        if self.editors.len() >= MAX_EDITORS {
            // An editor that left may wait for answers that never come.
            let left = self.editors.iter().find(|(_, editor)| editor.leaving).map(|(id, _)| *id);
            match left {
                Some(id) => self.remove(id),
                None => return Err(HostError::Editors(MAX_EDITORS)),
            }
        }
        // Removes the finished tasks.
        while self.pipes.try_join_next().is_some() {}
        self.last_id += 1;
        let id = EditorId(self.last_id);
        let (pipe, stream, task) = Pipe::open(id, self.event_sender.clone());
        self.pipes.spawn(task);
        self.editors.insert(id, Editor::new(pipe));
        Ok(stream)
    }

    /// Waits for the next event of an editor.
    pub(super) async fn next_event(&mut self) -> Option<(EditorId, PipeEvent)> {
        self.events.recv().await
    }

    pub(super) fn is_empty(&self) -> bool {
        self.editors.is_empty()
    }

    /// Whether an editor owns the session.
    pub(super) fn has(&self, session: &SessionId) -> bool {
        self.owners.contains_key(session)
    }

    /// Returns the sessions of all editors.
    pub(super) fn sessions(&self) -> Vec<SessionId> {
        self.owners.keys().cloned().collect()
    }

    /// Forwards a cancellation to the editor that received the request. The id is compared as raw
    /// JSON.
    pub(super) fn cancel(&mut self, id: &RawValue) {
        let asked = self.editors.iter().find_map(|(editor, state)| {
            let (number, _) = state.asked.iter().find(|(_, asked)| asked.id.get() == id.get())?;
            Some((*editor, *number))
        });
        if let Some((editor, number)) = asked {
            self.send_cancelled(editor, number);
        }
    }

    /// Answers an editor's request with an error, since the agent ended.
    pub(super) fn fail(&mut self, request: &Forwarded, why: &str) {
        self.answer(request.editor, &request.id, Err(&rpc::failure(code::INTERNAL_ERROR, why)));
    }

    /// Closes all pipes, and waits until each editor has read its remaining lines or its time is
    /// up.
    pub(super) async fn end(&mut self) {
        self.editors.clear();
        self.events.close();
        while self.pipes.join_next().await.is_some() {}
        for session in std::mem::take(&mut self.owners).into_keys() {
            self.permits.set_editor(&session, false);
        }
    }

    pub(super) fn owner(&self, session: &SessionId) -> Option<EditorId> {
        self.owners.get(session).copied()
    }

    pub(super) fn own(&mut self, session: &SessionId, editor: EditorId) {
        self.owners.insert(session.clone(), editor);
        self.permits.set_editor(session, true);
    }

    pub(super) fn disown(&mut self, session: &SessionId) {
        self.owners.remove(session);
        self.permits.set_editor(session, false);
    }

    /// Whether an editor is attached and still sends.
    pub(super) fn listens(&self, editor: EditorId) -> bool {
        self.editors.get(&editor).is_some_and(|editor| !editor.leaving)
    }

    pub(super) fn send(&mut self, editor: EditorId, line: bytes::Bytes) {
        if let Some(state) = self.editors.get(&editor)
            && !state.pipe.push(line)
            && !self.overfull.contains(&editor)
        {
            self.overfull.push(editor);
        }
    }

    pub(super) fn send_all(&mut self, line: &bytes::Bytes) {
        for editor in self.editors.keys().copied().collect::<Vec<_>>() {
            self.send(editor, line.clone());
        }
    }

    pub(super) fn answer(
        &mut self,
        editor: EditorId,
        id: &RawValue,
        outcome: Result<&RawValue, &Error>,
    ) {
        self.send(editor, rpc::response(id, outcome));
    }

    fn send_cancelled(&mut self, editor: EditorId, number: u64) {
        let params = serde_json::json!({ "requestId": number });
        self.send(editor, rpc::notification("$/cancel_request", &params));
    }

    pub(super) fn remove(&mut self, editor: EditorId) {
        self.editors.remove(&editor);
        self.overfull.retain(|other| *other != editor);
    }
}

/// Returns the session that the params name, if any.
pub(super) fn session_of(params: Option<&RawValue>) -> Result<Option<SessionId>, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct About {
        session_id: Option<String>,
    }
    // A derived deserializer would accept an array of the fields in order.
    if !params.is_some_and(|params| params.get().starts_with('{')) {
        return Ok(None);
    }
    let About { session_id } = rpc::decode(params)?;
    Ok(session_id.map(SessionId::new))
}
