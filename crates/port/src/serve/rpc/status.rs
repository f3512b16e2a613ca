//! Owns the methods that show the team to its orchestrator: short, and cheap to ask again and
//! again.

use std::borrow::Cow;

use super::{MethodCall, Reply, reply};
use crate::model::{AgentId, AgentStatus, BlockedAccess, BlockedStatus};
use crate::serve::shared::Shared;
use crate::serve::{Refused, details};
use crate::tracker::SessionReport;
use crate::wire::{self, AgentReport, AgentRow, AgentStatusParams, Empty, TeamReport, TeamStatus};

pub(super) async fn team_status(
    call: MethodCall<'_>,
    _: Empty,
) -> Result<Reply<TeamStatus>, Refused> {
    let agents = call.shared.team.agents();
    reply(&report(call.shared, &agents).await)
}

/// Says what the agents of the team do now.
pub(super) async fn report<'a>(shared: &Shared, agents: &'a [AgentStatus]) -> TeamReport<'a> {
    let sessions = shared.sources.sessions().await;
    let pending = shared.sources.blocked(Some(BlockedStatus::Pending)).await;
    let rows = agents.iter().map(|status| agent_row(status, &sessions, &pending));
    TeamReport { agents: rows.collect(), pending: pending.len() }
}

pub(super) async fn agent_status(
    call: MethodCall<'_>,
    params: AgentStatusParams,
) -> Result<Reply<wire::AgentStatus>, Refused> {
    let shared = call.shared;
    let agent = AgentId::new(params.agent_id);
    let all = shared.team.details().await;
    let Some(details) = all.iter().find(|details| details.status.agent == agent) else {
        return Err(no_agent(&agent, all.iter().map(|it| &it.status)));
    };
    let zones = shared.sources.own_patterns().await;
    let pending = shared.sources.blocked(Some(BlockedStatus::Pending)).await;
    let own = pending.iter().filter(|access| access.key.agent == agent);
    reply(&AgentReport {
        agent: details::on_wire(details, shared.tool_uses.of(&agent), zones.get(&agent)),
        pending: own.map(|access| access.id.as_str().into()).collect(),
    })
}

/// The error for an unknown agent.
pub(super) fn no_agent<'a>(
    agent: &AgentId,
    known: impl Iterator<Item = &'a AgentStatus>,
) -> Refused {
    let known: Vec<_> = known.map(|status| status.agent.as_str()).collect();
    Refused::new(404, format!("there is no agent `{agent}`; there are {}", known.join(", ")))
}

fn agent_row<'a>(
    status: &'a AgentStatus,
    sessions: &[SessionReport],
    pending: &[BlockedAccess],
) -> AgentRow<'a> {
    let own = sessions.iter().filter(|session| session.key.agent == status.agent);
    let usages = own.clone().filter_map(|session| session.usage.as_ref());
    let usage = usages.max_by_key(|usage| usage.used);
    AgentRow {
        agent_id: status.agent.as_str().into(),
        state: status.state.into(),
        reason: status.reason.as_deref().map(Cow::from),
        running: own.clone().any(|session| session.is_running),
        pending: pending.iter().filter(|access| access.key.agent == status.agent).count(),
        used: usage.map(|usage| usage.used),
        size: usage.map(|usage| usage.size),
    }
}
