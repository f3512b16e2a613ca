//! How prompt turns end: with the answer to their prompt; in version 2 with the state that follows,
//! since the answer says only that the prompt was taken in.

use super::pending::OfClient;
use super::{Acp, failure};
use crate::extract::json::Members;
use crate::model::{Activity, ActivityKind, SessionId};

impl Acp {
    pub(super) fn prompt_answered(
        &mut self,
        session: &SessionId,
        failure: Option<&str>,
        result: Option<&Members<'_>>,
        activities: &mut Vec<Activity>,
    ) {
        let stop_reason = result.and_then(|result| result.text("stopReason"));
        let kind = match (failure, stop_reason) {
            (None, Some(stop_reason)) => {
                let meta = result.and_then(|result| result.get("_meta"));
                let said = self.sessions.get(session).map(|session| &session.said);
                let reason = said.and_then(|said| failure::of_answer(&stop_reason, meta, said));
                let reason = reason.map(Into::into);
                ActivityKind::TurnEnded { stop_reason: stop_reason.into(), reason }
            }
            (None, None) if result.is_some_and(|result| result.text("messageId").is_some()) => {
                match self.sessions.remember(session).taken_in() {
                    Some(ended) => ended,
                    None => return,
                }
            }
            (None, None) => failed("the agent's answer has no stop reason"),
            (Some(error), _) => failed(&failure::of_error(error)),
        };
        self.end_turn(session, kind, activities);
    }

    /// Takes in what a session of version 2 is at.
    pub(super) fn state(
        &mut self,
        session: &SessionId,
        update: &Members<'_>,
        activities: &mut Vec<Activity>,
    ) {
        let Some(known) = self.sessions.get_mut(session) else { return };
        match update.text("state").as_deref() {
            Some("running") => known.works(),
            Some("idle") => {
                let error = update.get("error").filter(|error| *error != "null");
                let stop_reason = update.text("stopReason").unwrap_or("end_turn".into());
                let reason = error.map(|error| failure::of_error(error).into());
                let ended = ActivityKind::TurnEnded { stop_reason: stop_reason.into(), reason };
                for _ in 0..known.idles(&ended) {
                    self.end_turn(session, ended.clone(), activities);
                }
            }
            _ => {}
        }
    }

    /// Ends the turns of a session that is closed.
    pub(super) fn stopped(&mut self, session: &SessionId, activities: &mut Vec<Activity>) {
        let turns = self.sessions.get_mut(session).map_or(0, |session| session.idles(&cancelled()));
        for _ in 0..turns {
            self.end_turn(session, cancelled(), activities);
        }
    }

    fn end_turn(
        &mut self,
        session: &SessionId,
        kind: ActivityKind,
        activities: &mut Vec<Activity>,
    ) {
        self.turn_over(session);
        if matches!(&kind, ActivityKind::TurnEnded { stop_reason, .. } if &**stop_reason == "end_turn")
        {
            self.perform_implicit(session, activities);
        }
        activities.push(Activity { session: session.clone(), kind });
    }

    /// Ends all turns, since nobody will say that they did.
    pub(super) fn abandon(&mut self, reason: &str, activities: &mut Vec<Activity>) {
        let running: Vec<_> = self.of_client.take_all().collect();
        self.give_up(running, reason, activities);
        for session in self.sessions.at_work() {
            self.give_up([OfClient::Prompt(session)], reason, activities);
        }
    }

    /// Lets go of what the turn waited for.
    fn turn_over(&mut self, session: &SessionId) {
        if let Some(known) = self.sessions.get_mut(session) {
            known.turn_ended();
        }
        // What named no session was waited for by this one as well as any.
        self.asked.retain(|asked| asked.session.as_ref().is_some_and(|of| of != session));
        self.terminals.turn_over(session);
    }

    /// Takes calls whose agent never says how they fare for done, at the good end of their turn.
    fn perform_implicit(&mut self, id: &SessionId, activities: &mut Vec<Activity>) {
        let Some(session) = self.sessions.get_mut(id).filter(|session| !session.replays()) else {
            return;
        };
        let cwd = session.cwd.clone();
        for call in session.calls_mut().filter(|call| call.is_implicit()) {
            let touches = call.touches(&cwd, &*self.workspace);
            let performed = call.perform(touches, &*self.workspace);
            activities
                .extend(performed.into_iter().map(|kind| Activity { session: id.clone(), kind }));
        }
    }

    /// Ends the turn of a prompt that nothing can answer any more.
    pub(super) fn give_up(
        &mut self,
        request: impl IntoIterator<Item = OfClient>,
        reason: &str,
        activities: &mut Vec<Activity>,
    ) {
        for request in request {
            match request {
                OfClient::Prompt(session) => {
                    self.turn_over(&session);
                    activities.push(Activity { session, kind: failed(reason) });
                }
                OfClient::Load(session) => {
                    if let Some(known) = self.sessions.get_mut(&session) {
                        known.load_ended();
                    }
                }
                OfClient::New { .. }
                | OfClient::Resume(_)
                | OfClient::Choose(..)
                | OfClient::Close(_) => {}
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
