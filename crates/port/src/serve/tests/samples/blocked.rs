//! Blocked accesses: of each kind.

use std::num::NonZeroU32;

use super::{NOW, key};
use crate::model::{
    AccessRule, Action, AgentId, BlockedAccess, BlockedId, BlockedStatus, Decide, DecidedBy, Event,
    OwnerAnswer, SessionMode, TeamGrant, TokensSaved, Via,
};
use crate::preview::{FoundFile, Wanted};
use crate::routing::{Decider, Decision, ResolveError, ShownAccess};

/// The version of what is shown.
pub(in crate::serve) const VERSION: &str = "a25179d2fd9a9c0cf1fa24a8e4ef3e21";

pub(in crate::serve) fn blocked(status: BlockedStatus) -> BlockedAccess {
    BlockedAccess {
        id: BlockedId::new("b1"),
        key: key("ui", "s-ui"),
        mode: SessionMode::SingleAgent,
        path: "src/api/routes.ts".into(),
        action: Action::Read,
        via: Via::Fs,
        status,
        owners: vec![AgentId::new("api")],
        orchestrator: Some(key("lead", "s-lead")),
        sweep: None,
        harmless: false,
        denied_by: None,
        rule: None,
        decided_by: None,
        message: None,
        owner_answer: None,
        reason: None,
        tool_call: None,
        offered: None,
        until_ms: None,
        ended: None,
        completed: false,
        timestamp_ms: NOW,
    }
}

pub(super) fn of_status(status: BlockedStatus) -> Event {
    Event::Blocked(blocked(status))
}

pub(super) fn written() -> Event {
    Event::Blocked(BlockedAccess {
        orchestrator: None,
        owners: Vec::new(),
        action: Action::Write,
        via: Via::Terminal,
        ..blocked(BlockedStatus::Denied)
    })
}

pub(super) fn swept() -> Event {
    Event::Blocked(BlockedAccess {
        path: "src/api".into(),
        via: Via::Kernel,
        orchestrator: None,
        sweep: Some(12),
        ..blocked(BlockedStatus::Denied)
    })
}

pub(super) fn completed() -> Event {
    Event::Blocked(BlockedAccess { completed: true, ..blocked(BlockedStatus::Denied) })
}

/// By its owner, which had been asked the same before.
pub(super) fn answered() -> Event {
    let saved = Some(TokensSaved { tokens: 5200, is_estimated: false });
    Event::Blocked(BlockedAccess {
        orchestrator: None,
        rule: Some(AccessRule { number: NonZeroU32::MIN, decide: Decide::Owner }),
        decided_by: Some(DecidedBy::Agent(AgentId::new("api"))),
        owner_answer: Some(OwnerAnswer { owner: AgentId::new("api"), saved }),
        ..blocked(BlockedStatus::Answered)
    })
}

pub(in crate::serve) fn shown(status: BlockedStatus) -> ShownAccess {
    ShownAccess {
        access: blocked(status),
        file: FoundFile::There {
            content: b"export const cart = \"/cart\";\n".into(),
            is_whole: true,
        },
        wanted: None,
        caller: None,
        version: VERSION.to_owned(),
    }
}

fn shown_write() -> ShownAccess {
    let shown = shown(BlockedStatus::Pending);
    let access = BlockedAccess { action: Action::Write, ..shown.access };
    let wanted = Some(Wanted::new("export const cart = \"/basket\";\n"));
    ShownAccess { access: BlockedAccess { id: BlockedId::new("b2"), ..access }, wanted, ..shown }
}

pub(in crate::serve) fn grant() -> TeamGrant {
    TeamGrant {
        id: "g1".to_owned(),
        agent: AgentId::new("ui"),
        path: "test/cart.ts".into(),
        action: Action::Write,
        pattern: Some("test/**".into()),
        even_denied: false,
        by: DecidedBy::Person,
        granted_ms: NOW,
        elsewhere: None,
        applies: true,
    }
}

/// The outcome of a decision.
pub(in crate::serve) fn resolved(
    id: BlockedId,
    decision: &Decision,
    by: &Decider,
) -> Result<BlockedAccess, ResolveError> {
    let status = match (id.as_str(), decision) {
        ("b1", Decision::Allow { .. }) => BlockedStatus::Allowed,
        ("b1", Decision::Deny { .. }) => BlockedStatus::Denied,
        ("b1", Decision::Answer { .. }) => BlockedStatus::Answered,
        ("b2", _) => return Err(ResolveError::NotAnswerable),
        ("b3", _) => {
            let status = BlockedStatus::Expired;
            return Err(ResolveError::Settled { id, status, by: None });
        }
        _ => return Err(ResolveError::Unknown(id)),
    };
    let message = match decision {
        Decision::Deny { message } => message.as_deref().map(Into::into),
        _ => None,
    };
    Ok(BlockedAccess { decided_by: Some(by.into()), message, ..blocked(status) })
}

/// The details that are shown of each access.
pub(in crate::serve) fn show(id: BlockedId) -> Result<ShownAccess, ResolveError> {
    match id.as_str() {
        "b1" => Ok(shown(BlockedStatus::Pending)),
        "b2" => Ok(shown_write()),
        "b3" => {
            let (status, by) = (BlockedStatus::Allowed, Some(DecidedBy::Person));
            Err(ResolveError::Settled { id, status, by })
        }
        _ => Err(ResolveError::Unknown(id)),
    }
}
