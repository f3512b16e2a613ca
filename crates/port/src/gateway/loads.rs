//! Loads sessions again, lets further clients into them, and keeps lines that come while a session is not
//! open, or a client not introduced.

use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::actor::{GatewayActor, Purpose};
use super::dial::Dialed;
use super::from_client::{ClientRefusal, gone, invalid_params};
use super::message::{self, About, CANCELLED, Edited};
use super::select::with_session;
use super::session::{AgentQuestion, LinkOf, Load, Offers, OnAnswer, OpenRequest, SessionState};
use crate::acp::AcpMessage;
use crate::model::code;

/// Lines and bytes that are held while a session is not open, or a client not introduced; one more is
/// refused.
const MAX_HELD: usize = 64;
const MAX_HELD_BYTES: usize = 4 << 20;

impl GatewayActor {
    /// Opens a session again, or lets a further client into it.
    pub(super) fn load(
        &mut self,
        client: u64,
        id: &RawValue,
        method: &str,
        name: &str,
        line: &Bytes,
    ) -> Result<(), ClientRefusal> {
        let introduction = self.introduction(client)?;
        let has_room = self.has_room();
        let ticket = self.next_id();
        let Some(session) = self.sessions.get_mut(name) else {
            let why = format!("There is no session `{name}`");
            return Err((code::RESOURCE_NOT_FOUND, why));
        };
        if !matches!(session.state, SessionState::Open) {
            return self.hold(client, name, line);
        }
        let is_member = session.clients.contains(&client);
        let load =
            Load { ticket, client, opens: session.link.is_none(), is_member, is_silent: false };
        let Some(link) = session.link else {
            has_room?;
            let agent = session.agent.clone();
            session.state = SessionState::Loading(load);
            let (line, session) = (line.clone(), name.to_owned());
            let purpose = Purpose::Load { client, id: id.to_owned(), line, session, ticket };
            self.dial_for(client, agent, introduction, purpose);
            return Ok(());
        };
        if !is_member {
            session.clients.push(client);
        }
        let offers = self.links.get(&link).map_or(Offers::default(), |link| link.offers);
        let replays = method == "session/load" && session.turns == 0 && offers.load;
        if !replays {
            let setup = self.links.get(&link).map(|link| link.setup.answer()).unwrap_or_default();
            self.send_to_client(client, message::result(id, &setup.to_string()));
            self.catch_up(name, client);
            return Ok(());
        }
        session.state = SessionState::Loading(load);
        let sent = self.send_load(load, link, name, line);
        if sent.is_err() {
            self.loaded(name, ticket, false);
        }
        sent
    }

    /// Sends a client's `session/load` or `session/resume` to the agent.
    fn send_load(
        &mut self,
        load: Load,
        link: u64,
        name: &str,
        line: &Bytes,
    ) -> Result<(), ClientRefusal> {
        let Ok(AcpMessage::Request { id, method, params }) = AcpMessage::parse(line) else {
            return Ok(());
        };
        if let (Some(other), Some(params)) = (self.other_way(link, &method), params) {
            return self.send_other(load, link, name, id, other, params);
        }
        let about = About::read(params).map_err(invalid_params)?;
        let mut edited = Edited::new(line);
        if let (Some(part), Some(session)) = (about.session_id, self.sessions.get(name)) {
            edited = edited.replace(part, message::quoted(&session.target));
        }
        let effect = OnAnswer::Loads { session: name.to_owned(), ticket: load.ticket };
        self.ask(load.client, id, link, edited, effect)
    }

    /// How to open a session at an agent that does not offer the client's way, but the other: the client
    /// knows what the agent offers where sessions begin.
    fn other_way(&self, link: u64, method: &str) -> Option<&'static str> {
        let offers = self.links.get(&link)?.offers;
        match method {
            "session/resume" if !offers.resume && offers.load => Some("session/load"),
            "session/load" if !offers.load && offers.resume => Some("session/resume"),
            _ => None,
        }
    }

    fn send_other(
        &mut self,
        load: Load,
        link: u64,
        name: &str,
        id: &RawValue,
        method: &str,
        params: &RawValue,
    ) -> Result<(), ClientRefusal> {
        self.takes_more(link)?;
        let number = self.next_id();
        let Some(session) = self.sessions.get_mut(name) else { return Ok(()) };
        if let SessionState::Loading(load) = &mut session.state {
            load.is_silent = method == "session/load";
        }
        let request = message::request(number, method, &with_session(params, &session.target));
        self.count(load.client, 1);
        let effect = OnAnswer::Loads { session: name.to_owned(), ticket: load.ticket };
        let (client, since) = (Some((load.client, id.to_owned())), Instant::now());
        self.asked.insert(number, OpenRequest { client, link, effect, since });
        self.send_to_link(link, request);
        Ok(())
    }

    /// An attachment for a load is there, or could not be made.
    pub(super) fn dialed_load(
        &mut self,
        client: u64,
        id: &RawValue,
        line: &Bytes,
        name: &str,
        ticket: u64,
        outcome: Result<Dialed, String>,
    ) {
        let Some(load) = self.loading(name, ticket) else {
            return self.failed(client, id, "The session is gone");
        };
        let dialed = match outcome {
            Ok(dialed) => dialed,
            Err(why) => {
                self.failed(client, id, &why);
                self.loaded(name, ticket, false);
                return self.release(name);
            }
        };
        // Dropping the attachment ends it.
        if !self.is_there(client) {
            self.failed(client, id, "You have left");
            self.loaded(name, ticket, false);
            return self.release(name);
        }
        let link = self.link(dialed, LinkOf::Session(name.to_owned()));
        if let Some(session) = self.sessions.get_mut(name) {
            session.link = Some(link);
            if !session.clients.contains(&client) {
                session.clients.push(client);
            }
            if let Some(state) = self.links.get_mut(&link) {
                state.target = Some(session.target.clone());
            }
        }
        // Its request was counted until here, and `send_load` counts it again.
        let sent = self.send_load(load, link, name, line);
        self.count(client, -1);
        if let Err((code, why)) = sent {
            self.send_to_client(client, message::failure(id, code, &why));
            self.loaded(name, ticket, false);
            self.release(name);
        }
    }

    /// The load with this ticket, if it still goes on.
    pub(super) fn loading(&self, name: &str, ticket: u64) -> Option<Load> {
        match &self.sessions.get(name)?.state {
            SessionState::Loading(load) if load.ticket == ticket => Some(*load),
            _ => None,
        }
    }

    /// A session is loaded for a client, or could not be: then it is as it was before.
    pub(super) fn loaded(&mut self, name: &str, ticket: u64, is_done: bool) {
        let Some(load) = self.loading(name, ticket) else { return };
        let Some(session) = self.sessions.get_mut(name) else { return };
        session.state = SessionState::Open;
        if is_done {
            return;
        }
        if !load.is_member {
            session.clients.retain(|other| *other != load.client);
        }
        let is_left = load.opens || session.clients.is_empty();
        let left = if is_left { session.take_link() } else { None };
        if let Some(link) = left {
            self.close_link(link);
        }
    }

    /// Tells a client that has come into a session its commands, and what waits for a decision.
    pub(super) fn catch_up(&mut self, name: &str, client: u64) {
        self.announce(name, &[client]);
        let link = self.sessions.get(name).and_then(|session| session.link);
        let Some(state) = self.clients.get(&client) else { return };
        let is_for = |question: &AgentQuestion| {
            let serves = |(method, _): &(String, _)| state.offers.serves(method);
            Some(question.link) == link
                && !question.clients.contains(&client)
                && question.for_all.as_ref().is_some_and(serves)
        };
        let mut open: Vec<u64> = self
            .questions
            .iter()
            .filter(|(_, question)| is_for(question))
            .map(|(number, _)| *number)
            .collect();
        open.sort_unstable();
        for number in open {
            let Some(question) = self.questions.get_mut(&number) else { continue };
            question.clients.push(client);
            if let Some((_, line)) = question.for_all.clone() {
                self.send_to_client(client, line);
            }
        }
    }

    /// Keeps a line until a session is open.
    pub(super) fn hold(
        &mut self,
        client: u64,
        name: &str,
        line: &Bytes,
    ) -> Result<(), ClientRefusal> {
        let Some(session) = self.sessions.get_mut(name) else { return Ok(()) };
        if !has_room_for(&session.held, line) {
            return Err(gone("The session is being opened, and too much waits for that"));
        }
        session.held.push_back((client, line.clone()));
        Ok(())
    }

    /// Whether a request or notification came before the answer to the client's `initialize`.
    pub(super) fn is_early(&self, client: u64, method: &str) -> bool {
        let is_introducing = self.clients.get(&client).is_some_and(|client| client.introducing);
        is_introducing && !matches!(method, "initialize" | "$/cancel_request")
    }

    /// Keeps a line until the client's `initialize` is answered.
    pub(super) fn hold_early(&mut self, client: u64, line: &Bytes) {
        let Some(state) = self.clients.get_mut(&client) else { return };
        if has_room_for(&state.held, line) {
            state.held.push_back((client, line.clone()));
        } else if let Ok(AcpMessage::Request { id, .. }) = AcpMessage::parse(line) {
            let why = "`initialize` is not answered, and too much waits for that";
            self.send_to_client(client, message::failure(id, code::INTERNAL_ERROR, why));
        }
    }

    /// Takes the lines that waited for the answer to a client's `initialize`.
    pub(super) fn release_early(&mut self, client: u64) {
        let held = self.clients.get_mut(&client).map(|it| std::mem::take(&mut it.held));
        let held = held.unwrap_or_default();
        if self.is_there(client) {
            return self.take_up(held);
        }
        for (_, line) in held {
            if let Ok(AcpMessage::Request { id, .. }) = AcpMessage::parse(&line) {
                let why = "You have left";
                self.send_to_client(client, message::failure(id, code::INTERNAL_ERROR, why));
            }
        }
    }

    /// Takes the lines that waited for a session.
    pub(super) fn release(&mut self, name: &str) {
        let held = self.sessions.get_mut(name).map(|it| std::mem::take(&mut it.held));
        self.take_up(held.unwrap_or_default());
    }

    pub(super) fn take_up(&mut self, held: VecDeque<(u64, Bytes)>) {
        for (client, line) in held {
            self.on_client_line(client, &line);
        }
    }

    /// Answers a request that waits as cancelled; false if none with this id waits.
    pub(super) fn cancel_held(&mut self, client: u64, named: &RawValue) -> bool {
        let is_it = |(by, line): &(u64, Bytes)| {
            *by == client
                && matches!(AcpMessage::parse(line), Ok(AcpMessage::Request { id, .. }) if id.get() == named.get())
        };
        let of_sessions = self.sessions.values_mut().map(|session| &mut session.held);
        let of_clients = self.clients.values_mut().map(|client| &mut client.held);
        let line = of_sessions.chain(of_clients).find_map(|held| {
            let at = held.iter().position(is_it)?;
            held.remove(at)
        });
        let Some((_, line)) = line else { return false };
        if let Ok(AcpMessage::Request { id, method, .. }) = AcpMessage::parse(&line) {
            let answer = if method == "session/prompt" {
                message::result(id, CANCELLED)
            } else {
                message::failure(id, code::REQUEST_CANCELLED, "Request cancelled")
            };
            self.send_to_client(client, answer);
        }
        true
    }
}

/// Whether one more line may be held.
fn has_room_for(held: &VecDeque<(u64, Bytes)>, line: &Bytes) -> bool {
    let bytes: usize = held.iter().map(|(_, line)| line.len()).sum();
    held.len() < MAX_HELD && bytes + line.len() <= MAX_HELD_BYTES
}
