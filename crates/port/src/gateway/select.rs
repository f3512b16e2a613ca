//! `/select`: transfers a session to another agent. Until that has opened or loaded it, the session stays
//! where it was.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::actor::{ActorDone, GatewayActor, Purpose};
use super::dial::{Dialed, dial};
use super::introductions::MAX_ID;
use super::message::{self, About, CANCELLED};
use super::session::{LinkOf, Move, OnAnswer, OpenRequest, SessionState};
use crate::acp;
use crate::acp::AcpMessage;
use crate::line::lenient;

/// The note on a session that an agent had before.
const ANEW: &str = " It is a new one there: the agent does not go on with the earlier one";

/// Agents whose ids of a session are remembered.
const MAX_EARLIER: usize = 16;

/// The mode that a session is in.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ModesNow {
    #[serde(deserialize_with = "lenient")]
    current_mode_id: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OptionsUpdate {
    session_update: &'static str,
    config_options: Vec<Value>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Value>,
}

impl GatewayActor {
    /// Begins a transfer; an error is why not.
    pub(super) fn select(
        &mut self,
        client: u64,
        id: &RawValue,
        name: &str,
        agent: &str,
        with_history: bool,
    ) -> Result<(), String> {
        let introduction = self.introduction(client).map_err(|(_, why)| why)?;
        self.has_room().map_err(|(_, why)| why)?;
        let ticket = self.next_id();
        let session = self.sessions.get_mut(name).ok_or("the session is gone")?;
        if session.turns > 0 {
            return Err("A turn runs in this session: wait for its end, or cancel it.".to_owned());
        }
        if session.agent == agent && session.link.is_some() {
            return Err(format!("The session is at `{agent}` already."));
        }
        let id = id.to_owned();
        let left = CancellationToken::new();
        let attaching = left.clone().drop_guard();
        let on = Move { ticket, client, id, link: None, lost: None, _attaching: attaching };
        session.state = SessionState::Moving(on);
        let before = with_history.then(|| (session.agent.clone(), session.target.clone()));
        let (team, agent, name) = (self.team.clone(), agent.to_owned(), name.to_owned());
        self.work.push(Box::pin(async move {
            let outcome = dial(&*team, &agent, &introduction, before, &left).await;
            ActorDone::Dialed { purpose: Purpose::Move { session: name, ticket }, outcome }
        }));
        self.count(client, 1);
        Ok(())
    }

    /// The transfer with this ticket, if it still goes on.
    fn moving(&mut self, name: &str, ticket: u64) -> Option<&mut Move> {
        match &mut self.sessions.get_mut(name)?.state {
            SessionState::Moving(on) if on.ticket == ticket => Some(on),
            _ => None,
        }
    }

    pub(super) fn dialed_move(&mut self, name: &str, ticket: u64, outcome: Result<Dialed, String>) {
        let mut dialed = match outcome {
            Ok(dialed) => dialed,
            Err(why) => return self.move_failed(name, ticket, &why),
        };
        // Dropping it ends the attachment.
        if self.moving(name, ticket).is_none() {
            return;
        }
        let (offers, history) = (dialed.offers, dialed.history.take());
        let agent = dialed.agent.clone();
        let link = self.link(dialed, LinkOf::Session(name.to_owned()));
        if let Some(on) = self.moving(name, ticket) {
            on.link = Some(link);
        }
        let Some(session) = self.sessions.get(name) else { return };
        let target = session.target_at(&agent).map(str::to_owned);
        match target.filter(|_| offers.load || offers.resume) {
            Some(target) => {
                let method = if offers.resume { "session/resume" } else { "session/load" };
                let params = with_session(&session.params, &target);
                let effect = OnAnswer::Moves {
                    session: name.to_owned(),
                    ticket,
                    target: Some(target),
                    history,
                };
                self.ask_target(link, method, &params, effect);
            }
            None => self.open_at_target(name, ticket, link, history),
        }
    }

    fn open_at_target(&mut self, name: &str, ticket: u64, link: u64, history: Option<String>) {
        let Some(session) = self.sessions.get(name) else { return };
        let params = session.params.get().to_owned();
        let effect = OnAnswer::Moves { session: name.to_owned(), ticket, target: None, history };
        self.ask_target(link, "session/new", &params, effect);
    }

    fn ask_target(&mut self, link: u64, method: &str, params: &str, effect: OnAnswer) {
        let number = self.next_id();
        let since = Instant::now();
        self.asked.insert(number, OpenRequest { client: None, link, effect, since });
        self.send_to_link(link, message::request(number, method, params));
    }

    /// The target has answered.
    pub(super) fn moved(
        &mut self,
        name: &str,
        ticket: u64,
        link: u64,
        target: Option<String>,
        history: Option<String>,
        outcome: Result<Option<&RawValue>, &RawValue>,
    ) {
        if self.moving(name, ticket).is_none() {
            return self.close_link(link);
        }
        let result = match outcome {
            Ok(result) => result,
            // Where it does not go on with the earlier one, for whatever reason, it may open one anew.
            Err(error) if target.is_some() => {
                let why = message::complaint(error);
                if let Some(on) = self.moving(name, ticket) {
                    on.lost = Some(why);
                }
                return self.open_at_target(name, ticket, link, history);
            }
            Err(error) => {
                let why = message::complaint(error);
                return self.move_failed(name, ticket, &why);
            }
        };
        let is_new = target.is_none();
        let opened = || About::read(result).ok()?.session().map(Cow::into_owned);
        let target = target.or_else(opened).filter(|target| target.len() <= MAX_ID);
        let Some(target) = target else {
            return self.move_failed(name, ticket, "it answered without a session");
        };
        let Some(agent) = self.links.get_mut(&link).map(|link| {
            link.target = Some(target.clone());
            link.agent.clone()
        }) else {
            return self.move_failed(name, ticket, "it has ended");
        };
        let Some(session) = self.sessions.get_mut(name) else { return };
        let is_anew = is_new && session.target_at(&agent).is_some();
        let from = std::mem::replace(&mut session.agent, agent.clone());
        let old = std::mem::replace(&mut session.target, target);
        session.earlier.retain(|(other, _)| *other != from && *other != agent);
        if from != agent {
            session.earlier.push((from, old));
        }
        if session.earlier.len() > MAX_EARLIER {
            session.earlier.remove(0);
        }
        // Nothing was said where it is empty.
        session.history = history.filter(|history| !history.trim().is_empty());
        let left = session.link.replace(link);
        let SessionState::Moving(on) = std::mem::replace(&mut session.state, SessionState::Open)
        else {
            return;
        };
        if let Some(left) = left {
            self.close_link(left);
        }
        self.tell_anew(name);
        let anew = match on.lost {
            _ if !is_anew => String::new(),
            None => format!("{ANEW}."),
            Some(why) => format!("{ANEW}: {why}"),
        };
        self.say(name, &format!("This session is at `{agent}` now.{anew}"));
        self.answer(on.client, message::result(&on.id, r#"{"stopReason":"end_turn"}"#));
        self.release(name);
    }

    /// Tells the clients what the session's new agent offers: nothing of the earlier one is left.
    fn tell_anew(&mut self, name: &str) {
        let Some(session) = self.sessions.get(name) else { return };
        let clients = session.clients.clone();
        let Some(link) = session.link.and_then(|link| self.links.get(&link)) else { return };
        let (modes, models) = (link.setup.modes.clone(), link.setup.models.clone());
        let options = match &link.setup.options {
            Value::Array(options) => options.clone(),
            _ => Vec::new(),
        };
        if let Some(mode) = acp::read::<ModesNow>(&modes).current_mode_id {
            let meta = json!({ "eisen-core": { "modes": modes } });
            let update = json!({
                "sessionUpdate": "current_mode_update", "currentModeId": mode, "_meta": meta,
            });
            self.send_to(&clients, &message::update(name, &update));
        }
        let update = json!(OptionsUpdate {
            session_update: "config_option_update",
            config_options: options,
            meta: (!models.is_null()).then(|| json!({ "eisen-core": { "models": models } })),
        });
        self.send_to(&clients, &message::update(name, &update));
        self.announce(name, &clients);
    }

    /// The session stays where it was, and its clients are told why.
    pub(super) fn move_failed(&mut self, name: &str, ticket: u64, why: &str) {
        if self.moving(name, ticket).is_none() {
            return;
        }
        let Some(session) = self.sessions.get_mut(name) else { return };
        let stays = format!("{why}\n\nThe session stays at `{}`.", session.agent);
        let SessionState::Moving(on) = std::mem::replace(&mut session.state, SessionState::Open)
        else {
            return;
        };
        if let Some(link) = on.link {
            self.close_link(link);
        }
        self.say(name, &stays);
        self.answer(on.client, message::result(&on.id, r#"{"stopReason":"end_turn"}"#));
        self.release(name);
    }

    /// `session/cancel` during a transfer ends it, and the prompts that wait for it; false if there is none.
    pub(super) fn cancel_move(&mut self, client: u64, name: &str) -> bool {
        let session = self.sessions.get_mut(name).filter(|it| it.clients.contains(&client));
        let Some(session) = session else { return false };
        let SessionState::Moving(on) = &session.state else { return false };
        let by = on.client;
        let (prompts, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut session.held).into_iter().partition(|(_, line)| {
                let message = AcpMessage::parse(line);
                matches!(message, Ok(AcpMessage::Request { method, .. }) if method == "session/prompt")
            });
        session.held = others.into();
        for (client, line) in prompts {
            if let Ok(AcpMessage::Request { id, .. }) = AcpMessage::parse(&line) {
                self.send_to_client(client, message::result(id, CANCELLED));
            }
        }
        self.give_up_move(by, name);
        true
    }

    /// `$/cancel_request` for the prompt of a transfer; false if the id is of another request.
    pub(super) fn cancel_move_by_id(&mut self, client: u64, id: &RawValue) -> bool {
        let is_it = |state: &SessionState| matches!(state, SessionState::Moving(on) if on.client == client && on.id.get() == id.get());
        let found = self.sessions.iter().find(|(_, session)| is_it(&session.state));
        let Some(name) = found.map(|(name, _)| name.clone()) else { return false };
        self.give_up_move(client, &name);
        true
    }

    /// Ends a transfer that nobody waits for any more.
    pub(super) fn give_up_move(&mut self, client: u64, name: &str) {
        let Some(session) = self.sessions.get_mut(name) else { return };
        let SessionState::Moving(on) = std::mem::replace(&mut session.state, SessionState::Open)
        else {
            return;
        };
        if let Some(link) = on.link {
            self.close_link(link);
        }
        self.answer(client, message::result(&on.id, CANCELLED));
        self.release(name);
    }
}

/// The params of `session/load` from those of `session/new`.
pub(super) fn with_session(params: &RawValue, target: &str) -> String {
    let mut params: Value = serde_json::from_str(params.get()).unwrap_or_default();
    if let Value::Object(params) = &mut params {
        params.insert("sessionId".to_owned(), target.into());
    }
    params.to_string()
}
