//! The meaning of the server's events for the client: updates, requests for permission, and the ends of
//! turns. Pure. An event that can't be read is left out; one that ends a turn may be lost, and is found
//! again.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::A_WHILE;
use super::bridge::{Bridge, BridgeStep, PutPermission, update_of};
use super::rules;
use super::session::{BridgedSession, TurnStanding};
use super::shapes::{
    Event, Info, MessagePart, MessageUpdated, OfSession, PartDelta, PartUpdated, Permission,
    PermissionReplied, ServerMessage, SessionFailed, TodoUpdated,
};
use super::show;
use super::tasks::{Checked, ServerTask};
use crate::acp::{self, PermissionAnswer};
use crate::line;

/// Requests for permission that are open at once; more are refused.
const MOST_ASKED: usize = 256;

/// The text that the model reads where something is refused. With a reason it goes on.
const REFUSED: &str = "This is not allowed here. Do what you can without it.";

impl Bridge {
    /// Takes an event.
    pub(super) fn event(&mut self, data: &[u8]) -> Vec<BridgeStep> {
        let data = line::text(data);
        let event: Event<'_> = match serde_json::from_str(&data) {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(%error, "an event that can't be read is left out");
                return Vec::new();
            }
        };
        match &*event.kind {
            "message.updated" => {
                read(&event).map_or_else(Vec::new, |MessageUpdated { info }| self.message(&info))
            }
            "message.part.updated" => {
                read(&event).map_or_else(Vec::new, |PartUpdated { part }| self.part(part))
            }
            "message.part.delta" => read(&event).map_or_else(Vec::new, |delta| self.delta(&delta)),
            "todo.updated" => read(&event).map_or_else(Vec::new, |todo: TodoUpdated| {
                self.say(&todo.session, [show::plan(&todo.todos)])
            }),
            "permission.asked" => read(&event).map_or_else(Vec::new, |asked| self.ask(asked)),
            "permission.replied" => {
                if let Some(PermissionReplied { request }) = read(&event) {
                    // Somebody else has decided.
                    self.asked.retain(|_, asked| asked.permission != request);
                }
                Vec::new()
            }
            "session.idle" => {
                read(&event).map_or_else(Vec::new, |OfSession { session }| self.idle(&session))
            }
            "session.error" => read(&event).map_or_else(Vec::new, |failed| self.failed(&failed)),
            _ => Vec::new(),
        }
    }

    fn say(&self, session: &str, updates: impl IntoIterator<Item = Value>) -> Vec<BridgeStep> {
        if !self.sessions.contains_key(session) {
            return Vec::new();
        }
        updates.into_iter().map(|update| BridgeStep::Say(update_of(session, &update))).collect()
    }

    fn message(&mut self, info: &Info) -> Vec<BridgeStep> {
        let Some(session) = self.sessions.get_mut(&info.session) else { return Vec::new() };
        let update = session.message(info);
        self.say(&info.session, update)
    }

    fn part(&mut self, part: MessagePart) -> Vec<BridgeStep> {
        let (name, is_tool) = (part.session.clone(), part.kind == "tool");
        let Some(session) = self.sessions.get_mut(&name) else { return Vec::new() };
        let updates = session.shows.part(part, false);
        let mut steps = self.say(&name, updates);
        if is_tool {
            steps.extend(self.ask_unread(&name));
        }
        steps
    }

    fn delta(&mut self, delta: &PartDelta) -> Vec<BridgeStep> {
        let Some(session) = self.sessions.get_mut(&delta.session) else { return Vec::new() };
        let update = session.shows.delta(delta);
        self.say(&delta.session, update)
    }

    fn idle(&mut self, name: &str) -> Vec<BridgeStep> {
        let Some(session) = self.sessions.get_mut(name) else { return Vec::new() };
        if session.ends_when_idle() {
            return session.end().into_iter().map(BridgeStep::Say).collect();
        }
        self.check(name, Duration::ZERO)
    }

    fn failed(&mut self, failed: &SessionFailed) -> Vec<BridgeStep> {
        let Some(failure) = &failed.error else { return Vec::new() };
        let known =
            failed.session.as_ref().and_then(|name| Some((name, self.sessions.get_mut(name)?)));
        let Some((name, session)) = known else {
            tracing::warn!(why = failure.text(), "the server reports an error");
            return Vec::new();
        };
        session.failed(failure);
        // If it does not become idle.
        self.check_again(name)
    }

    /// Reads once more, after a while, how a session with a turn stands.
    pub(super) fn check_again(&self, name: &str) -> Vec<BridgeStep> {
        self.check(name, A_WHILE)
    }

    fn check(&self, name: &str, after: Duration) -> Vec<BridgeStep> {
        let Some(session) = self.sessions.get(name).filter(|session| session.turn.is_some()) else {
            return Vec::new();
        };
        let (session, cwd) = (name.to_owned(), session.cwd.clone());
        vec![BridgeStep::Do(ServerTask::Check { session, cwd, after })]
    }

    /// Events of a folder are lost.
    pub(super) fn lost(&mut self, cwd: &str) {
        for session in self.sessions.values_mut().filter(|session| session.cwd == cwd) {
            session.tear();
        }
    }

    /// Reads what a folder's sessions that work have missed.
    pub(super) fn missed(&self, cwd: &str) -> Vec<BridgeStep> {
        let of_folder = self.sessions.iter().filter(|(_, session)| session.cwd == cwd);
        of_folder.flat_map(|(name, _)| self.check(name, Duration::ZERO)).collect()
    }

    pub(super) fn checked(&mut self, name: &str, checked: Checked) -> Vec<BridgeStep> {
        let Checked { is_busy, permissions, messages } = checked;
        let Some(session) = self.sessions.get_mut(name) else { return Vec::new() };
        let standing = if is_busy { TurnStanding::Open } else { session.standing(&messages) };
        let updates = session.catch_up(messages);
        let mut steps = self.say(name, updates);
        steps.extend(permissions.into_iter().flat_map(|asked| self.ask(asked)));
        let session = self.sessions.get_mut(name);
        match standing {
            TurnStanding::Ended => {
                steps.extend(session.and_then(BridgedSession::end).map(BridgeStep::Say));
            }
            TurnStanding::Open if !is_busy => steps.extend(self.check_again(name)),
            TurnStanding::Open => {
                let turn = session.and_then(|it| it.turn.as_ref().map(|turn| (turn, &it.cwd)));
                if let Some((_, cwd)) = turn.filter(|(turn, _)| turn.is_cancelled) {
                    // It may have begun only after it was told to end.
                    let (session, cwd) = (name.to_owned(), cwd.clone());
                    steps.push(BridgeStep::Do(ServerTask::Abort { session, cwd }));
                    steps.extend(self.check_again(name));
                }
            }
        }
        steps
    }

    fn ask(&mut self, asked: Permission) -> Vec<BridgeStep> {
        let is_open = self.asked.values().any(|open| open.permission == asked.id);
        let open = self.asked.len();
        let Some(session) = self.sessions.get_mut(&asked.session) else { return Vec::new() };
        let is_parked = session.unread.iter().any(|parked| parked.id == asked.id);
        if is_open || is_parked {
            return Vec::new();
        }
        if open + session.unread.len() >= MOST_ASKED {
            return self.refuse(&asked, "too many are open");
        }
        let call =
            asked.tool.as_ref().and_then(|tool| session.shows.call(&tool.message, &tool.call));
        let is_read =
            call.is_some_and(|call| call.input.as_object().is_some_and(|it| !it.is_empty()));
        if asked.tool.is_none() || is_read || rules::says_all(&asked) {
            return self.put(&asked);
        }
        let cwd = session.cwd.clone();
        session.unread.push(asked.clone());
        vec![BridgeStep::Do(ServerTask::Find { cwd, asked, after: A_WHILE })]
    }

    /// Asks what waited for the input of its call.
    fn ask_unread(&mut self, name: &str) -> Vec<BridgeStep> {
        let Some(session) = self.sessions.get_mut(name) else { return Vec::new() };
        let unread = std::mem::take(&mut session.unread);
        let is_read = |asked: &Permission| {
            let call = asked.tool.as_ref().and_then(|it| session.shows.call(&it.message, &it.call));
            call.is_some_and(|call| call.input.as_object().is_some_and(|it| !it.is_empty()))
        };
        let (ready, unread): (Vec<_>, Vec<_>) = unread.into_iter().partition(is_read);
        session.unread = unread;
        ready.iter().flat_map(|asked| self.put(asked)).collect()
    }

    /// The call of a request was read, or could not be.
    pub(super) fn found(
        &mut self,
        asked: &Permission,
        message: Option<ServerMessage>,
    ) -> Vec<BridgeStep> {
        let Some(session) = self.sessions.get_mut(&asked.session) else { return Vec::new() };
        if !session.unread.iter().any(|unread| unread.id == asked.id) {
            return Vec::new();
        }
        session.unread.retain(|unread| unread.id != asked.id);
        let mut steps = Vec::new();
        if let Some(ServerMessage { info, parts }) = message {
            session.message(&info);
            let updates: Vec<_> =
                parts.into_iter().flat_map(|part| session.shows.part(part, false)).collect();
            steps = self.say(&asked.session, updates);
        }
        steps.extend(self.put(asked));
        steps
    }

    /// Asks the client.
    fn put(&mut self, asked: &Permission) -> Vec<BridgeStep> {
        let Some(session) = self.sessions.get(&asked.session) else { return Vec::new() };
        let call =
            asked.tool.as_ref().and_then(|tool| session.shows.call(&tool.message, &tool.call));
        let call = match rules::tool_call(asked, call) {
            Ok(call) => call,
            Err(why) => return self.refuse(asked, why),
        };
        let id = self.next();
        let (session, permission) = (asked.session.clone(), asked.id.clone());
        let params = json!({
            "sessionId": session,
            "toolCall": call,
            // Not for ever: nothing would be asked, or judged, any more.
            "options": [
                { "optionId": "once", "name": "Allow once", "kind": "allow_once" },
                { "optionId": "reject", "name": "Reject", "kind": "reject_once" },
            ],
        });
        self.asked.insert(id, PutPermission { session, permission });
        vec![BridgeStep::Say(json!({
            "jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params,
        }))]
    }

    fn refuse(&self, asked: &Permission, why: &str) -> Vec<BridgeStep> {
        tracing::warn!(permission = asked.what, why, "a request for permission is refused");
        self.reply(&asked.session, &asked.id, &json!({ "reply": "reject", "message": REFUSED }))
    }

    fn reply(&self, session: &str, permission: &str, body: &Value) -> Vec<BridgeStep> {
        let Some(session) = self.sessions.get(session) else { return Vec::new() };
        let (cwd, permission, body) = (session.cwd.clone(), permission.to_owned(), body.clone());
        vec![BridgeStep::Do(ServerTask::Reply { cwd, permission, body })]
    }

    /// The client has decided.
    pub(super) fn decided(&mut self, id: u64, result: &Value) -> Vec<BridgeStep> {
        let Some(PutPermission { session, permission }) = self.asked.remove(&id) else {
            return Vec::new();
        };
        let PermissionAnswer { outcome } = acp::read(result);
        let body = match (outcome.outcome.as_deref(), outcome.option_id.as_deref()) {
            (Some("selected"), Some("once")) => json!({ "reply": "once" }),
            // Then the server ends the turn.
            (Some("cancelled"), _) => json!({ "reply": "reject" }),
            _ => json!({ "reply": "reject", "message": REFUSED }),
        };
        self.reply(&session, &permission, &body)
    }
}

fn read<T: DeserializeOwned>(event: &Event<'_>) -> Option<T> {
    let properties = event.properties.map_or("{}", |properties| properties.get());
    let read = line::read(properties.as_bytes());
    read.inspect_err(|error| tracing::warn!(%error, event = event.kind, "an event that can't be read is left out"))
        .ok()
}
