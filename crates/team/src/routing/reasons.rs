//! Asks why agents want accesses: for notices, and for the lead's briefing.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

use super::explain::{AccessReason, Explain};
use super::task::RoutingMsg;
use super::task::questions::AskingMsg;
use super::{RoutingHandle, briefing};
use crate::model::{AgentId, BlockedId};

/// How long reasons are waited for.
const PATIENCE: Duration = Duration::from_secs(2);

impl RoutingHandle {
    /// Has reasons explained so from now on; the first one stays.
    pub fn explain_by(&self, explain: Box<dyn Explain>) {
        let _ = self.explain.set(explain);
    }

    /// Why an agent wants an access, for a person or an agent; empty if nothing is known.
    pub async fn reason(&self, id: BlockedId, reader: Option<AgentId>) -> AccessReason {
        let Some(explain) = self.explain.get() else { return AccessReason::default() };
        let of = reader.clone();
        let message = |reply| RoutingMsg::Asking(AskingMsg::Show { id, reader: of, reply });
        let explained = async {
            let Some(Ok(shown)) = self.ask(message).await else { return AccessReason::default() };
            explain.explain(shown.access, shown.caller, reader).await
        };
        timeout(PATIENCE, explained).await.unwrap_or_default()
    }

    /// Takes the accesses that wait for the orchestrator agent, as one prompt text; `None` if all
    /// are decided. Unless [`RoutingHandle::briefed`] follows, its next session gets them again.
    pub async fn briefing(&self) -> Option<String> {
        let mut draft = self.ask(RoutingMsg::Briefing).await.flatten()?;
        if let Some(lead) = &draft.lead {
            let ids = draft.items.iter().map(|item| item.id.clone());
            let reasons = join_all(ids.map(|id| self.reason(id, Some(lead.clone())))).await;
            for (item, reason) in draft.items.iter_mut().zip(&reasons) {
                briefing::add(item, reason);
            }
        }
        Some(briefing::text(&draft))
    }
}
