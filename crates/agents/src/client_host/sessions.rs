//! The sessions of one agent: running turns, queued prompts and the answers' text. Pure state:
//! sends nothing.

mod queue;

use std::collections::{HashMap, VecDeque};

use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, Id};

use super::messages::Reply;
use super::tool_form::names_mcp;
use super::{
    Answers, Chosen, Content, HostError, LONGEST_ACTION, PromptOutcome, Said, SessionLoad,
    is_command,
};
use crate::model::{SessionId, ToolsForm, one_line};
pub(super) use queue::QueuedPrompt;

/// Bytes of an answer that are kept; the rest is cut, with a note in the text.
const MAX_TEXT: usize = 16 << 20;
const CUT: &str = "\n[cut: the answer was longer than 16 MiB]";

#[derive(Debug, Default)]
pub(super) struct HostSessions {
    by_id: HashMap<SessionId, HostSession>,
    /// The first session that was opened.
    default: Option<SessionId>,
    answers: Option<Answers>,
}

#[derive(Debug, Default)]
struct HostSession {
    running: Option<Turn>,
    briefings: VecDeque<QueuedPrompt>,
    queued: VecDeque<QueuedPrompt>,
    /// No prompt of it is sent.
    held: bool,
    /// The form in which a new one has the tools of the team; None once a prompt of it has ended well.
    new: Option<ToolsForm>,
    /// Its editor has left: the next editor that names it becomes its owner.
    left: bool,
}

/// Whether an editor may own a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Claim {
    Unknown,
    /// The session was left by an editor, and the host has released it.
    Given,
    /// The session is the team's own, or in use.
    Kept,
}

#[derive(Debug)]
struct Turn {
    reply: Reply<PromptOutcome>,
    /// Set while its content is being created; nothing was sent yet.
    making: Option<AbortHandle>,
    /// Published to the prompt's sender.
    said: watch::Sender<Said>,
    cut: bool,
    cancelled: bool,
    /// The prompt of a new session, to send it again.
    first: Option<Vec<Value>>,
    /// Where the last message begins in the text, and whether the next chunk begins a new one.
    message: (usize, bool),
}

impl HostSessions {
    pub(super) fn new(answers: Option<Answers>) -> Self {
        Self { answers, ..Self::default() }
    }

    /// Adds a session, or marks a known one as new. One that is beside an agent's work never becomes the
    /// default.
    pub(super) fn open(&mut self, id: SessionId, is_beside: bool, new: Option<ToolsForm>) {
        if !is_beside {
            self.default.get_or_insert_with(|| id.clone());
        }
        self.by_id.entry(id).or_default().new = new;
    }

    /// The form of the tools in a session of which no prompt has ended well.
    pub(super) fn new_form(&self, id: &SessionId) -> Option<ToolsForm> {
        self.by_id.get(id)?.new
    }

    /// Takes the first prompt of a session, to send it again: only if the agent did nothing with it, and said
    /// no more than why.
    pub(super) fn take_first(&mut self, id: &SessionId) -> Option<(ToolsForm, Vec<Value>)> {
        let session = self.by_id.get_mut(id)?;
        let turn = session.running.as_mut()?;
        let is_idle = {
            let said = turn.said.borrow();
            said.last_action.is_none() && (said.text.is_empty() || names_mcp(&said.text))
        };
        let may_go_on = is_idle && !turn.cancelled && !turn.reply.is_closed();
        Some((session.new?, turn.first.take().filter(|_| may_go_on)?))
    }

    /// Returns the named session, or the default.
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

    /// Takes over the session of an editor that left. A turn that still runs counts as cancelled,
    /// and has no caller.
    pub(super) fn adopt(&mut self, id: SessionId, runs: bool) {
        let (closed, _) = oneshot::channel();
        let running =
            runs.then(|| Turn { cancelled: true, ..Turn::of(closed, watch::Sender::default()) });
        self.by_id.insert(id, HostSession { running, left: true, ..HostSession::default() });
    }

    /// Releases a session to an editor, if it may have it.
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

    /// Holds an idle session: its prompts wait until it is released.
    pub(super) fn hold(&mut self, id: &SessionId) -> Result<(), HostError> {
        match self.by_id.get_mut(id) {
            Some(it) if it.running.is_none() && it.waiting() == 0 && !it.held => {
                it.held = true;
                Ok(())
            }
            Some(_) => Err(HostError::Busy(id.clone())),
            None => Err(HostError::UnknownSession(id.clone())),
        }
    }

    pub(super) fn release(&mut self, id: &SessionId) {
        if let Some(session) = self.by_id.get_mut(id) {
            session.held = false;
        }
    }

    /// If no turn runs, begins the turn of the next prompt whose caller is still waiting, and
    /// returns its content.
    pub(super) fn begin(&mut self, id: &SessionId) -> Option<Content> {
        let session = self.by_id.get_mut(id)?;
        if session.running.is_some() || session.held {
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

    /// Records the task that creates the content of the turn.
    pub(super) fn making(&mut self, id: &SessionId, task: AbortHandle) {
        if let Some(turn) = self.by_id.get_mut(id).and_then(|session| session.running.as_mut()) {
            turn.making = Some(task);
        }
    }

    /// Returns the session whose content the task created, and whether its caller is still waiting.
    pub(super) fn made(&mut self, task: Id) -> Option<(SessionId, bool)> {
        self.by_id.iter_mut().find_map(|(id, session)| {
            let turn = session.running.as_mut()?;
            turn.making.take_if(|making| making.id() == task)?;
            Some((id.clone(), !turn.reply.is_closed()))
        })
    }

    /// Records that the prompt of the running turn was sent. Nothing is said yet in this turn, whatever was in
    /// another one for the same caller.
    pub(super) fn sent(&mut self, id: &SessionId, blocks: Vec<Value>) {
        let Some(session) = self.by_id.get_mut(id) else { return };
        if let Some(turn) = &mut session.running {
            turn.first = session.new.and(Some(blocks)).filter(|blocks| !is_command(blocks));
            turn.said.send_modify(|said| {
                let (attempt, session) = (said.attempt + 1, Some(id.clone()));
                *said = Said { attempt, session, ..Said::default() };
            });
        }
    }

    /// Appends text of the agent to the running turn, if there is one. Messages are parted by line ends.
    pub(super) fn append_text(&mut self, id: &str, text: &str) {
        let session = self.by_id.get_mut(&SessionId::new(id));
        let Some(turn) = session.and_then(|session| session.running.as_mut()) else { return };
        // Before the prompt is sent, text belongs to the previous turn.
        if turn.cut || turn.making.is_some() {
            return;
        }
        let (cut, message) = (&mut turn.cut, &mut turn.message);
        turn.said.send_modify(|Said { text: all, .. }| {
            if std::mem::take(&mut message.1) {
                let parts = !all.is_empty() && !all.ends_with('\n');
                all.push_str(if parts { "\n" } else { "" });
                message.0 = all.len();
            }
            let room = MAX_TEXT.saturating_sub(all.len());
            if text.len() <= room {
                all.push_str(text);
            } else {
                all.push_str(&text[..text.floor_char_boundary(room)]);
                all.push_str(CUT);
                *cut = true;
            }
        });
    }

    /// The agent's next text is a new message.
    fn end_message(&mut self, id: &str) {
        let session = self.by_id.get_mut(&SessionId::new(id));
        if let Some(turn) = session.and_then(|session| session.running.as_mut()) {
            turn.message.1 = true;
        }
    }

    /// The agent acts: what it said before is not its last message.
    pub(super) fn act(&mut self, id: &str, title: Option<String>) {
        self.end_message(id);
        let session = self.by_id.get_mut(&SessionId::new(id));
        let turn = session.and_then(|session| session.running.as_mut());
        // Before the prompt is sent, it belongs to the previous turn.
        if let Some(turn) = turn.filter(|turn| turn.making.is_none()) {
            let action = title.map(|title| shown(&title)).filter(|action| !action.is_empty());
            turn.said.send_modify(|said| {
                said.last_message_at = said.text.len();
                said.last_action = action.or(said.last_action.take());
            });
        }
    }

    /// Ends the running turn with the agent's stop reason, or an error.
    pub(super) fn end_turn(&mut self, id: &SessionId, ended: Result<String, HostError>) {
        let Some(turn) = self.by_id.get_mut(id).and_then(|session| session.running.take()) else {
            return;
        };
        self.publish_answer(id, &turn);
        if let (Ok(_), Some(_), Some(session)) = (&ended, &turn.first, self.by_id.get_mut(id)) {
            session.new = None;
        }
        let session = id.clone();
        // Whatever the agent says of a turn that was cancelled before its answer came.
        let ended = if turn.cancelled { Ok("cancelled".to_owned()) } else { ended };
        let outcome = ended.map(|stop_reason| PromptOutcome {
            session,
            stop_reason,
            reason: None,
            text: turn.said.borrow().text.clone(),
            last_message_at: turn.said.borrow().last_message_at,
            blocked: Vec::new(),
            refused: Vec::new(),
        });
        // The turn has ended, even if its caller is gone.
        let _ = turn.reply.send(outcome);
    }

    fn publish_answer(&self, id: &SessionId, turn: &Turn) {
        if let Some(answers) = &self.answers {
            let said = turn.said.borrow();
            answers.publish(id, said.text.get(turn.message.0..).unwrap_or_default());
        }
    }

    /// Withdraws the prompts that were not sent yet; returns their number.
    pub(super) fn withdraw(&mut self, id: &SessionId) -> usize {
        let Some(session) = self.by_id.get_mut(id) else { return 0 };
        let mut prompts = session.queued_count();
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

    /// Marks the running turn as cancelled; returns whether there is one.
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

    /// Returns every session with its load.
    pub(super) fn loads(&self) -> Vec<SessionLoad> {
        let load = |(id, session): (&SessionId, &HostSession)| SessionLoad {
            session: id.clone(),
            is_default: self.default.as_ref() == Some(id),
            is_running: session.running.as_ref().is_some_and(|turn| turn.making.is_none()),
            queued: session.queued_count(),
            chosen: Chosen::default(),
        };
        self.by_id.iter().map(load).collect()
    }

    /// Whether the running turn was cancelled.
    pub(super) fn is_cancelled(&self, id: &str) -> bool {
        let session = self.by_id.get(&SessionId::new(id));
        session.and_then(|session| session.running.as_ref()).is_some_and(|turn| turn.cancelled)
    }

    /// Fails all prompts, running and queued.
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
        let message = (0, false);
        Self { reply, making: None, said, cut: false, cancelled: false, first: None, message }
    }
}

/// The title of a tool call as one line, cut.
fn shown(title: &str) -> String {
    let cut = |text: &str| text[..text.floor_char_boundary(LONGEST_ACTION)].to_owned();
    cut(one_line(&cut(title)).trim())
}

#[cfg(test)]
mod tests;
