//! Ends prompt turns: in version 1 with the response to the prompt; in version 2 with the state
//! that follows, since the response only says that the prompt was accepted.

use super::pending::ClientRequest;
use super::sessions::AcpSession;
use super::{Acp, failure};
use crate::extract::json::Members;
use crate::model::{ActivityKind, SessionId};

impl Acp {
    pub(super) fn prompt_answered(
        &mut self,
        session: &SessionId,
        failure: Option<&str>,
        result: Option<&Members<'_>>,
    ) {
        let is_accepted = failure.is_none()
            && result
                .is_some_and(|it| it.get("stopReason").is_none() && it.get("messageId").is_some());
        let did_work =
            is_accepted || self.close_account(session, result.filter(|_| failure.is_none()));
        let stop_reason = result.and_then(|result| result.text("stopReason"));
        let kind = match (failure, stop_reason) {
            (None, Some(stop_reason)) => {
                let meta = result.and_then(|result| result.get("_meta"));
                let known = self.sessions.get(session);
                let reason =
                    known.and_then(|known| failure::of_answer(&stop_reason, meta, known, did_work));
                let reason = reason.map(Into::into);
                ActivityKind::TurnEnded { stop_reason: stop_reason.into(), reason }
            }
            (None, None) if result.is_some_and(|result| result.text("messageId").is_some()) => {
                match self.sessions.remember(session).accept_prompt() {
                    Some(ended) => ended,
                    None => return,
                }
            }
            (None, None) => failed("the agent's answer has no stop reason"),
            (Some(error), _) => failed(&failure::of_error(error)),
        };
        self.end_turn(session, kind);
    }

    /// Observes the state of a session of version 2.
    pub(super) fn state_update(&mut self, session: &SessionId, update: &Members<'_>) {
        let Some(known) = self.sessions.get_mut(session) else { return };
        match update.text("state").as_deref() {
            Some("running") => known.set_running(),
            Some("idle") => {
                let error = update.get("error").filter(|error| *error != "null");
                let stop_reason = update.text("stopReason").unwrap_or("end_turn".into());
                let reason = error.map(|error| failure::of_error(error).into());
                let ended = ActivityKind::TurnEnded { stop_reason: stop_reason.into(), reason };
                let turns = known.set_idle(&ended);
                if turns > 0 {
                    self.close_account(session, Some(update));
                }
                for _ in 0..turns {
                    self.end_turn(session, ended.clone());
                }
            }
            _ => {}
        }
    }

    /// Ends the turns of a session that is closed.
    pub(super) fn end_session_turns(&mut self, session: &SessionId) {
        let known = self.sessions.get_mut(session);
        let turns = known.map_or(0, |session| session.set_idle(&cancelled()));
        if turns > 0 {
            self.close_account(session, None);
        }
        for _ in 0..turns {
            self.end_turn(session, cancelled());
        }
    }

    fn end_turn(&mut self, session: &SessionId, kind: ActivityKind) {
        self.last_message(session);
        // Whatever its agent says of it: some end a cancelled turn as any other, or with an error.
        let kind = if self.release_turn(session) { cancelled() } else { kind };
        if matches!(&kind, ActivityKind::TurnEnded { stop_reason, .. } if &**stop_reason == "end_turn")
        {
            self.perform_implicit(session);
        }
        self.reported.add(session, kind);
    }

    /// Ends all turns of an agent that is gone.
    pub(super) fn abandon(&mut self, reason: &str) {
        let running: Vec<_> = self.client_requests.take_all().collect();
        self.give_up(running, reason);
        for session in self.sessions.take_accepted() {
            self.give_up([ClientRequest::Prompt(session)], reason);
        }
    }

    /// Releases the requests and terminals of an ended turn; true if it was cancelled.
    fn release_turn(&mut self, session: &SessionId) -> bool {
        let known = self.sessions.get_mut(session);
        let was_cancelled = known.is_some_and(AcpSession::turn_ended);
        // Requests that name no session may be of this one.
        self.unanswered.retain(|request| request.session.as_ref().is_some_and(|of| of != session));
        self.terminals.turn_ended(session);
        was_cancelled
    }

    /// At the successful end of a turn, completes the calls that never got a status.
    fn perform_implicit(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id).filter(|session| !session.replays()) else {
            return;
        };
        let cwd = session.cwd.clone();
        for call in session.calls_mut().filter(|call| call.is_implicit()) {
            let touches = call.touches(&cwd, &*self.workspace);
            let performed = call.perform(touches, &*self.workspace);
            self.reported.add_all(id, performed);
        }
    }

    /// Ends requests that will get no response; for a prompt, its turn.
    pub(super) fn give_up(
        &mut self,
        request: impl IntoIterator<Item = ClientRequest>,
        reason: &str,
    ) {
        for request in request {
            match request {
                ClientRequest::Prompt(session) => {
                    self.close_account(&session, None);
                    self.release_turn(&session);
                    self.reported.add(&session, failed(reason));
                }
                ClientRequest::Load(session) => {
                    if let Some(known) = self.sessions.get_mut(&session) {
                        known.load_ended();
                    }
                }
                ClientRequest::New { .. }
                | ClientRequest::Resume(_)
                | ClientRequest::Choose(..)
                | ClientRequest::Mode(..)
                | ClientRequest::Close(_) => {}
            }
        }
    }
}

fn failed(reason: &str) -> ActivityKind {
    ActivityKind::TurnEnded { stop_reason: "error".into(), reason: Some(reason.into()) }
}

fn cancelled() -> ActivityKind {
    ActivityKind::TurnEnded { stop_reason: "cancelled".into(), reason: None }
}
