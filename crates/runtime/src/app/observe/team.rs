//! The team of `observe`, as the port has it: one agent, which its editor alone prompts.

use tokio::sync::watch;

use crate::model::{AgentId, AgentStatus};
use crate::process::Family;
use crate::serve::{AgentDetails, BoxFuture, Refused, Team};
use crate::tracker::TrackerHandle;
use crate::turn::details;
use crate::wire::Tier;

/// The agent of `observe`: only its editor can prompt it.
pub(super) struct Observed {
    pub(super) status: watch::Receiver<AgentStatus>,
    pub(super) zone: Tier,
    pub(super) tracker: TrackerHandle,
    pub(super) family: Family,
}

impl Team for Observed {
    fn agents(&self) -> Vec<AgentStatus> {
        vec![self.status.borrow().clone()]
    }

    /// The editor keeps its sessions.
    fn keeps(&self, _: &AgentId) -> bool {
        false
    }

    fn details(&self) -> BoxFuture<'_, Vec<AgentDetails>> {
        let status = self.status.borrow().clone();
        Box::pin(details::of_observed(status, self.zone, &self.tracker, &self.family))
    }

    fn refusal(&self) -> Refused {
        let message = "this agent belongs to the editor that started `eisen-core observe`; only \
                       agents of `eisen-core up` can be controlled over the port";
        Refused::new(409, message)
    }
}
