//! The prompts of sessions that wait for their turn: queued, changed and withdrawn.

use tokio::sync::watch;

use super::{HostSession, HostSessions};
use crate::client_host::draft::WaitingPrompt;
use crate::client_host::messages::Reply;
use crate::client_host::{Content, HostError, PromptDraft, PromptOutcome, Said, Urgency};
use crate::model::SessionId;

/// Prompts queued in one session; one more is refused.
pub(super) const MAX_QUEUED: usize = 1000;

/// A prompt that was not sent yet. Its reply is closed when the caller is gone.
#[derive(Debug)]
pub(in crate::client_host) struct QueuedPrompt {
    pub(in crate::client_host) content: Content,
    pub(in crate::client_host) said: watch::Sender<Said>,
    pub(in crate::client_host) reply: Reply<PromptOutcome>,
}

impl HostSessions {
    /// Queues a prompt, or fails its reply if the queue is full.
    pub(in crate::client_host) fn queue(
        &mut self,
        id: &SessionId,
        prompt: QueuedPrompt,
        urgency: Urgency,
    ) {
        let session = self.by_id.entry(id.clone()).or_default();
        if session.waiting() >= MAX_QUEUED {
            session.briefings.retain(|prompt| !prompt.reply.is_closed());
            session.queued.retain(|prompt| !prompt.reply.is_closed());
        }
        let queued = session.waiting();
        if queued >= MAX_QUEUED {
            let full = HostError::QueueFull { session: id.clone(), queued };
            let _ = prompt.reply.send(Err(full));
            return;
        }
        match urgency {
            Urgency::Briefing => session.briefings.push_back(prompt),
            Urgency::Normal => session.queued.push_back(prompt),
        }
    }

    /// The prompts that wait and can be changed, in the order in which they will be sent in a session.
    pub(in crate::client_host) fn drafts(&self, named: Option<&SessionId>) -> Vec<WaitingPrompt> {
        let wanted = self.by_id.iter().filter(|(id, _)| named.is_none_or(|named| named == *id));
        let mut drafts: Vec<_> = wanted
            .flat_map(|(id, it)| it.drafts().map(|draft| WaitingPrompt::of(id, draft)))
            .collect();
        // Sessions are in no order; the sort keeps that of each queue.
        drafts.sort_by(|a, b| a.session.as_str().cmp(b.session.as_str()));
        drafts
    }

    /// Gives a prompt that waits another text.
    pub(in crate::client_host) fn edit(
        &mut self,
        id: &str,
        text: &str,
    ) -> Result<WaitingPrompt, HostError> {
        let not_waiting = || HostError::NotWaiting(id.to_owned());
        let waiting = self.drafts(None).into_iter().find(|it| it.draft.id() == id);
        let waiting = waiting.ok_or_else(not_waiting)?;
        waiting.draft.set_text(text);
        Ok(waiting)
    }

    /// Withdraws one prompt that waits.
    pub(in crate::client_host) fn take_back(
        &mut self,
        id: &str,
    ) -> Result<WaitingPrompt, HostError> {
        let is_it = |prompt: &QueuedPrompt| {
            prompt.content.draft().is_some_and(|draft| draft.id() == id)
                && !prompt.reply.is_closed()
        };
        for (session, it) in &mut self.by_id {
            for queue in [&mut it.briefings, &mut it.queued] {
                let at = queue.iter().position(is_it);
                let Some(prompt) = at.and_then(|at| queue.remove(at)) else { continue };
                let waiting = prompt.content.draft().map(|draft| WaitingPrompt::of(session, draft));
                let _ = prompt.reply.send(Err(HostError::Withdrawn));
                return waiting.ok_or_else(|| HostError::NotWaiting(id.to_owned()));
            }
        }
        Err(HostError::NotWaiting(id.to_owned()))
    }
}

impl HostSession {
    pub(super) fn waiting(&self) -> usize {
        self.briefings.len() + self.queued.len()
    }

    /// Returns the number of queued prompts whose caller is still waiting.
    pub(super) fn queued_count(&self) -> usize {
        let waiting = self.briefings.iter().chain(&self.queued);
        waiting.filter(|prompt| !prompt.reply.is_closed()).count()
    }

    pub(super) fn drafts(&self) -> impl Iterator<Item = &PromptDraft> {
        let waiting = self.briefings.iter().chain(&self.queued);
        waiting.filter(|prompt| !prompt.reply.is_closed()).filter_map(|it| it.content.draft())
    }

    pub(super) fn refuse_queued(&mut self, error: &HostError) {
        for prompt in self.briefings.drain(..).chain(self.queued.drain(..)) {
            let _ = prompt.reply.send(Err(error.clone()));
        }
    }
}
