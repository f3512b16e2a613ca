//! A denied access on its way to a decision, and what it gets.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{Action, AgentId, BlockedId, SessionKey, Via};
use crate::preview::Wanted;

/// The extent of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessScope {
    /// A path outside the zone.
    Path,
    /// All below it, too: a search.
    Below,
    /// A path in the zone, of which the orchestrator is to approve: no rule is looked at.
    Inside,
}

/// Whether an access makes a folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Making {
    Nothing,
    /// The path is the folder, which may be for a file whose access is granted.
    Folder,
    /// A missing folder above the path: a part of the access to that.
    Parent,
}

/// A denied access on its way to a decision.
#[derive(Clone, PartialEq, Debug)]
pub struct Request {
    pub key: SessionKey,
    pub path: Arc<str>,
    pub action: Action,
    pub via: Via,
    pub scope: AccessScope,
    pub making: Making,
    /// Hold it in any case: a permission request that the orchestrator decides.
    pub hold: bool,
    /// If false, deny it at once in any case.
    pub may_wait: bool,
    /// If false, no decision can allow it, and it is denied at once.
    pub grantable: bool,
    /// The pattern of `denied` that matches it: no agent may allow it.
    pub denied_by: Option<Arc<str>>,
    /// The process whose call the kernel stopped: its repeated attempts are reported once.
    pub caller: Option<u32>,
    /// The tool call that it belongs to, as far as that is certain.
    pub call: Option<Arc<str>>,
    /// How long the agent waits for it at most, where that is known.
    pub patience: Option<Duration>,
    /// Why the agent asks for it.
    pub reason: Option<Arc<str>>,
    /// The content that it would write, if that is known.
    pub wanted: Option<Wanted>,
}

impl Request {
    /// An access that an agent would make again, of which nothing else is known.
    pub fn again(key: SessionKey, path: Arc<str>, action: Action, via: Via) -> Self {
        Self {
            key,
            path,
            action,
            via,
            scope: AccessScope::Path,
            making: Making::Nothing,
            hold: false,
            may_wait: true,
            grantable: true,
            denied_by: None,
            caller: None,
            call: None,
            patience: None,
            reason: None,
            wanted: None,
        }
    }
}

/// How a request was settled.
#[derive(Clone, PartialEq, Debug)]
pub enum Settlement {
    Allowed,
    /// The orchestrator's content replaces the file's.
    Answered(String),
    Denied {
        id: BlockedId,
        owners: Vec<AgentId>,
        message: Option<String>,
    },
}
