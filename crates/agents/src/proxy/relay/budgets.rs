//! Reports to the agent's account what its turns use, and ends turns for which a budget has no
//! more.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWrite;

use super::Relay;
use crate::budget::BudgetStanding;
use crate::model::{Activity, ActivityKind, OnExceed, SessionId, Source, Spending};
use crate::proxy::ProxyError;
use crate::proxy::model_calls::CallsOfTurn;

/// How long a turn may go on after it was cancelled for a budget; then the agent is stopped.
pub(super) const IGNORED_AFTER: Duration = Duration::from_mins(1);

impl<AW, CW> Relay<AW, CW>
where
    AW: AsyncWrite + Unpin + Send,
    CW: AsyncWrite + Unpin + Send,
{
    /// Accounts for an activity, before anybody else gets it. False: nobody else does, since it is counted elsewhere.
    pub(super) fn account(&mut self, activity: &mut Activity) -> bool {
        let Activity { session, kind } = activity;
        let account = &self.proxy.account;
        match (kind, &self.proxy.model_calls) {
            (ActivityKind::Spent(report), Some(calls)) => {
                calls.reported(session, report);
                return false;
            }
            (ActivityKind::Foreseen { .. }, Some(_)) => return false,
            (ActivityKind::Opened { .. }, Some(calls)) => calls.opened(session),
            _ => {}
        }
        let Activity { session, kind } = activity;
        match kind {
            ActivityKind::Spent(report) => account.spend(session, report),
            ActivityKind::Foreseen { least, most } => {
                account.foresee(session, (*least, *most), None);
            }
            ActivityKind::TurnBegan => {
                account.turn_began(session);
                if self.standing.cut == Some(OnExceed::Cancel) {
                    self.to_cut.push((session.clone(), self.reason()));
                }
            }
            ActivityKind::TurnEnded { .. } => account.turn_ended(session),
            _ => {
                if self.is_tool_call(session, kind) && self.standing.cut.is_some() {
                    self.to_cut.push((session.clone(), self.reason()));
                }
            }
        }
        true
    }

    /// Counts the model calls from before the first turn in the one that just began.
    pub(super) fn count_early_calls(&mut self, session: &SessionId) {
        let Some(calls) = &self.proxy.model_calls else { return };
        for report in calls.turn_began(session) {
            self.count_calls(session, report);
        }
    }

    fn count_calls(&mut self, session: &SessionId, mut report: Spending) {
        self.proxy.account.spend(session, &mut report);
        let kind = ActivityKind::Spent(report);
        self.unsent.push(Activity { session: session.clone(), kind });
    }

    /// Has what the last model calls of a turn came to be the reason of its end, whatever the agent makes of it. That
    /// a turn took nothing is counted, too.
    pub(super) fn end_calls(
        &mut self,
        session: &SessionId,
        reason: &mut Option<Arc<str>>,
        is_cancelled: bool,
    ) {
        let Some(calls) = &self.proxy.model_calls else { return };
        let CallsOfTurn { refused, by_all, differs, took_nothing } = calls.turn_ended(session);
        if let Some((reported, counted)) = differs {
            let agent = &self.proxy.agent;
            tracing::warn!(
                %agent, reported, counted,
                "the agent reports other tokens of a turn than its provider; the provider's are counted"
            );
        }
        if !is_cancelled && (by_all || reason.is_some()) {
            *reason = refused.or_else(|| reason.take());
        }
        if took_nothing {
            self.count_calls(session, Spending::nothing());
        }
    }

    /// Whether a tool call begins or ends, or the agent makes a request outside of one.
    fn is_tool_call(&mut self, session: &SessionId, kind: &ActivityKind) -> bool {
        match kind {
            ActivityKind::Runs { call, .. } => self.turns.call_began(session, call),
            ActivityKind::Ran { call, .. } => self.turns.call_ended(session, call),
            ActivityKind::Touched { source: Source::Request, .. } => !self.turns.calls(session),
            _ => false,
        }
    }

    /// Ends the turns that are to end, once the activities of a line are handled.
    pub(super) fn cut_turns(&mut self) {
        for (session, reason) in std::mem::take(&mut self.to_cut) {
            if self.cancel_turn(&session, Some(&reason)) {
                let agent = &self.proxy.agent;
                tracing::warn!(%agent, %session, %reason, "cancelled a turn");
            }
        }
    }

    /// Takes in how the agent stands with its budgets; an error ends it.
    pub(super) fn stand(&mut self, standing: BudgetStanding) -> Result<(), ProxyError> {
        self.standing = standing;
        match self.standing.cut {
            Some(OnExceed::Stop) => return Err(ProxyError::Budget(self.reason())),
            Some(OnExceed::Cancel) => {
                let reason = self.reason();
                let sessions = self.turns.sessions().into_iter();
                self.to_cut = sessions.map(|session| (session, Arc::clone(&reason))).collect();
                self.cut_turns();
            }
            Some(OnExceed::Pause) | None => {}
        }
        Ok(())
    }

    /// Finds out whether the agent goes on with a turn that was cancelled long ago.
    pub(super) fn find_ignored(&self) -> Result<(), ProxyError> {
        if self.standing.cut.is_some() && self.turns.ignores(IGNORED_AFTER) {
            return Err(ProxyError::Ignored(self.reason()));
        }
        Ok(())
    }

    fn reason(&self) -> Arc<str> {
        self.standing.refusal.clone().unwrap_or_else(|| "a budget is used up".into())
    }
}
