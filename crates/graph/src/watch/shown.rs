//! Converts the graph and its changes to their published form, with agents' writes marked.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::graph::{CallEdge, Change, Kind, Node, Snapshot};
use crate::model::{
    GraphCall, GraphDelta, GraphKind, GraphNode, GraphPart, GraphRemains, GraphSnapshot, Span,
    TimestampMs,
};

/// Times of the agents' last writes, by node id.
type WriteTimes = HashMap<Arc<str>, TimestampMs>;

pub(super) fn snapshot(seq: u64, graph: Snapshot, written: &WriteTimes) -> GraphSnapshot {
    GraphSnapshot { seq, nodes: nodes(graph.nodes, written), calls: calls(graph.calls) }
}

pub(super) fn delta(seq: u64, change: Change, written: &WriteTimes) -> GraphDelta {
    GraphDelta {
        seq,
        added: GraphPart { nodes: nodes(change.added, written), calls: calls(change.added_calls) },
        changed: nodes(change.changed, written),
        removed: GraphRemains {
            nodes: change.removed.into_iter().collect(),
            calls: calls(change.removed_calls),
        },
    }
}

fn nodes(nodes: BTreeMap<Arc<str>, Node>, written: &WriteTimes) -> Vec<(Arc<str>, GraphNode)> {
    let node = |(id, node): (Arc<str>, Node)| {
        let shown = GraphNode {
            kind: kind(node.kind),
            lines: Span { start: node.lines.start, end: node.lines.end },
            tokens: node.tokens,
            language: node.language,
            last_write: written.get(&id).copied(),
        };
        (id, shown)
    };
    nodes.into_iter().map(node).collect()
}

fn calls(calls: impl IntoIterator<Item = CallEdge>) -> Vec<GraphCall> {
    calls.into_iter().map(|CallEdge { from, to }| GraphCall { from, to }).collect()
}

fn kind(kind: Kind) -> GraphKind {
    match kind {
        Kind::Folder => GraphKind::Folder,
        Kind::File => GraphKind::File,
        Kind::Class => GraphKind::Class,
        Kind::Method => GraphKind::Method,
        Kind::Function => GraphKind::Function,
    }
}
