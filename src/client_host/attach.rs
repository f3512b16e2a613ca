//! Editors that are attached: each stands in the host's place for the sessions that it opens, and
//! everything it says and hears passes the relay with its gate like the host's own. Ids are
//! remapped both ways; what an editor lacks the host serves. Knows nothing of the port.

mod early;
mod editor;
mod forward;
mod ownership;
mod pipe;
mod serve;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use agent_client_protocol_schema::v1::Error;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::actor::HostMsg;
use super::rpc;
use super::{HostError, HostHandle};
use crate::model::SessionId;
use crate::proxy::Permits;
use early::Early;
use editor::Editor;
use pipe::{Heard, Pipe};

pub(super) use forward::Forwarded;

/// Editors that may be attached to one agent; one more is refused.
const MAX_EDITORS: usize = 64;

/// Names an editor for as long as the host runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct EditorId(u64);

impl HostHandle {
    /// Attaches an editor, which speaks ACP to the agent over the stream that is returned. The end
    /// of what it says ends its part: its running turns are cancelled and its sessions fall to the
    /// host, and when what it asked before is answered the stream ends. With the agent the stream
    /// ends too, after an error for each request under way.
    pub async fn attach(&self) -> Result<DuplexStream, HostError> {
        self.ask(|reply| HostMsg::Attach { reply }).await
    }
}

/// The editors of one agent, and which sessions are theirs.
#[derive(Debug)]
pub(super) struct Guests {
    permits: Arc<Permits>,
    /// The agent's answer to `initialize`.
    introduction: Option<Box<RawValue>>,
    editors: BTreeMap<EditorId, Editor>,
    owners: HashMap<SessionId, EditorId>,
    early: Early,
    heard: mpsc::Receiver<(EditorId, Heard)>,
    hearing: mpsc::Sender<(EditorId, Heard)>,
    /// Editors for which more waits than may.
    stuffed: Vec<EditorId>,
    pipes: JoinSet<()>,
    last_id: u64,
}

impl Guests {
    pub(super) fn new(permits: Arc<Permits>) -> Self {
        // One line at a time: an editor is read as its lines are taken.
        let (hearing, heard) = mpsc::channel(1);
        Self {
            permits,
            introduction: None,
            editors: BTreeMap::new(),
            owners: HashMap::new(),
            early: Early::default(),
            heard,
            hearing,
            stuffed: Vec::new(),
            pipes: JoinSet::new(),
            last_id: 0,
        }
    }

    /// Keeps what the agent says of itself, for editors that ask.
    pub(super) fn introduce(&mut self, introduction: Box<RawValue>) {
        self.introduction = Some(introduction);
    }

    /// Takes in an editor; returns its end of the pipe.
    pub(super) fn admit(&mut self) -> Result<DuplexStream, HostError> {
        if self.editors.len() >= MAX_EDITORS {
            // One that left may wait for answers that never come.
            let left = self.editors.iter().find(|(_, editor)| editor.leaving).map(|(id, _)| *id);
            match left {
                Some(id) => self.remove(id),
                None => return Err(HostError::Editors(MAX_EDITORS)),
            }
        }
        // Those that ended are only taken note of here.
        while self.pipes.try_join_next().is_some() {}
        self.last_id += 1;
        let id = EditorId(self.last_id);
        let (pipe, stream, task) = Pipe::open(id, self.hearing.clone());
        self.pipes.spawn(task);
        self.editors.insert(id, Editor::new(pipe));
        Ok(stream)
    }

    /// Waits for what an editor says.
    pub(super) async fn hear(&mut self) -> Option<(EditorId, Heard)> {
        self.heard.recv().await
    }

    /// Whether a session is an editor's.
    pub(super) fn has(&self, session: &SessionId) -> bool {
        self.owners.contains_key(session)
    }

    /// The sessions of all editors.
    pub(super) fn sessions(&self) -> Vec<SessionId> {
        self.owners.keys().cloned().collect()
    }

    /// Passes a cancellation on, if an editor was asked what it is about. The id is compared as
    /// the JSON it came as.
    pub(super) fn cancel(&mut self, id: &RawValue) {
        let asked = self.editors.iter().find_map(|(editor, state)| {
            let (number, _) = state.asked.iter().find(|(_, asked)| asked.id.get() == id.get())?;
            Some((*editor, *number))
        });
        if let Some((editor, number)) = asked {
            self.tell_cancelled(editor, number);
        }
    }

    /// Answers an editor's request with an error, since the agent ended.
    pub(super) fn fail(&mut self, request: &Forwarded, why: &str) {
        self.answer(request.editor, &request.id, Err(&rpc::failure(-32603, why)));
    }

    /// Lets every editor go; waits until each took what waits for it, or its time is up.
    pub(super) async fn end(&mut self) {
        self.editors.clear();
        self.heard.close();
        while self.pipes.join_next().await.is_some() {}
        for session in std::mem::take(&mut self.owners).into_keys() {
            self.permits.set_editor(&session, false);
        }
    }

    fn owner(&self, session: &SessionId) -> Option<EditorId> {
        self.owners.get(session).copied()
    }

    fn own(&mut self, session: &SessionId, editor: EditorId) {
        self.owners.insert(session.clone(), editor);
        self.permits.set_editor(session, true);
    }

    fn disown(&mut self, session: &SessionId) {
        self.owners.remove(session);
        self.permits.set_editor(session, false);
    }

    /// Whether an editor is there and may still say something.
    fn listens(&self, editor: EditorId) -> bool {
        self.editors.get(&editor).is_some_and(|editor| !editor.leaving)
    }

    fn send(&mut self, editor: EditorId, line: bytes::Bytes) {
        if let Some(state) = self.editors.get(&editor)
            && !state.pipe.push(line)
            && !self.stuffed.contains(&editor)
        {
            self.stuffed.push(editor);
        }
    }

    fn send_all(&mut self, line: &bytes::Bytes) {
        for editor in self.editors.keys().copied().collect::<Vec<_>>() {
            self.send(editor, line.clone());
        }
    }

    fn answer(&mut self, editor: EditorId, id: &RawValue, outcome: Result<&RawValue, &Error>) {
        self.send(editor, rpc::response(id, outcome));
    }

    fn tell_cancelled(&mut self, editor: EditorId, number: u64) {
        let params = serde_json::json!({ "requestId": number });
        self.send(editor, rpc::notification("$/cancel_request", &params));
    }

    fn remove(&mut self, editor: EditorId) {
        self.editors.remove(&editor);
        self.stuffed.retain(|other| *other != editor);
    }
}

/// The session that params name, if any.
fn session_of(params: Option<&RawValue>) -> Result<Option<SessionId>, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct About {
        session_id: Option<String>,
    }
    // A derived reader would take an array for the fields in their order.
    if !params.is_some_and(|params| params.get().starts_with('{')) {
        return Ok(None);
    }
    let About { session_id } = rpc::decode(params)?;
    Ok(session_id.map(SessionId::new))
}
