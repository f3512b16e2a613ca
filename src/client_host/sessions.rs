//! The sessions of one agent: who runs, who waits, and what the agent said. Pure state: sends
//! nothing itself.

use std::collections::{HashMap, VecDeque};

use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, Id};

use super::actor::Reply;
use super::{Content, HostError, PromptOutcome, Said, SessionLoad, Urgency};
use crate::model::SessionId;

/// Prompts that may wait in one session; one more is refused.
const MAX_QUEUED: usize = 1000;

/// Bytes of an agent's answer that are kept for whoever prompted; the rest is cut, and the text
/// says so.
const MAX_TEXT: usize = 16 << 20;
const CUT: &str = "\n[cut: the answer was longer than 16 MiB]";

#[derive(Debug, Default)]
pub(super) struct Sessions {
    by_id: HashMap<SessionId, Session>,
    /// The first that was opened.
    default: Option<SessionId>,
}

#[derive(Debug, Default)]
struct Session {
    running: Option<Turn>,
    briefings: VecDeque<Prompt>,
    queued: VecDeque<Prompt>,
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
pub(super) struct Prompt {
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
}

impl Sessions {
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
        self.by_id.insert(id, Session { running, left: true, ..Session::default() });
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
    pub(super) fn queue(&mut self, id: &SessionId, prompt: Prompt, urgency: Urgency) {
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
    pub(super) fn say(&mut self, id: &str, text: &str) {
        let session = self.by_id.get_mut(&SessionId::new(id));
        let Some(turn) = session.and_then(|session| session.running.as_mut()) else { return };
        // Before the prompt is sent, what comes belongs to the turn before.
        if turn.cut || turn.making.is_some() {
            return;
        }
        let cut = &mut turn.cut;
        turn.said.send_modify(|Said { text: all, .. }| {
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

    /// Ends the running turn with the agent's stop reason, or an error.
    pub(super) fn end_turn(&mut self, id: &SessionId, ended: Result<String, HostError>) {
        let Some(turn) = self.by_id.get_mut(id).and_then(|session| session.running.take()) else {
            return;
        };
        let session = id.clone();
        let outcome = ended.map(|stop_reason| PromptOutcome {
            session,
            stop_reason,
            text: turn.said.borrow().text.clone(),
            blocked: Vec::new(),
        });
        // Whoever prompted may have gone; the turn ended all the same.
        let _ = turn.reply.send(outcome);
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
        let load = |(id, session): (&SessionId, &Session)| SessionLoad {
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
        for (_, mut session) in self.by_id.drain() {
            if let Some(turn) = session.running.take() {
                let _ = turn.reply.send(Err(error.clone()));
            }
            session.refuse_queued(error);
        }
    }
}

impl Turn {
    fn of(reply: Reply<PromptOutcome>, said: watch::Sender<Said>) -> Self {
        Self { reply, making: None, said, cut: false, cancelled: false }
    }
}

impl Session {
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
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::{Value, json};

    use super::*;

    type Answer = oneshot::Receiver<Result<PromptOutcome, HostError>>;

    fn id() -> SessionId {
        SessionId::new("s")
    }

    fn sessions() -> Sessions {
        let mut sessions = Sessions::default();
        sessions.open(id());
        sessions
    }

    fn queue(sessions: &mut Sessions, name: &str, urgency: Urgency) -> Answer {
        let (reply, answer) = oneshot::channel();
        sessions.queue(
            &id(),
            Prompt {
                content: Content::Now(vec![json!(name)]),
                said: watch::Sender::default(),
                reply,
            },
            urgency,
        );
        answer
    }

    fn begin(sessions: &mut Sessions) -> Option<Vec<Value>> {
        match sessions.begin(&id())? {
            Content::Now(blocks) => Some(blocks),
            Content::Later(_) => panic!("only contents that are there are queued"),
        }
    }

    #[test]
    fn briefings_go_behind_the_running_turn_and_before_the_rest() {
        let mut sessions = sessions();
        let mut answers = Vec::new();
        answers.push(queue(&mut sessions, "first", Urgency::Normal));
        assert_eq!(begin(&mut sessions).unwrap(), [json!("first")]);
        for (name, urgency) in [
            ("a", Urgency::Normal),
            ("x", Urgency::Briefing),
            ("b", Urgency::Normal),
            ("y", Urgency::Briefing),
        ] {
            answers.push(queue(&mut sessions, name, urgency));
        }
        assert_eq!(begin(&mut sessions), None, "one turn a session");
        let mut order = Vec::new();
        sessions.end_turn(&id(), Ok("end_turn".to_owned()));
        while let Some(blocks) = begin(&mut sessions) {
            order.push(blocks[0].clone());
            sessions.end_turn(&id(), Ok("end_turn".to_owned()));
        }
        assert_eq!(order, ["x", "y", "a", "b"]);
    }

    #[test]
    fn a_full_queue_refuses_until_somebody_leaves() {
        let mut sessions = sessions();
        let mut answers: Vec<_> =
            (0..MAX_QUEUED).map(|_| queue(&mut sessions, "p", Urgency::Normal)).collect();
        let refused = queue(&mut sessions, "p", Urgency::Briefing).try_recv().unwrap();
        assert!(matches!(refused, Err(HostError::QueueFull { queued: MAX_QUEUED, .. })));
        answers.pop();
        let mut accepted = queue(&mut sessions, "p", Urgency::Normal);
        assert!(accepted.try_recv().is_err(), "it waits");
    }

    #[test]
    fn a_long_answer_is_cut_at_a_character() {
        let mut sessions = sessions();
        let mut answer = queue(&mut sessions, "p", Urgency::Normal);
        begin(&mut sessions);
        sessions.say("s", &"x".repeat(MAX_TEXT - 1));
        sessions.say("s", "é");
        sessions.say("s", "more");
        sessions.say("other", "more");
        sessions.end_turn(&id(), Ok("end_turn".to_owned()));
        let text = answer.try_recv().unwrap().unwrap().text;
        assert_eq!(text.len(), MAX_TEXT - 1 + CUT.len());
        assert!(text.ends_with(CUT));
    }
}
