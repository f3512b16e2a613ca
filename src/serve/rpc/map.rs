//! Owns the methods that show an orchestrator what its agents work on: files, overlaps, callers.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::json;
use crate::model::{FileNode, GraphSnapshot, OverlapKind, SessionMode};
use crate::serve::shared::Shared;
use crate::serve::wire::{GRAPH_IS_OFF, RpcError};
use crate::watch::GraphState;

/// Entries of one answer.
const MOST: usize = 100;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "HotFilesParams")]
pub(in crate::serve) struct HotFilesParams {
    /// At most 100; 20 if left out.
    limit: Option<usize>,
}

/// The files that agents work on, the hottest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct HotFiles {
    files: Vec<HotFile>,
    /// Files that some agent touched and that have not cooled off.
    total: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct HotFile {
    path: String,
    /// The highest of all agents.
    heat: f64,
    agents: Vec<HotFileUser>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct HotFileUser {
    agent: String,
    last_action: &'static str,
    timestamp_ms: u64,
}

/// Symbols that two agents work on now.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct OverlapList {
    overlaps: Vec<OverlapRow>,
    total: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct OverlapRow {
    #[schemars(extend("enum" = OverlapKind::ALL.map(OverlapKind::as_str)))]
    kind: &'static str,
    agents: [String; 2],
    symbol: String,
    path: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "WhoCallsParams")]
pub(in crate::serve) struct WhoCallsParams {
    /// An id of the code graph (`PATH::NAME`), or a name.
    symbol: String,
}

/// Callers of the symbols that a name means.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::serve) struct WhoCalls {
    symbols: Vec<CalledSymbol>,
    /// Symbols of that name.
    total: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CalledSymbol {
    symbol: String,
    callers: Vec<String>,
    /// How many there are.
    total: usize,
}

pub(super) async fn hot_files(shared: &Shared, params: HotFilesParams) -> Result<Value, RpcError> {
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
        file.add(session.key.agent.as_str(), node);
    }
    let total = files.len();
    let mut files: Vec<_> = files.into_values().collect();
    files.sort_by(|a, b| b.heat.total_cmp(&a.heat).then_with(|| a.path.cmp(&b.path)));
    files.truncate(params.limit.unwrap_or(20).min(MOST));
    json(&HotFiles { files, total })
}

pub(super) async fn overlaps(shared: &Shared) -> Result<Value, RpcError> {
    let all = shared.sources.overlaps().await;
    let rows = all.iter().take(MOST).map(|found| OverlapRow {
        kind: found.kind.as_str(),
        agents: found.between.each_ref().map(|key| key.agent.to_string()),
        symbol: found.symbol.to_string(),
        path: found.path.to_string(),
    });
    json(&OverlapList { overlaps: rows.collect(), total: all.len() })
}

pub(super) async fn who_calls(shared: &Shared, params: WhoCallsParams) -> Result<Value, RpcError> {
    match shared.sources.graph(true).await {
        GraphState::There { graph, .. } => {
            let found = callers(&graph, &params.symbol);
            if found.symbols.is_empty() {
                let message = format!("the code graph has no symbol `{}`", params.symbol);
                return Err(RpcError::new(404, message));
            }
            json(&found)
        }
        GraphState::Off => Err(RpcError::new(404, GRAPH_IS_OFF)),
        GraphState::Coming => Err(RpcError::new(409, "the team is stopping")),
    }
}

fn callers(graph: &GraphSnapshot, symbol: &str) -> WhoCalls {
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
    WhoCalls { symbols: symbols.collect(), total }
}

impl HotFile {
    fn add(&mut self, agent: &str, node: &FileNode) {
        let (last_action, timestamp_ms) = (node.last_action.as_str(), node.timestamp_ms);
        match self.agents.iter_mut().find(|it| it.agent == agent) {
            Some(known) if known.timestamp_ms < timestamp_ms => {
                known.last_action = last_action;
                known.timestamp_ms = timestamp_ms;
            }
            Some(_) => {}
            None => {
                let agent = agent.to_owned();
                self.agents.push(HotFileUser { agent, last_action, timestamp_ms });
            }
        }
    }
}
