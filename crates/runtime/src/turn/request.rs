//! The requests of a run to its agent besides the prompt: the session that it begins with, files, and an
//! answer by a schema. An answer that does not fit gets a second try.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Context as _;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use crate::agent::{AgentError, AgentHandle, Prompt, text_blocks};
use crate::client_host::{Document, Forking, PromptDraft, PromptOutcome, Said};
use crate::home::journals;
use crate::journal::Store;
use crate::model::{DecidedBy, SessionId};
use crate::runs::{Attachment, EarlierSession, RunFolder, RunState, Takes, team_of};
use crate::turn::background::Processes;
use crate::turn::command::TeamCommand;
use crate::turn::progress::RunProgress;
use crate::turn::retries;
use crate::turn::schema::AnswerSchema;

/// The request to the agent.
pub(crate) struct RunRequest {
    attachments: Vec<Attachment>,
    pub(super) schema: Option<AnswerSchema>,
    /// None: a new session.
    begins_with: Option<EarlierSession>,
    eisen_dir: PathBuf,
    /// The channel for news of the agent's actions.
    pub(crate) progress: watch::Sender<RunProgress>,
    /// Where the next candidate of the agent's tier is asked for; None: it has no tier.
    pub(crate) moves: Option<mpsc::Sender<TeamCommand>>,
}

impl RunRequest {
    /// Reads it as the run's folder has it.
    pub(crate) fn of(
        folder: &RunFolder,
        state: &RunState,
        eisen_dir: &Path,
        progress: watch::Sender<RunProgress>,
    ) -> anyhow::Result<Self> {
        let schema = folder.schema()?;
        Ok(Self {
            attachments: folder.attachments()?,
            schema: schema.as_ref().map(AnswerSchema::new).transpose()?,
            begins_with: state.begins_with.clone(),
            eisen_dir: eisen_dir.to_owned(),
            progress,
            moves: None,
        })
    }

    /// Opens the session, unless one is open, and prompts the agent, which is ready. The outer error says
    /// why it could not be prompted. `before` gets the processes that the agent had before its prompt.
    pub(crate) async fn take(
        &self,
        agent: &AgentHandle,
        session: Option<SessionId>,
        text: &str,
        said: watch::Sender<Said>,
        before: &OnceLock<Processes>,
    ) -> Result<Result<PromptOutcome, AgentError>, String> {
        let session = match (session, &self.begins_with) {
            (None, Some(earlier)) => Some(begin(agent, earlier, &self.eisen_dir).await?),
            (session, _) => session,
        };
        let blocks = self.blocks(agent, text).await?;
        let _ = before.set(Processes::of(agent));
        let first = self.prompt(agent, session, blocks, said.clone()).await;
        let Some(schema) = &self.schema else { return Ok(first) };
        let Ok(outcome) = first else { return Ok(first) };
        if outcome.stop_reason != "end_turn" || outcome.reason.is_some() {
            return Ok(Ok(outcome));
        }
        let outcome = match schema.check(outcome.last_message()) {
            Ok(json) => return Ok(Ok(outcome.with_answer(json))),
            Err(why) => {
                let blocks = text_blocks(&AnswerSchema::repair(&why));
                let first = outcome.refused;
                let second = self.prompt(agent, Some(outcome.session), blocks, said).await;
                second.map(|second| PromptOutcome {
                    refused: [first, second.refused].concat(),
                    ..second
                })
            }
        };
        Ok(outcome.map(|outcome| match schema.check(outcome.last_message()) {
            Ok(json) => outcome.with_answer(json),
            Err(_) if outcome.stop_reason != "end_turn" || outcome.reason.is_some() => outcome,
            Err(why) => {
                let reason = Some(format!("the answer does not fit the schema: {why}").into());
                PromptOutcome { reason, ..outcome }
            }
        }))
    }

    async fn blocks(&self, agent: &AgentHandle, text: &str) -> Result<Vec<Value>, String> {
        let mut blocks = match &self.schema {
            Some(schema) => text_blocks(&schema.asked_for(text)),
            None => text_blocks(text),
        };
        if !self.attachments.is_empty() {
            let info = agent.announced().await.map(|(info, _)| info);
            let takes =
                info.map(|info| Takes { resources: info.embedded_context, images: info.images });
            // The next candidate may not take what this one does.
            let takes = takes.filter(|_| self.moves.is_none()).unwrap_or_default();
            for attachment in &self.attachments {
                blocks.push(attachment.block(takes).map_err(|error| error.to_string())?);
            }
        }
        Ok(blocks)
    }

    async fn prompt(
        &self,
        agent: &AgentHandle,
        session: Option<SessionId>,
        blocks: Vec<Value>,
        said: watch::Sender<Said>,
    ) -> Result<PromptOutcome, AgentError> {
        let draft = PromptDraft::new(blocks, Some(DecidedBy::Person));
        let prompt = Prompt { session, draft, by_orchestrator: false, said };
        match &self.moves {
            Some(changes) => retries::prompt(agent, changes, prompt).await,
            None => agent.prompt(prompt).await,
        }
    }
}

/// Goes on with an earlier session, or forks it.
async fn begin(
    agent: &AgentHandle,
    earlier: &EarlierSession,
    eisen_dir: &Path,
) -> Result<SessionId, String> {
    let session = SessionId::new(&*earlier.session_id);
    let resumed = agent.resume(&session).await;
    if !earlier.is_fork {
        return resumed.map(|()| session).map_err(|error| {
            format!(
                "the session {} can't go on: {error}; --fork begins beside it",
                earlier.session_id
            )
        });
    }
    let document = document(earlier, eisen_dir);
    if let (Err(error), Err(lack)) = (&resumed, &document) {
        return Err(format!(
            "the session {} can't be forked: {error}; {lack:#}",
            earlier.session_id
        ));
    }
    // An agent that does not have it any more gets its conversation.
    let source = resumed.is_ok().then_some(session);
    let forking = Forking { source, origin: None, document: document.ok().flatten() };
    let (forked, _) = agent.fork(forking).await.map_err(|error| error.to_string())?;
    Ok(forked)
}

/// The conversation of an earlier run, from its journal.
fn document(earlier: &EarlierSession, eisen_dir: &Path) -> anyhow::Result<Option<Document>> {
    let team = earlier.team.clone().unwrap_or_else(|| team_of(&earlier.run));
    let journal = journals::journal_place(eisen_dir, &team);
    let store = Store::open(&journal).context("its journal can't be read")?;
    let session = store.session_named(&earlier.session_id, earlier.agent.as_deref())?;
    let text = store.conversation(&session.head_event_id)?;
    let uri = format!("eisen://session/{}?at={}", session.id, session.head_event_id);
    Ok(text.map(|text| Document { uri, text }))
}
