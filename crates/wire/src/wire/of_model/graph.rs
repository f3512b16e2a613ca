//! Owns how the code graph becomes its lines.

use std::borrow::Cow;
use std::sync::Arc;

use crate::model::{self, GraphSnapshot};
use crate::wire::{
    Graph, GraphCall, GraphChanged, GraphDelta, GraphNode, GraphPart, GraphRemoved, NodeLines,
};

impl<'a> From<&'a GraphSnapshot> for Graph<'a> {
    fn from(graph: &'a GraphSnapshot) -> Self {
        Self { seq: graph.seq, nodes: nodes(&graph.nodes), calls: calls(&graph.calls) }
    }
}

impl<'a> From<&'a model::GraphDelta> for GraphDelta<'a> {
    fn from(delta: &'a model::GraphDelta) -> Self {
        let (added, removed) = (&delta.added, &delta.removed);
        Self {
            seq: delta.seq,
            added: GraphPart { nodes: nodes(&added.nodes), calls: calls(&added.calls) },
            changed: GraphChanged { nodes: nodes(&delta.changed) },
            removed: GraphRemoved {
                nodes: removed.nodes.iter().map(|id| (&**id).into()).collect(),
                calls: calls(&removed.calls),
            },
        }
    }
}

fn nodes(nodes: &[(Arc<str>, model::GraphNode)]) -> Vec<(Cow<'_, str>, GraphNode)> {
    nodes.iter().map(|(id, node)| ((&**id).into(), node.into())).collect()
}

fn calls(calls: &[model::GraphCall]) -> Vec<GraphCall<'_>> {
    let calls = calls.iter();
    calls.map(|call| GraphCall { from: (&*call.from).into(), to: (&*call.to).into() }).collect()
}

impl From<&model::GraphNode> for GraphNode {
    fn from(node: &model::GraphNode) -> Self {
        Self {
            kind: node.kind.into(),
            lines: NodeLines { start: node.lines.start, end: node.lines.end },
            tokens: node.tokens,
            language: node.language.map(Cow::Borrowed),
            last_write: node.last_write,
            changed: node.last_write.is_some(),
        }
    }
}
