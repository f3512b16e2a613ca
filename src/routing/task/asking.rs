//! Answers agents that ask for an access, or for the owners of a path.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Task, wait};
use crate::model::{AgentId, BlockedStatus, SessionId};
use crate::routing::{AccessAnswer, Request};
use crate::zone::Zone;

#[derive(Debug)]
pub(in crate::routing) enum AskingMsg {
    Access { request: Request, sessions: Vec<SessionId>, reply: oneshot::Sender<AccessAnswer> },
    Owners { path: String, reply: oneshot::Sender<Vec<AgentId>> },
    Zone { agent: AgentId, reply: oneshot::Sender<Option<Arc<Zone>>> },
}

impl Task {
    pub(super) fn asking(&mut self, message: AskingMsg) {
        // A dropped receiver is no error: its pending access then expires.
        match message {
            AskingMsg::Access { request, sessions, reply } => {
                drop(reply.send(self.ask_for(request, sessions)));
            }
            AskingMsg::Owners { path, reply } => drop(reply.send(self.owners(&path))),
            AskingMsg::Zone { agent, reply } => {
                drop(reply.send(self.settings.rules.zones.get(&agent).cloned()));
            }
        }
    }

    fn ask_for(&mut self, request: Request, sessions: Vec<SessionId>) -> AccessAnswer {
        if self.grants.cover(&request) {
            return AccessAnswer::Open;
        }
        let agent = &request.key.agent;
        if !request.grantable {
            return AccessAnswer::Closed("it cannot be opened to any agent".to_owned());
        }
        if self.is_orchestrator(agent) {
            let why =
                "you decide accesses of the others, and none of your own: a person may open it";
            return AccessAnswer::Closed(why.to_owned());
        }
        if self.orchestrated.contains_key(agent) {
            let why = "the orchestrator waits for the end of your turn, so that it decides nothing \
                       before: end your turn, and say in it what you need";
            return AccessAnswer::Closed(why.to_owned());
        }
        if !self.rates.take(agent) {
            return AccessAnswer::Closed(
                "you asked for too much at once: wait, and ask again".to_owned(),
            );
        }
        let (settle, decision) = oneshot::channel();
        let (reply, answer) = oneshot::channel();
        let id = self.block(request, BlockedStatus::Pending, Some(settle));
        self.board.change(&id, |entry| entry.sessions = sessions);
        let timed_out = self.denial(&id, Some("Nobody decided in time.".to_owned()));
        let deadline = Instant::now() + self.settings.rules.hold_timeout;
        self.pending.push(Box::pin(wait(id.clone(), decision, reply, deadline, timed_out)));
        self.route(&id);
        AccessAnswer::Waits(id, answer)
    }
}
