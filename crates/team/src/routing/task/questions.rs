//! Answers agents that ask for an access, or for the owners of a path.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::Task;
use super::requests::{asks_orchestrator, opens, why_denied};
use crate::model::{AccessRule, AgentId, BlockedId, SessionId};
use crate::routing::grants::Allowed;
use crate::routing::shown::Showable;
use crate::routing::{AccessAnswer, Request, ResolveError, Settlement};
use crate::zone::Zone;

type ShowReply = Result<Showable, ResolveError>;

#[derive(Debug)]
pub(in crate::routing) enum AskingMsg {
    Access {
        request: Request,
        sessions: Vec<SessionId>,
        reply: oneshot::Sender<AccessAnswer>,
    },
    Rule {
        request: Request,
        reply: oneshot::Sender<Option<AccessRule>>,
    },
    Owners {
        path: String,
        reply: oneshot::Sender<Vec<AgentId>>,
    },
    Show {
        id: BlockedId,
        reader: Option<AgentId>,
        reply: oneshot::Sender<ShowReply>,
    },
    Zone {
        agent: AgentId,
        reply: oneshot::Sender<Option<Arc<Zone>>>,
    },
    /// The zones of all agents.
    Zones {
        reply: oneshot::Sender<HashMap<AgentId, Arc<Zone>>>,
    },
}

impl Task {
    pub(super) fn asking(&mut self, message: AskingMsg) {
        // A dropped receiver is no error: its pending access then expires.
        match message {
            AskingMsg::Access { request, sessions, reply } => {
                drop(reply.send(self.ask_for(request, sessions)));
            }
            AskingMsg::Rule { request, reply } => drop(reply.send(self.rule(&request))),
            AskingMsg::Owners { path, reply } => drop(reply.send(self.owners(&path))),
            AskingMsg::Show { id, reader, reply } => drop(reply.send(self.showable(&id, reader))),
            AskingMsg::Zones { reply } => drop(reply.send(self.settings.rules.zones.clone())),
            AskingMsg::Zone { agent, reply } => {
                drop(reply.send(self.settings.rules.zones.get(&agent).cloned()));
            }
        }
    }

    fn ask_for(&mut self, request: Request, sessions: Vec<SessionId>) -> AccessAnswer {
        let rule = self.rule(&request);
        if self.grants.cover(&request, &self.judged(&request, rule)) {
            return AccessAnswer::Open;
        }
        if opens(rule) {
            // What follows may come by a way that the rule does not name.
            let allowed = Allowed::request(&request, false);
            self.grants.add(&allowed, None, Settlement::Allowed, None);
            return AccessAnswer::Open;
        }
        let agent = &request.key.agent;
        if !request.grantable {
            return AccessAnswer::Closed("it cannot be opened to any agent".to_owned());
        }
        if let Some(why) = rule.and_then(why_denied) {
            return AccessAnswer::Closed(why);
        }
        if self.is_for_nobody(rule) {
            let why = "a person would decide it, and none can be asked here".to_owned();
            return AccessAnswer::Closed(why);
        }
        if asks_orchestrator(rule) && self.is_orchestrator(agent) {
            let why =
                "you decide accesses of the others, and none of your own: a person may open it";
            return AccessAnswer::Closed(why.to_owned());
        }
        if asks_orchestrator(rule) && self.orchestrated.contains_key(agent) {
            let why = "the orchestrator waits for the end of your turn, so that it decides nothing \
                       before: end your turn, and say in it what you need";
            return AccessAnswer::Closed(why.to_owned());
        }
        if !self.rates.take(agent) {
            return AccessAnswer::Closed(
                "you asked for too much at once: wait, and ask again".to_owned(),
            );
        }
        let (reply, answer) = oneshot::channel();
        AccessAnswer::Waits(self.hold(request, sessions, None, reply), answer)
    }
}
