//! Owns the methods that only read.

use super::{MethodCall, Reply, reply};
use crate::journal::Journal;
use crate::serve::lines::GRAPH_IS_OFF;
use crate::serve::{Refused, details, rights};
use crate::watch::GraphState;
use crate::wire::{self, JournalState, ListBlockedParams};
use crate::wire::{Empty, GetGraph, GetJournal, Graph, ListAgents, ListBlocked};

pub(super) async fn list_agents(
    call: MethodCall<'_>,
    _: Empty,
) -> Result<Reply<ListAgents>, Refused> {
    let shared = call.shared;
    let (agents, zones) = tokio::join!(shared.team.details(), shared.sources.own_patterns());
    let uses = &shared.tool_uses;
    let shown = agents.iter().map(|it| {
        let agent = &it.status.agent;
        details::on_wire(it, uses.of(agent), zones.get(agent))
    });
    reply(&shown.collect::<Vec<_>>())
}

pub(super) async fn list_blocked(
    call: MethodCall<'_>,
    params: ListBlockedParams,
) -> Result<Reply<ListBlocked>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let list = shared.sources.blocked(params.status.map(|status| status.0)).await;
    let shown: Vec<_> = list.iter().map(|access| rights::shown(caller, access)).collect();
    reply(&shown.iter().map(|access| wire::Blocked::from(&**access)).collect::<Vec<_>>())
}

pub(super) async fn get_journal(
    call: MethodCall<'_>,
    _: Empty,
) -> Result<Reply<GetJournal>, Refused> {
    let shared = call.shared;
    let journal = shared.sources.journal();
    let path = journal.as_ref().map(|it| it.settings().path.display().to_string());
    let trouble = journal.as_ref().and_then(Journal::trouble).map(|it| it.to_string());
    let notice = journal.as_ref().and_then(Journal::notice);
    reply(&JournalState { path, trouble, notice })
}

pub(super) async fn get_graph(call: MethodCall<'_>, _: Empty) -> Result<Reply<GetGraph>, Refused> {
    let shared = call.shared;
    match shared.sources.graph(true).await {
        GraphState::There { graph, .. } => reply(&Graph::from(&**graph)),
        GraphState::Off => Err(Refused::new(404, GRAPH_IS_OFF)),
        GraphState::Coming => Err(Refused::new(409, "the team is stopping")),
    }
}
