//! Lines of agents: answers, and what they send and ask in sessions.

use std::borrow::Cow;
use std::collections::VecDeque;

use bytes::Bytes;
use memchr::memmem;
use serde_json::json;
use serde_json::value::RawValue;

use super::actor::GatewayActor;
use super::commands;
use super::introductions::MAX_ID;
use super::message::{self, About, Edited};
use super::session::{AgentQuestion, LinkOf, OnAnswer, OpenRequest, SessionState};
use super::setup::{SetupChange, SetupChoice};
use crate::acp::AcpMessage;
use crate::model::code;

/// Requests of agents that wait for clients; one more is refused.
const MAX_QUESTIONS: usize = 1024;

/// Waiting requests of one attachment: an agent that asks without end leaves room for the others.
const MAX_OF_LINK: usize = 128;

/// Most bytes of a line kept for later clients.
const MAX_KEPT: usize = 64 * 1024;

impl GatewayActor {
    pub(super) fn on_agent_line(&mut self, link: u64, line: &Bytes) {
        match AcpMessage::parse(line) {
            Ok(AcpMessage::Notification { method, params }) => {
                self.on_said(link, &method, params, line);
            }
            Ok(AcpMessage::Request { id, method, params }) => {
                if let Err((code, why)) = self.on_question(link, id, &method, params, line) {
                    self.send_to_link(link, message::failure(id, code, &why));
                }
            }
            Ok(AcpMessage::Response { id, outcome }) => {
                let asked = message::number(id)
                    .filter(|it| self.asked.get(it).is_some_and(|asked| asked.link == link));
                if let Some(asked) = asked.and_then(|number| self.asked.remove(&number)) {
                    self.on_answer(asked, id, outcome, line);
                }
            }
            Err(error) => tracing::debug!(%error, "no message of an agent"),
        }
    }

    /// The gateway's session of an attachment, and the clients that get what the agent sends in it; an error is
    /// why there is none.
    fn audience(&self, link: u64, about: &About<'_>) -> Result<(String, Vec<u64>), String> {
        let no = || "There is no such session".to_owned();
        let state = self.links.get(&link).ok_or_else(no)?;
        let LinkOf::Session(name) = &state.of else { return Err(no()) };
        if state.target.is_none() || about.session().as_deref() != state.target.as_deref() {
            return Err(no());
        }
        let session = self.sessions.get(name).ok_or_else(no)?;
        let clients = match &session.state {
            // What an agent repeats of earlier turns is known.
            SessionState::Moving(on) if on.link == Some(link) => Vec::new(),
            // The session has left this attachment.
            _ if session.link != Some(link) => return Err(no()),
            SessionState::Loading(load) if load.is_silent => Vec::new(),
            SessionState::Loading(load) => vec![load.client],
            SessionState::Open | SessionState::Moving(_) | SessionState::Closing => {
                session.clients.clone()
            }
        };
        Ok((name.clone(), clients))
    }

    fn on_said(&mut self, link: u64, method: &str, params: Option<&RawValue>, line: &Bytes) {
        let Ok(about) = About::read(params) else { return };
        if method == "$/cancel_request" {
            let Some(named) = about.request_id else { return };
            let question =
                self.questions.iter().find(|(_, it)| it.link == link && it.id.get() == named.get());
            if let Some((number, question)) = question {
                let (number, clients) = (*number, question.clients.clone());
                let line = Edited::new(line).replace(named, number.to_string()).line();
                self.send_to(&clients, &line);
            }
            return;
        }
        let Some(part) = about.session_id else {
            return self.send_to(&self.recipients(link), &Edited::new(line).line());
        };
        let change = self.learn(link, &about, params, line);
        let Ok((name, clients)) = self.audience(link, &about) else { return };
        if change == Some(SetupChange::Commands) {
            return self.announce(&name, &clients);
        }
        let line = Edited::new(line).replace(part, message::quoted(&name)).line();
        self.send_to(&clients, &line);
    }

    /// The clients that get what an agent sends outside of sessions. It sends that on each of
    /// its attachments, and a client gets it on the first.
    fn recipients(&self, link: u64) -> Vec<u64> {
        let Some(state) = self.links.get(&link) else { return Vec::new() };
        let is_on = |number: u64, of: &LinkOf, client: u64| match of {
            LinkOf::Client(by) | LinkOf::Opening(by) => *by == client,
            LinkOf::Session(name) => self
                .sessions
                .get(name)
                .is_some_and(|it| it.link == Some(number) && it.clients.contains(&client)),
        };
        let first_of = |client: u64| {
            let its = self.links.iter().filter(|(number, other)| {
                other.agent == state.agent && is_on(**number, &other.of, client)
            });
            its.map(|(number, _)| *number).min()
        };
        let clients = self.clients.keys().copied();
        let its = clients.filter(|client| is_on(link, &state.of, *client));
        its.filter(|client| first_of(*client) == Some(link)).collect()
    }

    /// Keeps what an agent reports of its session's setup, also while a transfer is under way.
    fn learn(
        &mut self,
        link: u64,
        about: &About<'_>,
        params: Option<&RawValue>,
        line: &[u8],
    ) -> Option<SetupChange> {
        memmem::find(line, b"_update\"")?;
        let state = self.links.get_mut(&link)?;
        let is_its = match &state.target {
            Some(target) => about.session().as_deref() == Some(target),
            None => matches!(state.of, LinkOf::Session(_)),
        };
        if is_its { state.setup.updated(params) } else { None }
    }

    pub(super) fn send_to(&mut self, clients: &[u64], line: &Bytes) {
        for client in clients {
            self.send_to_client(*client, line.clone());
        }
    }

    /// Sends clients the commands of a session: the gateway's, and those of its agent.
    pub(super) fn announce(&mut self, name: &str, clients: &[u64]) {
        let Some(session) = self.sessions.get(name) else { return };
        let link = session.link.and_then(|link| self.links.get(&link));
        let commands = commands::all(link.map(|link| &link.setup.commands));
        let update =
            json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands });
        self.send_to(clients, &message::update(name, &update));
    }

    /// Passes a request of an agent to clients: a decision to all, anything else to one that serves it.
    fn on_question(
        &mut self,
        link: u64,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        line: &Bytes,
    ) -> Result<(), (i32, String)> {
        let about = About::read(params).map_err(|why| (code::INVALID_PARAMS, why))?;
        let of_link = self.questions.values().filter(|question| question.link == link).count();
        if self.questions.len() >= MAX_QUESTIONS || of_link >= MAX_OF_LINK {
            let why = "The clients of the gateway have too much to answer".to_owned();
            return Err((code::INTERNAL_ERROR, why));
        }
        let mut edited = Edited::new(line);
        let mut clients = match (about.session_id, about.request_id) {
            (Some(part), _) => {
                let found = self.audience(link, &about);
                let (name, clients) = found.map_err(|why| (code::INVALID_PARAMS, why))?;
                edited = edited.replace(part, message::quoted(&name));
                clients
            }
            (None, Some(named)) => {
                let asked = message::number(named).and_then(|number| self.asked.get(&number));
                let asked = asked.filter(|asked| asked.link == link);
                match asked.and_then(|asked| asked.client.clone()) {
                    Some((client, id)) => {
                        edited = edited.replace(named, id.get().to_owned());
                        vec![client]
                    }
                    None => Vec::new(),
                }
            }
            (None, None) => match self.links.get(&link).map(|link| &link.of) {
                Some(LinkOf::Client(client)) => vec![*client],
                _ => Vec::new(),
            },
        };
        clients
            .retain(|client| self.clients.get(client).is_some_and(|it| it.offers.serves(method)));
        let is_for_all = matches!(method, "session/request_permission" | "elicitation/create");
        if !is_for_all {
            clients.truncate(1);
        }
        if clients.is_empty() {
            let why = format!("No client of this session serves `{method}`");
            return Err((code::METHOD_NOT_FOUND, why));
        }
        let number = self.next_id();
        let line = edited.replace(id, number.to_string()).line();
        let is_kept = is_for_all && about.session_id.is_some() && line.len() <= MAX_KEPT;
        let for_all = is_kept.then(|| (method.to_owned(), line.clone()));
        let question = AgentQuestion { link, for_all, id: id.to_owned(), clients: clients.clone() };
        self.questions.insert(number, question);
        self.send_to(&clients, &line);
        Ok(())
    }

    fn on_answer(
        &mut self,
        asked: OpenRequest,
        part: &RawValue,
        outcome: Result<Option<&RawValue>, &RawValue>,
        line: &Bytes,
    ) {
        let OpenRequest { client, link, effect, .. } = asked;
        let mut edited = Edited::new(line);
        let (mut opened, mut held) = (None, VecDeque::new());
        match effect {
            OnAnswer::Nothing => {}
            OnAnswer::Prompt { session, with_history } => {
                let session = self.sessions.get_mut(&session);
                if let Some(session) = session.filter(|session| session.link == Some(link)) {
                    session.turns = session.turns.saturating_sub(1);
                    if with_history && outcome.is_ok() {
                        session.history = None;
                    }
                }
            }
            OnAnswer::Sets { session, choice } => {
                if let (Ok(result), Some((client, _))) = (outcome, &client) {
                    self.has_set(&session, *client, link, &choice, result);
                }
            }
            OnAnswer::Closes { session, forgets } => {
                held = self.end_session(&session, forgets, outcome.is_ok());
            }
            OnAnswer::Opens(params) => {
                let named = outcome.ok().and_then(|result| About::read(result).ok());
                let target = named.as_ref().and_then(About::session).map(Cow::into_owned);
                let target = target.filter(|target| target.len() <= MAX_ID);
                let client = client.as_ref().map(|(client, _)| *client);
                match (target, named.and_then(|named| named.session_id), client) {
                    (Some(target), Some(part), Some(client)) if self.is_there(client) => {
                        let name = self.add_session(client, link, target, params);
                        edited = edited.replace(part, message::quoted(&name));
                        self.has_opened(link, outcome);
                        opened = Some((name, client));
                    }
                    _ => self.close_link(link),
                }
            }
            OnAnswer::Loads { session, ticket } => {
                self.has_opened(link, outcome);
                self.loaded(&session, ticket, outcome.is_ok());
                opened = client.as_ref().map(|(client, _)| (session, *client));
            }
            OnAnswer::Moves { session, ticket, target, history } => {
                self.has_opened(link, outcome);
                return self.moved(&session, ticket, link, target, history, outcome);
            }
        }
        if let Some((client, id)) = client {
            let line = edited.replace(part, id.get().to_owned()).line();
            self.answer(client, line);
        }
        if let Some((name, client)) = opened {
            if self.sessions.get(&name).is_some_and(|it| it.clients.contains(&client)) {
                self.catch_up(&name, client);
            }
            self.release(&name);
        }
        self.take_up(held);
    }

    /// Keeps the setup that an agent answers with when it opens a session.
    fn has_opened(&mut self, link: u64, outcome: Result<Option<&RawValue>, &RawValue>) {
        if let (Some(link), Ok(result)) = (self.links.get_mut(&link), outcome) {
            link.setup.opened(result);
        }
    }

    /// A client has set something: the protocol answers that client alone, the gateway informs the others.
    fn has_set(
        &mut self,
        name: &str,
        client: u64,
        link: u64,
        choice: &SetupChoice,
        result: Option<&RawValue>,
    ) {
        let Some(session) = self.sessions.get(name) else { return };
        // Behind a transfer it is of no meaning.
        if session.link != Some(link) {
            return;
        }
        let Some(state) = self.links.get_mut(&link) else { return };
        state.setup.chose(choice);
        state.setup.opened(result.filter(|_| matches!(choice, SetupChoice::Option)));
        let update = match choice {
            SetupChoice::Mode(mode) => {
                json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode })
            }
            SetupChoice::Option => {
                let options = state.setup.options.clone();
                json!({ "sessionUpdate": "config_option_update", "configOptions": options })
            }
            // The protocol has no notification of it.
            SetupChoice::Model(_) => return,
        };
        let others: Vec<u64> =
            session.clients.iter().copied().filter(|other| *other != client).collect();
        self.send_to(&others, &message::update(name, &update));
    }
}
