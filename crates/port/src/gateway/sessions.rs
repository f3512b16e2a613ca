//! The handling of sessions and requests when a client or an agent leaves, or when nothing comes.

use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use super::Peer;
use super::actor::{ActorDone, GatewayActor, Purpose};
use super::dial::MAX_WAIT;
use super::message;
use super::session::{GatewaySession, LinkOf, OnAnswer, OpenRequest, SessionState};
use crate::model::code;

impl GatewayActor {
    pub(super) fn on_done(&mut self, done: ActorDone) {
        match done {
            ActorDone::Said { client, id, session, text } => {
                self.say(&session, &text);
                self.answer(client, message::result(&id, r#"{"stopReason":"end_turn"}"#));
            }
            ActorDone::Dialed { purpose, outcome } => match purpose {
                Purpose::Move { session, ticket } => self.dialed_move(&session, ticket, outcome),
                Purpose::Introduce { client, id, params } => {
                    self.introduced(client, &id, params, outcome);
                }
                Purpose::New { client, id, params } => match outcome {
                    Ok(dialed) => self.dialed_new(client, id, params, dialed),
                    Err(why) => self.failed(client, &id, &why),
                },
                Purpose::Control { client, id, line } => {
                    self.dialed_control(client, &id, &line, outcome);
                }
                Purpose::Load { client, id, line, session, ticket } => {
                    self.dialed_load(client, &id, &line, &session, ticket, outcome);
                }
            },
        }
    }

    /// Whether a client closes a session by leaving it: others have it open, or its agent closes none.
    pub(super) fn closes_by_leaving(&self, client: u64, name: &str) -> bool {
        let Some(session) = self.sessions.get(name) else { return false };
        let link = session.link.and_then(|link| self.links.get(&link));
        let is_agents = link.is_some_and(|link| link.offers.close);
        session.clients.contains(&client) && (session.clients.len() > 1 || !is_agents)
    }

    /// Whether nobody has a session open, or waits for it.
    pub(super) fn is_closed(&self, name: &str) -> bool {
        let is_unused = |it: &GatewaySession| {
            it.link.is_none() && it.clients.is_empty() && matches!(it.state, SessionState::Open)
        };
        self.sessions.get(name).is_some_and(is_unused)
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.sessions.remove(name);
        self.order.retain(|other| other != name);
    }

    /// A client leaves a session; the last one closes its attachment, by which its turn is cancelled.
    pub(super) fn detach(&mut self, client: u64, name: &str) {
        let Some(session) = self.sessions.get_mut(name) else { return };
        session.clients.retain(|other| *other != client);
        let moving = match &session.state {
            SessionState::Moving(on) if on.client == client => Some(on.client),
            _ => None,
        };
        let link = if session.clients.is_empty() { session.take_link() } else { None };
        if let Some(client) = moving {
            self.give_up_move(client, name);
        }
        if let Some(link) = link {
            self.close_link(link);
        }
    }

    /// A session was closed at its agent, or stays open; returns the lines that waited for that.
    pub(super) fn end_session(
        &mut self,
        name: &str,
        forgets: bool,
        is_done: bool,
    ) -> VecDeque<(u64, Bytes)> {
        let Some(session) = self.sessions.get_mut(name) else { return VecDeque::new() };
        session.state = SessionState::Open;
        let held = std::mem::take(&mut session.held);
        if !is_done {
            return held;
        }
        session.clients.clear();
        if let Some(link) = session.take_link() {
            self.close_link(link);
        }
        if forgets {
            self.forget(name);
        }
        held
    }

    /// Ends an attachment once its requests are answered.
    pub(super) fn close_link(&mut self, link: u64) {
        self.outlets.close(Peer::Link(link));
    }

    pub(super) fn client_left(&mut self, client: u64) {
        let Some(state) = self.clients.get_mut(&client) else { return };
        state.leaving = true;
        state.left.cancel();
        if let Some(link) = state.control.take() {
            self.close_link(link);
        }
        let its = self.sessions.iter().filter(|(_, it)| it.clients.contains(&client));
        for name in its.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.detach(client, &name);
        }
        let mut unanswered = Vec::new();
        self.questions.retain(|_, question| {
            question.clients.retain(|other| *other != client);
            if question.clients.is_empty() {
                unanswered.push((question.link, question.id.clone()));
            }
            !question.clients.is_empty()
        });
        for (link, id) in unanswered {
            let why = "The client that was asked has left";
            self.send_to_link(link, message::failure(&id, code::INTERNAL_ERROR, why));
        }
        self.count(client, 0);
    }

    pub(super) fn link_ended(&mut self, link: u64) {
        let Some(state) = self.links.remove(&link) else { return };
        self.outlets.remove(Peer::Link(link));
        let numbers: Vec<u64> =
            self.asked.iter().filter(|(_, it)| it.link == link).map(|(id, _)| *id).collect();
        let why = format!("`{}` has ended", state.agent);
        let lost: Vec<_> =
            numbers.into_iter().filter_map(|number| self.asked.remove(&number)).collect();
        let withdrawn: Vec<_> =
            self.questions.iter().filter(|(_, it)| it.link == link).map(|(id, _)| *id).collect();
        for number in withdrawn {
            if let Some(question) = self.questions.remove(&number) {
                let params = json!({ "requestId": number });
                self.send_to(
                    &question.clients,
                    &message::notification("$/cancel_request", &params),
                );
            }
        }
        match state.of {
            LinkOf::Client(client) => {
                if let Some(state) = self.clients.get_mut(&client)
                    && state.control == Some(link)
                {
                    state.control = None;
                }
            }
            LinkOf::Session(name) => {
                if let Some(session) = self.sessions.get_mut(&name)
                    && session.link == Some(link)
                {
                    session.take_link();
                }
            }
            LinkOf::Opening(_) => {}
        }
        // Only now: lines that wait for one of them find the attachment gone.
        for asked in lost {
            self.unanswered(asked, &why);
        }
    }

    /// Ends requests that open or close a session and that an agent does not answer: others may wait for them.
    pub(super) fn end_late(&mut self) {
        let is_late = |asked: &OpenRequest| {
            let opens = matches!(
                asked.effect,
                OnAnswer::Opens(_)
                    | OnAnswer::Loads { .. }
                    | OnAnswer::Moves { .. }
                    | OnAnswer::Closes { .. }
            );
            opens && asked.since.elapsed() >= MAX_WAIT
        };
        let late: Vec<u64> =
            self.asked.iter().filter(|(_, it)| is_late(it)).map(|(id, _)| *id).collect();
        for asked in late.into_iter().filter_map(|id| self.asked.remove(&id)).collect::<Vec<_>>() {
            if matches!(asked.effect, OnAnswer::Opens(_)) {
                self.close_link(asked.link);
            }
            let agent = self.links.get(&asked.link).map_or("", |link| &link.agent);
            let why = format!("`{agent}` did not answer within {} s", MAX_WAIT.as_secs());
            self.unanswered(asked, &why);
        }
    }

    /// A request to which no answer will come.
    fn unanswered(&mut self, asked: OpenRequest, why: &str) {
        match asked.effect {
            OnAnswer::Moves { session, ticket, .. } => self.move_failed(&session, ticket, why),
            OnAnswer::Loads { session, ticket } => {
                self.loaded(&session, ticket, false);
                self.release(&session);
            }
            OnAnswer::Closes { session, forgets } => {
                let held = self.end_session(&session, forgets, false);
                self.take_up(held);
            }
            // Its attachment has ended, and the turns with that.
            OnAnswer::Prompt { .. }
            | OnAnswer::Nothing
            | OnAnswer::Opens(_)
            | OnAnswer::Sets { .. } => {}
        }
        if let Some((client, id)) = asked.client {
            self.failed(client, &id, why);
        }
    }

    /// Whether a client is there, and still sends.
    pub(super) fn is_there(&self, client: u64) -> bool {
        self.clients.get(&client).is_some_and(|client| !client.leaving)
    }

    /// Answers a request that was counted.
    pub(super) fn answer(&mut self, client: u64, line: Bytes) {
        self.send_to_client(client, line);
        self.count(client, -1);
    }

    pub(super) fn failed(&mut self, client: u64, id: &RawValue, why: &str) {
        self.answer(client, message::failure(id, code::INTERNAL_ERROR, why));
    }

    /// Counts open requests of a client; one that leaves is gone with its last.
    pub(super) fn count(&mut self, client: u64, more: isize) {
        let Some(state) = self.clients.get_mut(&client) else { return };
        state.open = state.open.saturating_add_signed(more);
        if state.leaving && state.open == 0 {
            self.clients.remove(&client);
            self.outlets.close(Peer::Client(client));
        }
    }

    /// Says something to all clients of a session, in the place of its agent.
    pub(super) fn say(&mut self, name: &str, text: &str) {
        let clients = self.sessions.get(name).map(|it| it.clients.clone()).unwrap_or_default();
        let content = json!({ "type": "text", "text": text });
        let said = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
        self.send_to(&clients, &message::update(name, &said));
    }
}
