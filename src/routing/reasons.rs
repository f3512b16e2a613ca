//! Asks why agents want accesses: for notices, and for the lead's briefing.

use std::time::Duration;

use tokio::time::timeout;

use super::explain::{AccessReason, Explain};
use super::task::RoutingMsg;
use super::task::asking::AskingMsg;
use super::{RoutingHandle, briefing};
use crate::model::{AgentId, BlockedId};

/// How long a reason is waited for.
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
        let Some(Ok(shown)) = self.ask(message).await else { return AccessReason::default() };
        let explained = explain.explain(shown.access, shown.caller, reader);
        timeout(PATIENCE, explained).await.unwrap_or_default()
    }

    /// Takes the accesses that wait for the orchestrator agent, as one prompt text; `None` if all
    /// are decided. Unless [`RoutingHandle::briefed`] follows, its next session gets them again.
    pub async fn briefing(&self) -> Option<String> {
        let mut draft = self.ask(RoutingMsg::Briefing).await.flatten()?;
        if draft.lead.is_some() {
            for item in &mut draft.items {
                let reason = self.reason(item.id.clone(), draft.lead.clone()).await;
                briefing::add(item, &reason);
            }
        }
        Some(briefing::text(&draft))
    }
}
