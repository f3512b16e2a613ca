//! Calls that would destroy what the journal can't keep: they are held for a decision, if the
//! configuration says so.

use std::path::Path;

use tokio::sync::oneshot;

use super::HandlerState;
use crate::capture::Verdict;
use crate::confine::Attempt;
use crate::model::{Action, SessionKey, Via};
use crate::proxy::TurnContext;
use crate::routing::Request;

impl HandlerState {
    /// Whether a write of a real path would destroy what can't be kept, and that is held for a
    /// decision.
    pub(super) fn loses(&self, real: &Path, action: Action) -> bool {
        action == Action::Write && self.files.as_ref().is_some_and(|files| files.loses(real))
    }

    /// Asks whether a call may destroy what can't be kept; true also if it would not.
    pub(super) async fn may_lose(
        &self,
        attempt: &Attempt,
        context: &TurnContext,
        reply: &mut oneshot::Sender<bool>,
    ) -> bool {
        let bounds = self.bounds();
        let real = bounds.zone().workspace().join(&*attempt.path);
        let is_write =
            attempt.action == Action::Write && bounds.judge(&real, Action::Write).is_ok();
        let Some(files) = self.files.as_ref().filter(|_| is_write) else { return true };
        let Some(loss) = files.loss(&real) else { return true };
        if files.loss_verdict(&real) == Some(Verdict::Refused) {
            return false;
        }
        let key = SessionKey::new(self.agent.clone(), context.session.clone());
        let again = Request::again(key, attempt.path.clone(), attempt.action, Via::Kernel);
        let request = Request {
            hold: true,
            may_wait: attempt.may_wait,
            caller: Some(attempt.pid),
            reason: Some(loss.what.as_str().into()),
            ..again
        };
        let allowed = self.ask(request, context, reply).await;
        let verdict = if allowed { Verdict::Allowed } else { Verdict::Refused };
        files.decide_loss(loss, verdict);
        allowed
    }
}
