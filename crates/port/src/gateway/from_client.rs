//! Lines of clients: what the gateway answers itself, and what goes on to the agent of a session.

use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::Peer;
use super::actor::GatewayActor;
use super::message::{self, About, Edited};
use super::session::{OnAnswer, OpenRequest, SessionState};
use super::setup::SetupChoice;
use crate::acp::AcpMessage;
use crate::line;
use crate::model::code;

/// Requests of one client that wait for an answer; one more is refused.
const MAX_OPEN: usize = 256;

/// Characters of a session's title.
const MAX_TITLE: usize = 80;

/// An error for a client.
pub(super) type ClientRefusal = (i32, String);

impl GatewayActor {
    pub(super) fn on_client_line(&mut self, client: u64, line: &Bytes) {
        if line.trim_ascii().is_empty() || !self.is_there(client) {
            return;
        }
        match AcpMessage::parse(line) {
            Ok(AcpMessage::Request { method, .. } | AcpMessage::Notification { method, .. })
                if self.is_early(client, &method) =>
            {
                self.hold_early(client, line);
            }
            Ok(AcpMessage::Request { id, method, params }) => {
                if let Err((code, why)) = self.on_request(client, id, &method, params, line) {
                    self.send_to_client(client, message::failure(id, code, &why));
                }
            }
            Ok(AcpMessage::Notification { method, params }) => {
                if let Err((_, why)) = self.on_notification(client, &method, params, line) {
                    tracing::debug!(%method, why, "dropped a notification of a client");
                }
            }
            Ok(AcpMessage::Response { id, outcome }) => {
                self.on_client_answer(client, id, outcome.is_ok(), line);
            }
            Err(error) => {
                let (code, why) = error.answer(line);
                self.send_to_client(client, message::failure(RawValue::NULL, code, &why));
            }
        }
    }

    fn on_request(
        &mut self,
        client: u64,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
        line: &Bytes,
    ) -> Result<(), ClientRefusal> {
        let Some(state) = self.clients.get(&client) else { return Ok(()) };
        if state.open >= MAX_OPEN {
            let why = format!("More than {MAX_OPEN} requests are open");
            return Err((code::INTERNAL_ERROR, why));
        }
        if method == "initialize" {
            return self.initialize(client, id, params);
        }
        if state.introduction.is_none() {
            return Err((code::INVALID_REQUEST, "`initialize` comes first".to_owned()));
        }
        let about = About::read(params).map_err(invalid_params)?;
        let session = about.session();
        match (method, session) {
            ("session/new", _) => self.open_new(client, id, params),
            ("session/load" | "session/resume", Some(session)) => {
                self.load(client, id, method, &session, line)
            }
            ("session/list", _) => {
                let listed = self.listed(params)?.to_string();
                self.send_to_client(client, message::result(id, &listed));
                Ok(())
            }
            ("session/fork", _) => {
                let why = "The gateway does not fork sessions".to_owned();
                Err((code::METHOD_NOT_FOUND, why))
            }
            ("session/close", Some(session)) if self.closes_by_leaving(client, &session) => {
                self.detach(client, &session);
                self.send_to_client(client, message::result(id, "{}"));
                Ok(())
            }
            ("session/delete", Some(session)) if self.is_closed(&session) => {
                self.forget(&session);
                self.send_to_client(client, message::result(id, "{}"));
                Ok(())
            }
            (_, Some(session)) => self.in_session(client, &session, line),
            (_, None) if about.session_id.is_some() => {
                Err(invalid_params("`sessionId` must be a string".to_owned()))
            }
            (_, None) => {
                let Some(control) = state.control else {
                    return self.open_control(client, id, line);
                };
                self.ask(client, id, control, Edited::new(line), OnAnswer::Nothing)
            }
        }
    }

    /// A request or notification in a session that the client has open.
    fn in_session(&mut self, client: u64, name: &str, line: &Bytes) -> Result<(), ClientRefusal> {
        let Some(session) = self.sessions.get(name).filter(|it| it.clients.contains(&client))
        else {
            let why = format!("You have no session `{name}` open: load it first");
            return Err(invalid_params(why));
        };
        let (id, method, params) = match AcpMessage::parse(line) {
            Ok(AcpMessage::Request { id, method, params }) => (Some(id), method, params),
            Ok(AcpMessage::Notification { method, params }) => (None, method, params),
            _ => return Ok(()),
        };
        match session.state {
            SessionState::Open => {}
            // An agent that closes may wait for a turn that is to be cancelled.
            SessionState::Closing if id.is_none() => {}
            _ => return self.hold(client, name, line),
        }
        let about = About::read(params).map_err(invalid_params)?;
        if let Some(id) = id.filter(|_| method == "session/prompt")
            && self.command(client, id, name, params)
        {
            return Ok(());
        }
        let Some(session) = self.sessions.get_mut(name) else { return Ok(()) };
        let link = session.link.ok_or_else(|| {
            gone("The agent of this session has ended: load the session again, or `/select` another one")
        })?;
        let mut edited = Edited::new(line);
        if let Some(part) = about.session_id {
            edited = edited.replace(part, message::quoted(&session.target));
        }
        let Some(id) = id else {
            self.send_to_link(link, edited.line());
            return Ok(());
        };
        // Before anything is noted of the request.
        self.takes_more(link)?;
        let sets = |choice| OnAnswer::Sets { session: name.to_owned(), choice };
        let session = name.to_owned();
        let effect = match &*method {
            "session/prompt" => {
                let with_history;
                (edited, with_history) = self.prompted(client, name, params, edited);
                OnAnswer::Prompt { session, with_history }
            }
            "session/set_mode" => sets(SetupChoice::Mode(member(params, "modeId"))),
            "session/set_model" => sets(SetupChoice::Model(member(params, "modelId"))),
            "session/set_config_option" => sets(SetupChoice::Option),
            "session/close" => OnAnswer::Closes { session, forgets: false },
            "session/delete" => OnAnswer::Closes { session, forgets: true },
            _ => OnAnswer::Nothing,
        };
        if let (OnAnswer::Closes { .. }, Some(session)) = (&effect, self.sessions.get_mut(name)) {
            session.state = SessionState::Closing;
        }
        self.ask(client, id, link, edited, effect)
    }

    /// A prompt that goes to the agent: the other clients see it, and what was said at an earlier agent
    /// goes along, until a turn with it has ended well. Returns whether it does.
    fn prompted<'a>(
        &mut self,
        client: u64,
        name: &str,
        params: Option<&'a RawValue>,
        edited: Edited<'a>,
    ) -> (Edited<'a>, bool) {
        self.show_prompt(client, name, params);
        let Some(session) = self.sessions.get_mut(name) else { return (edited, false) };
        session.turns += 1;
        // A turn that runs may have it.
        let history = session.history.as_ref().filter(|_| session.turns == 1);
        if session.title.is_some() && history.is_none() {
            return (edited, false);
        }
        let Some((whole, blocks)) = blocks(params) else { return (edited, false) };
        if session.title.is_none() {
            session.title = blocks.first().and_then(|block| title_of(block));
        }
        let Some(history) = history else { return (edited, false) };
        let block = json!({ "type": "text", "text": history });
        let comma = if blocks.is_empty() { "" } else { "," };
        (edited.insert_into(whole, format!("{block}{comma}")), true)
    }

    /// Shows a prompt to the other clients of a session.
    pub(super) fn show_prompt(&mut self, client: u64, name: &str, params: Option<&RawValue>) {
        let Some(session) = self.sessions.get(name) else { return };
        let others: Vec<u64> =
            session.clients.iter().copied().filter(|other| *other != client).collect();
        if others.is_empty() {
            return;
        }
        let Some((_, blocks)) = blocks(params) else { return };
        for block in blocks {
            self.send_to(&others, &message::user_message(name, block));
        }
    }

    pub(super) fn takes_more(&self, link: u64) -> Result<(), ClientRefusal> {
        if self.outlets.is_full(Peer::Link(link)) {
            return Err(gone("The agent takes nothing more for now"));
        }
        Ok(())
    }

    /// Forwards a client's request under an id of ours.
    pub(super) fn ask(
        &mut self,
        client: u64,
        id: &RawValue,
        link: u64,
        edited: Edited<'_>,
        effect: OnAnswer,
    ) -> Result<(), ClientRefusal> {
        self.takes_more(link)?;
        let number = self.next_id();
        let line = edited.replace(id, number.to_string()).line();
        self.count(client, 1);
        let (client, since) = (Some((client, id.to_owned())), Instant::now());
        self.asked.insert(number, OpenRequest { client, link, effect, since });
        self.send_to_link(link, line);
        Ok(())
    }

    fn on_notification(
        &mut self,
        client: u64,
        method: &str,
        params: Option<&RawValue>,
        line: &Bytes,
    ) -> Result<(), ClientRefusal> {
        let about = About::read(params).map_err(invalid_params)?;
        if method == "$/cancel_request" {
            let named = about.request_id.ok_or_else(|| invalid_params("no `requestId`".into()))?;
            if self.cancel_move_by_id(client, named) || self.cancel_held(client, named) {
                return Ok(());
            }
            let of_client = |asked: &OpenRequest| {
                let its = asked.client.as_ref();
                its.is_some_and(|(by, id)| *by == client && id.get() == named.get())
            };
            let found = self.asked.iter().find(|(_, asked)| of_client(asked));
            let (number, link) = found
                .map(|(number, asked)| (*number, asked.link))
                .ok_or_else(|| invalid_params("there is no such request".into()))?;
            let line = Edited::new(line).replace(named, number.to_string()).line();
            self.send_to_link(link, line);
            return Ok(());
        }
        match about.session() {
            Some(session) if method == "session/cancel" && self.cancel_move(client, &session) => {
                Ok(())
            }
            Some(session) => self.in_session(client, &session, line),
            None => {
                let control = self.clients.get(&client).and_then(|client| client.control);
                let control = control.ok_or_else(|| gone("The agent has ended"))?;
                self.send_to_link(control, Edited::new(line).line());
                Ok(())
            }
        }
    }

    /// The first answer to a request of an agent counts; the other clients are told that it is settled. An
    /// error counts if no other client can answer.
    fn on_client_answer(&mut self, client: u64, id: &RawValue, is_ok: bool, line: &Bytes) {
        let Some(number) = message::number(id) else { return };
        let Some(question) = self.questions.get_mut(&number) else { return };
        if !question.clients.contains(&client) {
            return;
        }
        if !is_ok && question.clients.len() > 1 {
            question.clients.retain(|other| *other != client);
            return;
        }
        let Some(question) = self.questions.remove(&number) else { return };
        let answer = Edited::new(line).replace(id, question.id.get()).line();
        self.send_to_link(question.link, answer);
        let settled = message::notification("$/cancel_request", &json!({ "requestId": number }));
        for other in question.clients.into_iter().filter(|other| *other != client) {
            self.send_to_client(other, settled.clone());
        }
    }
}

/// The `prompt` of params, and its blocks.
pub(super) fn blocks(params: Option<&RawValue>) -> Option<(&RawValue, Vec<&RawValue>)> {
    #[derive(serde::Deserialize)]
    struct Prompt<'a> {
        #[serde(borrow)]
        prompt: &'a RawValue,
    }
    let params = params?.get();
    if !params.starts_with('{') {
        return None;
    }
    let Prompt { prompt } = serde_json::from_str(params).ok()?;
    Some((prompt, serde_json::from_str(prompt.get()).ok()?))
}

/// A text member of params.
fn member(params: Option<&RawValue>, name: &str) -> serde_json::Value {
    let params = params.and_then(|it| line::read::<serde_json::Value>(it.get().as_bytes()).ok());
    let text = params.and_then(|params| params[name].as_str().map(str::to_owned));
    text.filter(|text| text.len() <= MAX_TITLE * 4).into()
}

/// The first line of a block of text, shortened.
fn title_of(block: &RawValue) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Block {
        text: String,
    }
    let Block { text } = line::read(block.get().as_bytes()).ok()?;
    let line = text.trim().lines().next()?;
    Some(line.chars().take(MAX_TITLE).collect())
}

pub(super) fn invalid_params(why: String) -> ClientRefusal {
    (code::INVALID_PARAMS, ["Invalid params: ".to_owned(), why].concat())
}

pub(super) fn gone(why: &str) -> ClientRefusal {
    (code::INTERNAL_ERROR, why.to_owned())
}
