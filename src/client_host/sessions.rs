//! The sessions of one agent: who runs, who waits, and what the agent said. Pure state: sends
//! nothing itself.

use std::collections::{HashMap, VecDeque};

use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, Id};

use super::messages::Reply;
use super::{Answers, Content, HostError, PromptOutcome, Said, SessionLoad, Urgency};
use crate::model::SessionId;

/// Prompts that may wait in one session; one more is refused.
const MAX_QUEUED: usize = 1000;

/// Bytes of an agent's answer that are kept for whoever prompted; the rest is cut, and the text
/// says so.
const MAX_TEXT: usize = 16 << 20;
const CUT: &str = "\n[cut: the answer was longer than 16 MiB]";

#[derive(Debug, Default)]
pub(super) struct HostSessions {
    by_id: HashMap<SessionId, HostSession>,
    /// The first that was opened.
    default: Option<SessionId>,
    answers: Option<Answers>,
}

#[derive(Debug, Default)]
struct HostSession {
    running: Option<Turn>,
    briefings: VecDeque<QueuedPrompt>,
    queued: VecDeque<QueuedPrompt>,
    /// An editor opened it and has left: the next editor that names it gets it.
    left: bool,
}

/// Whether an editor may have a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Claim {
    Unknown,
    /// It was left behind, and is not the host's any more.
    Given,
    /// It is the team's own, or in use.
    Kept,
}

/// A prompt that was not sent yet. Its reply is closed when nobody waits for it any more.
#[derive(Debug)]
pub(super) struct QueuedPrompt {
    pub(super) content: Content,
    pub(super) said: watch::Sender<Said>,
    pub(super) reply: Reply<PromptOutcome>,
}

#[derive(Debug)]
struct Turn {
    reply: Reply<PromptOutcome>,
    /// Its content is being made: nothing was sent yet.
    making: Option<AbortHandle>,
    /// Read along by whoever prompted.
    said: watch::Sender<Said>,
    cut: bool,
    cancelled: bool,
    /// Where in what it said its last message begins, and whether another would be a new one.
    message: (usize, bool),
}

impl HostSessions {
    pub(super) fn new(answers: Option<Answers>) -> Self {
        Self { answers, ..Self::default() }
    }

    /// Adds a session; one that is known stays as it is.
    pub(super) fn open(&mut self, id: SessionId) {
        self.default.get_or_insert_with(|| id.clone());
        self.by_id.entry(id).or_default();
    }

    /// Returns the session meant: the default if none is named.
    pub(super) fn resolve(&self, named: Option<SessionId>) -> Result<SessionId, HostError> {
        match named {
            Some(id) if self.by_id.contains_key(&id) => Ok(id),
            Some(id) => Err(HostError::UnknownSession(id)),
            None => self.default.clone().ok_or(HostError::NoSession),
        }
    }

    pub(super) fn has(&self, id: &SessionId) -> bool {
        self.by_id.contains_key(id)
    }

    /// Takes in the session of an editor that left; if its turn still runs, as one that was
    /// cancelled and that nobody waits for.
    pub(super) fn adopt(&mut self, id: SessionId, runs: bool) {
        let (nobody, _) = oneshot::channel();
        let running =
            runs.then(|| Turn { cancelled: true, ..Turn::of(nobody, watch::Sender::default()) });
        self.by_id.insert(id, HostSession { running, left: true, ..HostSession::default() });
    }

    /// Lets go of a session for an editor, if it may have it.
    pub(super) fn claim(&mut self, id: &SessionId) -> Claim {
        match self.by_id.get(id) {
            None => Claim::Unknown,
            Some(it) if it.left && it.running.is_none() && it.waiting() == 0 => {
                self.by_id.remove(id);
                Claim::Given
            }
            Some(_) => Claim::Kept,
        }
    }

    pub(super) fn ids(&self) -> Vec<SessionId> {
        self.by_id.keys().cloned().collect()
    }

    /// Queues a prompt, or tells its reply why not.
    pub(super) fn queue(&mut self, id: &SessionId, prompt: QueuedPrompt, urgency: Urgency) {
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

    /// If no turn runs, makes the next prompt that somebody still waits for the running one, and
    /// returns its content.
    pub(super) fn begin(&mut self, id: &SessionId) -> Option<Content> {
        let session = self.by_id.get_mut(id)?;
        if session.running.is_some() {
            return None;
        }
        loop {
            let next = session.briefings.pop_front().or_else(|| session.queued.pop_front())?;
            if !next.reply.is_closed() {
                session.running = Some(Turn::of(next.reply, next.said));
                return Some(next.content);
            }
        }
    }

    /// Notes which task makes the content of the turn that was begun.
    pub(super) fn making(&mut self, id: &SessionId, task: AbortHandle) {
        if let Some(turn) = self.by_id.get_mut(id).and_then(|session| session.running.as_mut()) {
            turn.making = Some(task);
        }
    }

    /// Returns the session whose turn's content a task made, and whether somebody still waits for
    /// it.
    pub(super) fn made(&mut self, task: Id) -> Option<(SessionId, bool)> {
        self.by_id.iter_mut().find_map(|(id, session)| {
            let turn = session.running.as_mut()?;
            turn.making.take_if(|making| making.id() == task)?;
            Some((id.clone(), !turn.reply.is_closed()))
        })
    }

    /// Notes that the running turn's prompt is on its way to the agent.
    pub(super) fn sent(&mut self, id: &SessionId) {
        if let Some(turn) = self.by_id.get(id).and_then(|session| session.running.as_ref()) {
            turn.said.send_modify(|said| said.session = Some(id.clone()));
        }
    }

    /// Appends what the agent said to the running turn, if one runs.
    pub(super) fn append_text(&mut self, id: &str, text: &str) {
        let session = self.by_id.get_mut(&SessionId::new(id));
        let Some(turn) = session.and_then(|session| session.running.as_mut()) else { return };
        // Before the prompt is sent, what comes belongs to the turn before.
        if turn.cut || turn.making.is_some() {
            return;
        }
        let (cut, message) = (&mut turn.cut, &mut turn.message);
        turn.said.send_modify(|Said { text: all, .. }| {
            if std::mem::take(&mut message.1) {
                message.0 = all.len();
            }
            let room = MAX_TEXT - all.len();
            if text.len() <= room {
                all.push_str(text);
            } else {
                all.push_str(&text[..text.floor_char_boundary(room)]);
                all.push_str(CUT);
                *cut = true;
            }
        });
    }

    /// Notes that the agent does something: what it says next is another message.
    pub(super) fn act(&mut self, id: &str) {
        let session = self.by_id.get_mut(&SessionId::new(id));
        if let Some(turn) = session.and_then(|session| session.running.as_mut()) {
            turn.message.1 = true;
        }
    }

    /// Ends the running turn with the agent's stop reason, or an error.
    pub(super) fn end_turn(&mut self, id: &SessionId, ended: Result<String, HostError>) {
        let Some(turn) = self.by_id.get_mut(id).and_then(|session| session.running.take()) else {
            return;
        };
        self.publish_answer(id, &turn);
        let session = id.clone();
        let outcome = ended.map(|stop_reason| PromptOutcome {
            session,
            stop_reason,
            reason: None,
            text: turn.said.borrow().text.clone(),
            blocked: Vec::new(),
        });
        // Whoever prompted may have gone; the turn ended all the same.
        let _ = turn.reply.send(outcome);
    }

    fn publish_answer(&self, id: &SessionId, turn: &Turn) {
        if let Some(answers) = &self.answers {
            let said = turn.said.borrow();
            answers.publish(id, said.text.get(turn.message.0..).unwrap_or_default());
        }
    }

    /// Withdraws what was not sent yet; says how many prompts that were.
    pub(super) fn withdraw(&mut self, id: &SessionId) -> usize {
        let Some(session) = self.by_id.get_mut(id) else { return 0 };
        let mut prompts = session.asked_for();
        session.refuse_queued(&HostError::Withdrawn);
        if let Some(turn) = session.running.take_if(|turn| turn.making.is_some()) {
            prompts += 1;
            if let Some(making) = turn.making {
                making.abort();
            }
            let _ = turn.reply.send(Err(HostError::Withdrawn));
        }
        prompts
    }

    /// Marks the turn that runs; says whether there was one.
    pub(super) fn cancel(&mut self, id: &SessionId) -> bool {
        let running = self.by_id.get_mut(id).and_then(|session| session.running.as_mut());
        match running {
            Some(turn) if turn.making.is_none() => {
                turn.cancelled = true;
                true
            }
            _ => false,
        }
    }

    /// Every session with what runs and waits in it.
    pub(super) fn loads(&self) -> Vec<SessionLoad> {
        let load = |(id, session): (&SessionId, &HostSession)| SessionLoad {
            session: id.clone(),
            is_default: self.default.as_ref() == Some(id),
            is_running: session.running.as_ref().is_some_and(|turn| turn.making.is_none()),
            queued: session.asked_for(),
        };
        self.by_id.iter().map(load).collect()
    }

    /// Whether the running turn was cancelled.
    pub(super) fn is_cancelled(&self, id: &str) -> bool {
        let session = self.by_id.get(&SessionId::new(id));
        session.and_then(|session| session.running.as_ref()).is_some_and(|turn| turn.cancelled)
    }

    /// Ends everything, running and queued.
    pub(super) fn fail(&mut self, error: &HostError) {
        for (id, mut session) in std::mem::take(&mut self.by_id) {
            if let Some(turn) = session.running.take() {
                self.publish_answer(&id, &turn);
                let _ = turn.reply.send(Err(error.clone()));
            }
            session.refuse_queued(error);
        }
    }
}

impl Turn {
    fn of(reply: Reply<PromptOutcome>, said: watch::Sender<Said>) -> Self {
        Self { reply, making: None, said, cut: false, cancelled: false, message: (0, false) }
    }
}

impl HostSession {
    fn waiting(&self) -> usize {
        self.briefings.len() + self.queued.len()
    }

    /// Of those that wait, the ones that somebody still waits for.
    fn asked_for(&self) -> usize {
        let waiting = self.briefings.iter().chain(&self.queued);
        waiting.filter(|prompt| !prompt.reply.is_closed()).count()
    }

    fn refuse_queued(&mut self, error: &HostError) {
        for prompt in self.briefings.drain(..).chain(self.queued.drain(..)) {
            let _ = prompt.reply.send(Err(error.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
