//! Introduces clients, and opens sessions for them.

use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::actor::{ActorDone, GatewayActor, Purpose};
use super::dial::{Dialed, dial};
use super::from_client::{ClientRefusal, gone, invalid_params};
use super::message;
use super::session::{ClientOffers, GatewaySession, LinkOf, OnAnswer, OpenRequest, SessionState};
use crate::line;
use crate::model::code;

/// Attachments to agents, those that begin, and commands that are carried out; one more is refused. Each
/// open session has one attachment, and each client one more.
const MAX_ATTACHMENTS: usize = 320;

/// Sessions that can be loaded again; past it the oldest that nobody has open is forgotten.
const MAX_KNOWN: usize = 1000;

/// Bytes of params that are kept for later.
const MAX_PARAMS: usize = 256 * 1024;

/// Bytes of an agent's id of a session.
pub(super) const MAX_ID: usize = 4096;

impl GatewayActor {
    /// Attaches to the agent where sessions begin, for a client.
    pub(super) fn initialize(
        &mut self,
        client: u64,
        id: &RawValue,
        params: Option<&RawValue>,
    ) -> Result<(), ClientRefusal> {
        let params = kept(params)?;
        self.has_room()?;
        let agent = self.default_agent()?;
        let Some(state) = self.clients.get_mut(&client) else { return Ok(()) };
        if state.introducing || state.introduction.is_some() {
            return Err((code::INVALID_REQUEST, "`initialize` came already".to_owned()));
        }
        state.introducing = true;
        let purpose = Purpose::Introduce { client, id: id.to_owned(), params: params.clone() };
        self.dial_for(client, agent, params, purpose);
        Ok(())
    }

    pub(super) fn open_new(
        &mut self,
        client: u64,
        id: &RawValue,
        params: Option<&RawValue>,
    ) -> Result<(), ClientRefusal> {
        let params = kept(params)?;
        self.has_room()?;
        let agent = self.default_agent()?;
        let introduction = self.introduction(client)?;
        let purpose = Purpose::New { client, id: id.to_owned(), params };
        self.dial_for(client, agent, introduction, purpose);
        Ok(())
    }

    /// Attaches a client again for what names no session: its attachment has ended.
    pub(super) fn open_control(
        &mut self,
        client: u64,
        id: &RawValue,
        line: &Bytes,
    ) -> Result<(), ClientRefusal> {
        self.has_room()?;
        let agent = self.default_agent()?;
        let introduction = self.introduction(client)?;
        let purpose = Purpose::Control { client, id: id.to_owned(), line: line.clone() };
        self.dial_for(client, agent, introduction, purpose);
        Ok(())
    }

    pub(super) fn dialed_control(
        &mut self,
        client: u64,
        id: &RawValue,
        line: &Bytes,
        outcome: Result<Dialed, String>,
    ) {
        let dialed = match outcome {
            Ok(dialed) => dialed,
            Err(why) => return self.failed(client, id, &why),
        };
        let has_one = self.clients.get(&client).is_some_and(|state| state.control.is_some());
        // Another request may have been faster.
        if !has_one && self.is_there(client) {
            let link = self.link(dialed, LinkOf::Client(client));
            if let Some(state) = self.clients.get_mut(&client) {
                state.control = Some(link);
            }
        }
        if !self.is_there(client) {
            return self.failed(client, id, "You have left");
        }
        // The request was counted until here, and is counted again.
        self.count(client, -1);
        self.on_client_line(client, line);
    }

    fn default_agent(&self) -> Result<String, ClientRefusal> {
        self.team.default_agent().ok_or_else(|| gone("The team has no agents"))
    }

    pub(super) fn introduction(&self, client: u64) -> Result<Box<RawValue>, ClientRefusal> {
        let state = self.clients.get(&client);
        state
            .and_then(|state| state.introduction.clone())
            .ok_or_else(|| (code::INVALID_REQUEST, "`initialize` comes first".to_owned()))
    }

    /// Whether there may be one more attachment.
    pub(super) fn has_room(&self) -> Result<(), ClientRefusal> {
        if self.links.len() + self.work.len() >= MAX_ATTACHMENTS {
            return Err(gone("Too many sessions of the gateway are open"));
        }
        Ok(())
    }

    /// Attaches to an agent for a request of a client.
    pub(super) fn dial_for(
        &mut self,
        client: u64,
        agent: String,
        params: Box<RawValue>,
        purpose: Purpose,
    ) {
        self.count(client, 1);
        let team = self.team.clone();
        let left = match (&purpose, self.clients.get(&client)) {
            // That is answered also to a client that sends nothing more.
            (Purpose::Introduce { .. }, _) | (_, None) => CancellationToken::new(),
            (_, Some(state)) => state.left.clone(),
        };
        self.work.push(Box::pin(async move {
            let outcome = dial(&*team, &agent, &params, None, &left).await;
            ActorDone::Dialed { purpose, outcome }
        }));
    }

    /// The agent has answered a client's `initialize`, or could not.
    pub(super) fn introduced(
        &mut self,
        client: u64,
        id: &RawValue,
        params: Box<RawValue>,
        outcome: Result<Dialed, String>,
    ) {
        let is_there = self.is_there(client);
        let Some(state) = self.clients.get_mut(&client) else { return };
        state.introducing = false;
        let answer = match &outcome {
            Ok(dialed) => {
                message::result(id, &self.introduction_of(&dialed.introduction).to_string())
            }
            Err(why) => message::failure(id, code::INTERNAL_ERROR, why),
        };
        self.send_to_client(client, answer);
        // A client that sends nothing more needs no attachment.
        if let Some(dialed) = outcome.ok().filter(|_| is_there) {
            let link = self.link(dialed, LinkOf::Client(client));
            if let Some(state) = self.clients.get_mut(&client) {
                state.offers = ClientOffers::of(&params);
                state.introduction = Some(params);
                state.control = Some(link);
            }
        }
        self.release_early(client);
        self.count(client, -1);
    }

    /// The answer of the agent where sessions begin, with what the gateway does itself.
    fn introduction_of(&self, said: &RawValue) -> Value {
        let mut said: Value = line::read(said.get().as_bytes()).unwrap_or_default();
        if let Value::Object(said) = &mut said {
            let name = format!("Team {}", self.team.name());
            let version = env!("CARGO_PKG_VERSION");
            let info = json!({ "name": "eisen-core", "title": name, "version": version });
            said.insert("agentInfo".to_owned(), info);
            let capabilities = said.entry("agentCapabilities").or_insert_with(|| json!({}));
            if let Value::Object(capabilities) = capabilities {
                let own = capabilities.entry("sessionCapabilities").or_insert_with(|| json!({}));
                if let Value::Object(own) = own {
                    own.shift_remove("fork");
                    own.insert("list".to_owned(), json!({}));
                    own.insert("close".to_owned(), json!({}));
                }
            }
        }
        said
    }

    pub(super) fn dialed_new(
        &mut self,
        client: u64,
        id: Box<RawValue>,
        params: Box<RawValue>,
        dialed: Dialed,
    ) {
        // Dropping the attachment ends it.
        if !self.is_there(client) {
            return self.failed(client, &id, "You have left");
        }
        let link = self.link(dialed, LinkOf::Opening(client));
        let number = self.next_id();
        let request = message::request(number, "session/new", params.get());
        let effect = OnAnswer::Opens(params);
        let since = Instant::now();
        self.asked.insert(number, OpenRequest { client: Some((client, id)), link, effect, since });
        self.send_to_link(link, request);
    }

    /// Adds the session that an agent opened; returns its id.
    pub(super) fn add_session(
        &mut self,
        client: u64,
        link: u64,
        target: String,
        params: Box<RawValue>,
    ) -> String {
        let name = Uuid::now_v7().to_string();
        let agent = self.links.get(&link).map(|link| link.agent.clone()).unwrap_or_default();
        if let Some(state) = self.links.get_mut(&link) {
            state.of = LinkOf::Session(name.clone());
            state.target = Some(target.clone());
        }
        let session = GatewaySession {
            agent,
            target,
            link: Some(link),
            clients: vec![client],
            params,
            earlier: Vec::new(),
            state: SessionState::Open,
            held: VecDeque::new(),
            turns: 0,
            history: None,
            title: None,
        };
        if self.order.len() >= MAX_KNOWN {
            let is_unused = |name: &&String| self.is_closed(name);
            if let Some(oldest) = self.order.iter().find(is_unused).cloned() {
                self.forget(&oldest);
            }
        }
        self.sessions.insert(name.clone(), session);
        self.order.push(name.clone());
        name
    }
}

/// Params that are kept: an object of a bounded length.
fn kept(params: Option<&RawValue>) -> Result<Box<RawValue>, ClientRefusal> {
    let params = params.filter(|params| params.get().starts_with('{'));
    let params = params.ok_or_else(|| invalid_params("they must be an object".to_owned()))?;
    if params.get().len() > MAX_PARAMS {
        return Err(invalid_params(format!("they have more than {MAX_PARAMS} bytes")));
    }
    Ok(params.to_owned())
}
