//! Owns the methods that show an orchestrator what its agents work on: files, overlaps, callers.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{MethodCall, Reply, reply};
use crate::model::{FileNode, GraphSnapshot, SessionMode};
use crate::serve::Refused;
use crate::serve::lines::GRAPH_IS_OFF;
use crate::watch::GraphState;
use crate::wire::{
    CalledSymbol, Empty, HotFile, HotFileList, HotFileUser, HotFiles, HotFilesParams, OverlapList,
    OverlapRow, Overlaps, SymbolCallers, WhoCalls, WhoCallsParams,
};

/// Entries of one answer.
const MOST: usize = 100;

pub(super) async fn hot_files(
    call: MethodCall<'_>,
    params: HotFilesParams,
) -> Result<Reply<HotFiles>, Refused> {
    let shared = call.shared;
    let snapshots = shared.sources.snapshots().await;
    let mut files: BTreeMap<Arc<str>, HotFile> = BTreeMap::new();
    let sessions = snapshots.sessions.iter().filter(|it| it.mode == SessionMode::SingleAgent);
    for (session, node) in sessions.flat_map(|it| it.nodes.iter().map(move |node| (it, node))) {
        let file = files.entry(Arc::clone(&node.path)).or_insert_with(|| HotFile {
            path: node.path.to_string(),
            heat: 0.0,
            agents: Vec::new(),
        });
        file.heat = file.heat.max(node.heat);
        add(file, session.key.agent.as_str(), node);
    }
    let total = files.len();
    let mut files: Vec<_> = files.into_values().collect();
    files.sort_by(|a, b| b.heat.total_cmp(&a.heat).then_with(|| a.path.cmp(&b.path)));
    files.truncate(params.limit.unwrap_or(20).min(MOST));
    reply(&HotFileList { files, total })
}

pub(super) async fn overlaps(call: MethodCall<'_>, _: Empty) -> Result<Reply<Overlaps>, Refused> {
    let shared = call.shared;
    let all = shared.sources.overlaps().await;
    let rows = all.iter().take(MOST).map(|found| OverlapRow {
        kind: found.kind.into(),
        agents: found.between.each_ref().map(|key| key.agent.to_string().into()),
        symbol: found.symbol.to_string(),
        path: found.path.to_string(),
    });
    reply(&OverlapList { overlaps: rows.collect(), total: all.len() })
}

pub(super) async fn who_calls(
    call: MethodCall<'_>,
    params: WhoCallsParams,
) -> Result<Reply<WhoCalls>, Refused> {
    let shared = call.shared;
    match shared.sources.graph(true).await {
        GraphState::There { graph, .. } => {
            let found = callers(&graph, &params.symbol);
            if found.symbols.is_empty() {
                let message = format!("the code graph has no symbol `{}`", params.symbol);
                return Err(Refused::new(404, message));
            }
            reply(&found)
        }
        GraphState::Off => Err(Refused::new(404, GRAPH_IS_OFF)),
        GraphState::Coming => Err(Refused::new(409, "the team is stopping")),
    }
}

fn callers(graph: &GraphSnapshot, symbol: &str) -> SymbolCallers {
    let is_it = |id: &str| id == symbol || id.rsplit("::").next() == Some(symbol);
    let is_symbol = |id: &str| id.contains("::");
    let ids = graph.nodes.iter().map(|(id, _)| id).filter(|id| is_symbol(id) && is_it(id));
    let exact = graph.nodes.iter().any(|(id, _)| **id == *symbol);
    let ids: Vec<_> = ids.filter(|id| !exact || ***id == *symbol).collect();
    let total = ids.len();
    let symbols = ids.into_iter().take(MOST).map(|id| {
        let all = graph.calls.iter().filter(|call| call.to == *id);
        let total = all.clone().count();
        let callers = all.take(MOST).map(|call| call.from.to_string()).collect();
        CalledSymbol { symbol: id.to_string(), callers, total }
    });
    SymbolCallers { symbols: symbols.collect(), total }
}

fn add(file: &mut HotFile, agent: &str, node: &FileNode) {
    let (last_action, timestamp_ms) = (Cow::from(node.last_action.as_str()), node.timestamp_ms);
    match file.agents.iter_mut().find(|it| it.agent == agent) {
        Some(known) if known.timestamp_ms < timestamp_ms => {
            known.last_action = last_action;
            known.timestamp_ms = timestamp_ms;
        }
        Some(_) => {}
        None => {
            let agent = agent.to_owned().into();
            file.agents.push(HotFileUser { agent, last_action, timestamp_ms });
        }
    }
}
