//! Whether a tool call names the path of an attempt, and which file the attempt is for.

use std::sync::Arc;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{HandlerState, release};
use crate::confine::{Attempt, PathMeaning};
use crate::model::{Action, SessionId};
use crate::proxy::{CallText, NamedPath, TurnContext};
use crate::routing::Request;

impl HandlerState {
    /// Whether the agent means the access: its program or a tool call names it, or the zone asks.
    pub(super) async fn is_intended(
        &self,
        attempt: &mut Attempt,
        context: &TurnContext,
        reply: &mut oneshot::Sender<bool>,
    ) -> bool {
        // Who is to be asked is asked before anything touches it, if the agent was asked for something.
        let asks = self.bounds().zone().asks(&attempt.path) && !self.is_idle(attempt, context);
        let is_intended = attempt.named || asks;
        // Which file a folder is for may be said a little later.
        let is_folder = matches!(attempt.meaning, PathMeaning::NewFolder | PathMeaning::Above);
        if is_intended && !is_folder {
            return true;
        }
        self.is_named(attempt, context, reply).await || is_intended
    }

    /// Whether the agent looks at a file by itself: it reads while no turn runs, by a process that was there
    /// before its first prompt.
    fn is_idle(&self, attempt: &Attempt, context: &TurnContext) -> bool {
        let is_of_start =
            || self.running.prompted().is_none_or(|first| self.grace.is_older(attempt.pid, first));
        attempt.action == Action::Read && context.began.is_none() && is_of_start()
    }

    /// Whether the refusal of an access that nothing names does no harm, as far as that is known: the profile
    /// says so, and no tool call runs, or the agent looked for a secret by itself.
    pub(super) fn is_harmless(&self, request: &Request, context: &TurnContext) -> bool {
        let bounds = self.bounds();
        let is_known = bounds.is_harmless(&request.path) && !self.running.has_running();
        is_known || context.began.is_none() && bounds.zone().asks(&request.path)
    }

    /// Whether a tool call names the attempted path, now or within the grace period. For a draft, and
    /// for a folder that is made for a file, the path becomes the file that the call names.
    async fn is_named(
        &self,
        attempt: &mut Attempt,
        context: &TurnContext,
        reply: &mut oneshot::Sender<bool>,
    ) -> bool {
        let mut news = self.running.news();
        // Since it was looked at, one may have come.
        if self.names_attempt(None, attempt) {
            return true;
        }
        // Outside a turn there are no calls to wait for.
        let wait = context.began.and_then(|began| self.grace.wait(attempt.pid, began));
        let Some(wait) = wait else { return false };
        let deadline = Instant::now() + wait;
        loop {
            let call = tokio::select! {
                call = news.recv() => call,
                () = tokio::time::sleep_until(deadline) => return false,
                () = release(context, reply) => return false,
            };
            let is_named = match call {
                Ok(call) => self.names_attempt(Some(&call), attempt),
                Err(RecvError::Lagged(_)) => self.names_attempt(None, attempt),
                Err(RecvError::Closed) => return false,
            };
            if is_named {
                self.grace.reset(attempt.pid);
                return true;
            }
        }
    }

    pub(super) fn names_attempt(&self, call: Option<&CallText>, attempt: &mut Attempt) -> bool {
        let bounds = self.bounds();
        let workspace = bounds.zone().workspace();
        let named = NamedPath { wire: &attempt.path, workspace };
        let running = &self.running;
        let of = match attempt.meaning {
            PathMeaning::Itself => None,
            PathMeaning::Draft => {
                call.map_or_else(|| running.names_beside(named), |call| call.names_beside(named))
            }
            PathMeaning::NewFolder | PathMeaning::Above => {
                call.map_or_else(|| running.names_below(named), |call| call.names_below(named))
            }
        };
        let Some(of) = of else { return self.is_named_by(call, &attempt.path) };
        attempt.becomes(&of, &bounds);
        true
    }

    /// Whether a path is named by `call`, or by any running call if that is None.
    pub(super) fn is_named_by(&self, call: Option<&CallText>, wire: &str) -> bool {
        let bounds = self.bounds();
        let named = NamedPath { wire, workspace: bounds.zone().workspace() };
        call.map_or_else(|| self.running.names(named), |call| call.names(named))
    }

    /// The tool call that an access belongs to, as far as that is certain.
    pub(super) fn call_of(&self, session: &SessionId, wire: &str) -> Option<Arc<str>> {
        let bounds = self.bounds();
        let place = NamedPath { wire, workspace: bounds.zone().workspace() };
        self.running.tool_call(session, place, Instant::now())
    }
}
