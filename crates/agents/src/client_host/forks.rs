//! Sessions that continue others: forks, and sessions that were set back. The agent forks its own
//! session, or a new one gets the conversation as a document in front of its next prompt.

use std::sync::Arc;

use serde_json::{Value, json};

use super::handshake::Opened;
use super::messages::HostMsg;
use super::{AgentInfo, HostError, HostHandle};
use crate::model::{Fork, How, SessionId};
use crate::proxy::Opening;

/// A session to open that continues another.
#[derive(Clone, Debug)]
pub struct Forking {
    /// The agent's session whose head is the branch point, if it is.
    pub source: Option<SessionId>,
    /// The journal's session and event; None if the journal does not have it.
    pub origin: Option<(Arc<str>, Arc<str>)>,
    /// The conversation up to the branch point; None if it is empty.
    pub document: Option<Document>,
}

/// A conversation, as an agent gets it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Document {
    pub uri: String,
    /// Markdown.
    pub text: String,
}

/// The continuation under a session's name after it was set back.
#[derive(Clone, Debug)]
pub enum Continuation {
    /// The same session: it knows nothing that came after the point.
    Same,
    /// A new session of the agent, with the conversation up to the point.
    Anew(Option<Document>),
}

impl HostHandle {
    /// Opens a session that begins as a fork.
    pub async fn fork_session(&self, forking: Forking) -> Result<(SessionId, How), HostError> {
        let Forking { source, origin, document } = forking;
        let opening = |how| {
            let (session, event) = origin.clone()?;
            Some(Opening::Fork(Fork { session, event, how }))
        };
        if let Some(source) = source
            && self.can_fork(&source).await?
        {
            match self.open("session/fork", Some(&source), opening(How::Forked)).await {
                Ok(Opened { session: forked, answer, .. }) => {
                    let answer = self.revive(&forked, answer).await?;
                    self.configure_restored(&forked, &answer).await?;
                    return Ok((self.opened(forked, None).await?, How::Forked));
                }
                Err(error @ HostError::Gone(_)) => return Err(error),
                Err(error) => {
                    tracing::warn!(session = %source, %error, "the agent cannot fork its session");
                }
            }
        }
        let opened = self.open("session/new", None, opening(How::Primed)).await?;
        let Opened { session: primed, answer, form } = opened;
        self.configure(primed.as_str(), &answer).await?;
        let block = document.map(|document| self.block(&document));
        self.shared.branches.set_document(&primed, block);
        Ok((self.opened(primed, form).await?, How::Primed))
    }

    /// Sets a session back. Meanwhile no prompt of it is sent, and it goes on as before unless
    /// `commit` succeeds.
    pub async fn rewind_session<E>(
        &self,
        session: &SessionId,
        continuation: Continuation,
        commit: impl Future<Output = Result<(), E>>,
    ) -> Result<Result<(), E>, HostError> {
        self.ask(|reply| HostMsg::Hold { session: session.clone(), reply }).await?;
        let before = self.shared.branches.behind(session);
        let rewound = self.rewind_held(session, continuation, commit).await;
        if !matches!(rewound, Ok(Ok(()))) {
            self.shared.branches.set_behind(session, before);
        }
        self.send(HostMsg::Release { session: session.clone() }).await?;
        rewound
    }

    async fn rewind_held<E>(
        &self,
        session: &SessionId,
        continuation: Continuation,
        commit: impl Future<Output = Result<(), E>>,
    ) -> Result<Result<(), E>, HostError> {
        let Continuation::Anew(document) = continuation else { return Ok(commit.await) };
        let branches = &self.shared.branches;
        if !branches.has_room() {
            return Err(HostError::Branches);
        }
        self.open_behind(session).await?;
        let committed = commit.await;
        if committed.is_ok() {
            branches.set_document(session, document.map(|document| self.block(&document)));
        }
        Ok(committed)
    }

    /// Whether the agent offers to fork, and the session is idle and has no document waiting.
    async fn can_fork(&self, source: &SessionId) -> Result<bool, HostError> {
        let offers = self.agent_info().is_some_and(|agent| agent.fork_session);
        if !offers || self.shared.branches.document(source).is_some() {
            return Ok(false);
        }
        let loads = self.session_loads().await?;
        let is_idle = |load: &super::SessionLoad| !load.is_running && load.queued == 0;
        Ok(loads.iter().any(|load| load.session == *source && is_idle(load)))
    }

    fn block(&self, document: &Document) -> Value {
        let Document { uri, text } = document;
        match self.agent_info() {
            Some(AgentInfo { embedded_context: true, .. }) => json!({
                "type": "resource",
                "resource": { "uri": uri, "mimeType": "text/markdown", "text": text },
            }),
            _ => json!({ "type": "text", "text": text }),
        }
    }
}
