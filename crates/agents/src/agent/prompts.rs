//! Prompts and briefings of one run of an agent.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use eisen_base::task::TaskSet;
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::Surroundings;
use crate::budget::{Account, Reservation};
use crate::capture::RunFiles;
use crate::client_host::{
    Content, HostError, HostHandle, PromptDraft, PromptOutcome, Said, Urgency, is_command,
    team_block,
};
use crate::model::{AgentId, AgentState, SessionId, SessionKey};
use crate::proxy::{LiveCalls, ModelCalls, RelayHandle, Vitals};
use crate::routing::RoutingHandle;
use crate::tracker::TrackerHandle;

#[derive(Debug)]
pub struct Prompt {
    /// None: the agent's default session.
    pub session: Option<SessionId>,
    pub draft: PromptDraft,
    /// The orchestrator waits for the turn's end.
    pub by_orchestrator: bool,
    /// Receives the text of the turn as it arrives.
    pub said: watch::Sender<Said>,
}

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("agent `{agent}` is {}, not ready{}", .state.as_str(), because(.reason.as_ref()))]
    NotReady { agent: AgentId, state: AgentState, reason: Option<String> },
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("the agent is gone: it was removed, or the team is stopping")]
    Stopping,
}

fn because(reason: Option<&String>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

/// Pause after a briefing that the orchestrator answered with an error.
const BRIEF_AGAIN: Duration = Duration::from_secs(5);

/// How long the end of a turn waits for what its last model calls took: the provider may close them behind the agent.
const CALLS_END: Duration = Duration::from_millis(500);

/// Handle of a run, valid from the agent's spawn to its exit.
#[derive(Clone, Debug)]
pub(super) struct RunHandle {
    pub(super) host: HostHandle,
    pub(super) relay: RelayHandle,
    pub(super) vitals: Arc<Vitals>,
    /// Its running tool calls.
    pub(super) calls: Arc<LiveCalls>,
    /// Where its prompts get their share of a budget.
    pub(super) account: Account,
    /// Its model calls, if they go by the team's endpoint.
    pub(super) model_calls: Option<Arc<ModelCalls>>,
    /// Captures what it writes; None without a journal.
    pub(super) files: Option<RunFiles>,
    /// Edition of the settings that the run was started with.
    pub(super) edition: u64,
    pub(super) handover: Handover,
}

/// A record of others before the agent, until a prompt takes it; cheap to clone.
#[derive(Clone, Default, Debug)]
pub(super) struct Handover(Arc<Mutex<Option<String>>>);

impl Handover {
    pub(super) fn set(&self, record: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(record);
    }

    /// Puts the record in front of a prompt, once.
    pub(super) fn before(&self, mut blocks: Vec<Value>) -> Vec<Value> {
        if is_command(&blocks) {
            return blocks;
        }
        let record = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        blocks.splice(0..0, record.map(|record| team_block(&record)));
        blocks
    }
}

impl RunHandle {
    /// Waits until all output of the agent so far has been published, with the files that it wrote
    /// in turns that have ended.
    pub(super) async fn settled(&self, tracker: &TrackerHandle) {
        self.relay.settled().await;
        if let Some(calls) = &self.model_calls {
            let _ = timeout(CALLS_END, calls.idle()).await;
        }
        if let Some(files) = &self.files {
            files.settled().await;
        }
        tracker.settled().await;
    }

    pub(super) async fn prompt(
        &self,
        agent: &AgentId,
        routing: &RoutingHandle,
        tracker: &TrackerHandle,
        prompt: Prompt,
    ) -> Result<PromptOutcome, AgentError> {
        let Prompt { session, draft, by_orchestrator, said } = prompt;
        let words = draft.clone();
        if let Some(reason) = self.account.refusal() {
            return Err(HostError::Budget(reason).into());
        }
        let (handover, heard) = (self.handover.clone(), said.subscribe());
        let outcome = if by_orchestrator {
            let (mark, marked) = oneshot::channel();
            let (agent, routing) = (agent.clone(), routing.clone());
            let relay = self.relay.clone();
            let making = async move {
                // From here on the prompt's sender waits for this agent.
                let _ = mark.send(routing.orchestrate(agent.clone()).await);
                let blocks = words.blocks();
                Some(handover.before(with_notes(&routing, &relay, agent, blocks).await))
            };
            let (content, share) = self.with_share(making, true);
            let content = content.of_draft(draft);
            let outcome = self.host.prompt_streaming(session, content, Urgency::Normal, said).await;
            let outcome = share.outcome(outcome);
            let collected = match marked.await {
                Ok(orchestrated) => orchestrated.end().await,
                Err(_) => Vec::new(),
            };
            outcome.map(|outcome| PromptOutcome { blocked: collected, ..outcome })
        } else {
            let (agent, routing) = (agent.clone(), routing.clone());
            let relay = self.relay.clone();
            let making = async move {
                let blocks = words.blocks();
                Some(handover.before(with_notes(&routing, &relay, agent, blocks).await))
            };
            let (content, share) = self.with_share(making, false);
            let content = content.of_draft(draft);
            share.outcome(self.host.prompt_streaming(session, content, Urgency::Normal, said).await)
        };
        self.settled(tracker).await;
        let heard = heard.borrow().clone();
        let outcome = self.as_ended(outcome, heard).await?;
        let key = SessionKey::new(agent.clone(), outcome.session.clone());
        let refused = routing.take_story(key).await;
        Ok(PromptOutcome { refused, ..outcome })
    }

    /// The outcome of a turn as its relay saw it end: a turn that was cancelled is that, whatever the
    /// agent answers.
    async fn as_ended(
        &self,
        outcome: Result<PromptOutcome, HostError>,
        heard: Said,
    ) -> Result<PromptOutcome, AgentError> {
        const CANCELLED: &str = "cancelled";
        let session = match &outcome {
            Ok(outcome) => Some(outcome.session.clone()),
            Err(HostError::Refused { .. }) => heard.session,
            Err(_) => None,
        };
        let end = match session.clone() {
            Some(session) => self.relay.turn_end(session).await,
            None => None,
        };
        let is_cancelled = end.as_ref().is_some_and(|end| &*end.stop_reason == CANCELLED);
        let mut outcome = match (outcome, session) {
            (Err(_), Some(session)) if is_cancelled => PromptOutcome {
                session,
                stop_reason: CANCELLED.to_owned(),
                reason: None,
                text: heard.text,
                last_message_at: heard.last_message_at,
                blocked: Vec::new(),
                refused: Vec::new(),
            },
            // What its provider answered says more than what the agent makes of it.
            (Err(HostError::Refused { method, code, message }), _) => {
                let by_provider = end.filter(|_| self.model_calls.is_some());
                let reason = by_provider.and_then(|end| end.reason);
                let message = reason.map_or(message, |reason| reason.to_string());
                return Err(HostError::Refused { method, code, message }.into());
            }
            (outcome, _) => outcome?,
        };
        if let Some(end) = end {
            if is_cancelled || outcome.stop_reason == CANCELLED {
                outcome.stop_reason = end.stop_reason.to_string();
            }
            outcome.reason = end.reason;
        }
        Ok(outcome)
    }

    /// Content that has its share of the budgets before it is made, when its turn comes.
    pub(super) fn with_share(
        &self,
        making: impl Future<Output = Option<Vec<Value>>> + Send + 'static,
        by_lead: bool,
    ) -> (Content, BudgetShare) {
        let (keep, kept) = oneshot::channel();
        let account = self.account.clone();
        let content = Content::later(async move {
            let reserved = account.reserve(by_lead).await;
            let has_room = reserved.is_ok();
            // Without a receiver nobody wants the prompt any more.
            let _ = keep.send(reserved);
            if has_room { making.await } else { None }
        });
        (content, BudgetShare(kept))
    }

    /// Sends the pending accesses to the lead once its session is idle, and signals `begins` then.
    /// Accesses that the prompt did not include stay for the next briefing.
    pub(super) async fn brief(
        &self,
        routing: &RoutingHandle,
        begins: oneshot::Sender<()>,
    ) -> Result<(), AgentError> {
        let making = routing.clone();
        let making = async move {
            let text = making.briefing().await;
            let _ = begins.send(());
            text.map(|text| super::text_blocks(&text))
        };
        let (content, share) = self.with_share(making, false);
        share.outcome(self.host.prompt(None, content, Urgency::Briefing).await)?;
        routing.briefed().await;
        Ok(())
    }
}

/// A prompt's share of the budgets, once it has one; dropped with the prompt.
pub(super) struct BudgetShare(oneshot::Receiver<Result<Reservation, Arc<str>>>);

impl BudgetShare {
    /// The outcome of the prompt, which was withdrawn if it got no share.
    pub(super) fn outcome<T>(mut self, outcome: Result<T, HostError>) -> Result<T, HostError> {
        match (outcome, self.0.try_recv()) {
            (Err(HostError::Withdrawn), Ok(Err(reason))) => Err(HostError::Budget(reason)),
            (outcome, _) => outcome,
        }
    }
}

/// Sends briefings to the orchestrator for the duration of its run. The next one is queued as soon
/// as one has begun, so that no other prompt comes between.
pub(super) async fn send_briefings(run: RunHandle, team: Surroundings) {
    let mut waiting = team.routing.waiting();
    waiting.mark_changed();
    let mut briefings = TaskSet::default();
    while waiting.changed().await.is_ok() {
        let (begins, begun) = oneshot::channel();
        let (run, routing) = (run.clone(), team.routing.clone());
        briefings.spawn(async move {
            match run.brief(&routing, begins).await {
                Ok(()) | Err(AgentError::Host(HostError::Gone(_))) => {}
                // No access was left to decide, or the briefing was cancelled before it was sent.
                Err(AgentError::Host(HostError::Withdrawn)) => routing.brief_again().await,
                Err(error) => {
                    tracing::warn!(%error, "a briefing failed: it will be sent again");
                    tokio::time::sleep(BRIEF_AGAIN).await;
                    routing.brief_again().await;
                }
            }
        });
        // An error means that the briefing is over.
        let _ = begun.await;
        while briefings.try_join_next().is_some() {}
    }
}

/// Adds to a prompt the notes of decisions that the agent has not received otherwise, and of a loop.
async fn with_notes(
    routing: &RoutingHandle,
    relay: &RelayHandle,
    agent: AgentId,
    mut blocks: Vec<Value>,
) -> Vec<Value> {
    // The notes wait.
    if is_command(&blocks) {
        return blocks;
    }
    if let Some(nudge) = relay.take_nudge().await {
        blocks.insert(0, team_block(&nudge));
    }
    let notes = routing.notes(agent).await;
    if !notes.is_empty() {
        let text = format!("Since your last prompt:\n{}\n", notes.join("\n"));
        blocks.insert(0, team_block(&text));
    }
    blocks
}
