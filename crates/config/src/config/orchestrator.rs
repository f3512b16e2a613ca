//! `[orchestrator]`: who decides, and what becomes of an access until then.

use std::time::Duration;

use super::MayAdd;
use crate::model::{AgentId, named};

/// How long an access is held for an agent that decides.
pub(super) const HOLD_SECONDS: u64 = 120;

#[derive(Clone, Debug)]
pub struct Orchestrator {
    /// None: an external program orchestrates over the port, or an agent elsewhere.
    pub agent: Option<AgentId>,
    /// The agent `HOST/AGENT` of another team of the hub.
    pub elsewhere: Option<AgentId>,
    pub on_block: OnBlock,
    /// As written; see [`Orchestrator::holds_for`].
    pub hold_timeout: Option<Duration>,
    /// None: it may add no agents.
    pub may_add: Option<MayAdd>,
}

named! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum OnBlock {
        Deny = "deny",
        Hold = "hold",
    }
}

impl Orchestrator {
    /// The agent that decides, here or elsewhere.
    pub fn named(&self) -> Option<&AgentId> {
        self.agent.as_ref().or(self.elsewhere.as_ref())
    }

    /// How long an access is held. None: for as long as it takes, since a person decides, who may sleep.
    pub fn holds_for(&self) -> Option<Duration> {
        let of_agent = || self.named().map(|_| Duration::from_secs(HOLD_SECONDS));
        self.hold_timeout.or_else(of_agent)
    }
}
