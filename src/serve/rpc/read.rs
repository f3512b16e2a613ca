//! Owns the methods that only read.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{json, raw};
use crate::journal::Journal;
use crate::model::BlockedStatus;
use crate::serve::graph::Graph;
use crate::serve::shared::Shared;
use crate::serve::wire::{self, GRAPH_IS_OFF, RpcError};
use crate::serve::{Caller, details, rights};
use crate::watch::GraphState;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "ListBlockedParams")]
pub(in crate::serve) struct ListBlocked {
    /// Only accesses with that status.
    status: Option<Status>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Denied,
    Pending,
    Allowed,
    Answered,
    Expired,
    Observed,
}

pub(super) async fn list_agents(shared: &Shared) -> Result<Value, RpcError> {
    let (agents, zones) = tokio::join!(shared.team.details(), shared.sources.own_patterns());
    let uses = &shared.tool_uses;
    let shown = agents.iter().map(|it| {
        let agent = &it.status.agent;
        details::Agent::new(it, uses.of(agent), zones.get(agent))
    });
    json(&shown.collect::<Vec<_>>())
}

pub(super) async fn list_blocked(
    shared: &Shared,
    caller: Option<&Caller>,
    params: ListBlocked,
) -> Result<Value, RpcError> {
    let list = shared.sources.blocked(params.status.map(BlockedStatus::from)).await;
    let shown: Vec<_> = list.iter().map(|access| rights::shown(caller, access)).collect();
    json(&shown.iter().map(|access| wire::Blocked::from(&**access)).collect::<Vec<_>>())
}

/// The team's journal.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct JournalState {
    /// Null: the team keeps none.
    path: Option<String>,
    /// Why nothing can be written now; null if all is well.
    trouble: Option<String>,
    /// What is about to be deleted by `keep_days` or `max_mb`; null if nothing is.
    notice: Option<String>,
}

pub(super) fn get_journal(shared: &Shared) -> Result<Value, RpcError> {
    let journal = shared.sources.journal();
    let path = journal.as_ref().map(|it| it.settings().path.display().to_string());
    let trouble = journal.as_ref().and_then(Journal::trouble).map(|it| it.to_string());
    let notice = journal.as_ref().and_then(Journal::notice);
    json(&JournalState { path, trouble, notice })
}

pub(super) async fn get_graph(shared: &Shared) -> Result<Box<RawValue>, RpcError> {
    match shared.sources.graph(true).await {
        GraphState::There { graph, .. } => raw(&Graph::from(&**graph)),
        GraphState::Off => Err(RpcError::new(404, GRAPH_IS_OFF)),
        GraphState::Coming => Err(RpcError::new(409, "the team is stopping")),
    }
}

impl From<Status> for BlockedStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Denied => Self::Denied,
            Status::Pending => Self::Pending,
            Status::Allowed => Self::Allowed,
            Status::Answered => Self::Answered,
            Status::Expired => Self::Expired,
            Status::Observed => Self::Observed,
        }
    }
}
