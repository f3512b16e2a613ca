//! Owns the code graph's form on the wire.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::model::{self, GraphCall, GraphKind, GraphNode, GraphSnapshot, TimestampMs};

/// The whole graph, in its line, in answers and printed by `snapshot`.
#[derive(Serialize, JsonSchema)]
pub(super) struct Graph<'a> {
    /// Number of the last delta that it contains.
    seq: u64,
    /// By id: a path relative to the workspace, or `path::symbol`, `path::Class::method`.
    #[serde(serialize_with = "by_id")]
    #[schemars(with = "BTreeMap<String, Node>")]
    nodes: &'a [NamedNode],
    #[schemars(with = "Vec<CallEdge<'_>>")]
    #[serde(serialize_with = "each_call")]
    calls: &'a [GraphCall],
}

impl<'a> From<&'a GraphSnapshot> for Graph<'a> {
    fn from(graph: &'a GraphSnapshot) -> Self {
        Self { seq: graph.seq, nodes: &graph.nodes, calls: &graph.calls }
    }
}

/// What changed in the graph.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GraphDelta")]
pub(super) struct Delta<'a> {
    /// One more than the delta before.
    seq: u64,
    added: Part<'a>,
    /// Nodes that are no longer as they were, whole.
    changed: Changed<'a>,
    removed: Removed<'a>,
}

impl<'a> From<&'a model::GraphDelta> for Delta<'a> {
    fn from(delta: &'a model::GraphDelta) -> Self {
        Self {
            seq: delta.seq,
            added: Part { nodes: &delta.added.nodes, calls: &delta.added.calls },
            changed: Changed { nodes: &delta.changed },
            removed: Removed {
                nodes: delta.removed.nodes.iter().map(AsRef::as_ref).collect(),
                calls: &delta.removed.calls,
            },
        }
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GraphPart")]
struct Part<'a> {
    #[serde(serialize_with = "by_id")]
    #[schemars(with = "BTreeMap<String, Node>")]
    nodes: &'a [NamedNode],
    #[schemars(with = "Vec<CallEdge<'_>>")]
    #[serde(serialize_with = "each_call")]
    calls: &'a [GraphCall],
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GraphChanged")]
struct Changed<'a> {
    #[serde(serialize_with = "by_id")]
    #[schemars(with = "BTreeMap<String, Node>")]
    nodes: &'a [NamedNode],
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GraphRemoved")]
struct Removed<'a> {
    /// Ids.
    nodes: Vec<&'a str>,
    #[schemars(with = "Vec<CallEdge<'_>>")]
    #[serde(serialize_with = "each_call")]
    calls: &'a [GraphCall],
}

/// A folder, file or symbol.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GraphNode")]
struct Node {
    #[schemars(extend("enum" = GraphKind::ALL.map(GraphKind::as_str)))]
    kind: &'static str,
    lines: Lines,
    /// By the encoding `o200k`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u32>,
    /// Only of a file that was parsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'static str>,
    /// When an agent of the team last wrote it, in milliseconds since 1970 UTC.
    #[serde(rename = "lastWrite", skip_serializing_if = "Option::is_none")]
    last_write: Option<TimestampMs>,
    /// Only if an agent of the team wrote it since the team came up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    changed: bool,
}

impl From<&GraphNode> for Node {
    fn from(node: &GraphNode) -> Self {
        Self {
            kind: node.kind.as_str(),
            lines: Lines { start: node.lines.start, end: node.lines.end },
            tokens: node.tokens,
            language: node.language,
            last_write: node.last_write,
            changed: node.last_write.is_some(),
        }
    }
}

/// From 1, both counted; a folder has 0 to 0.
#[derive(Serialize, JsonSchema)]
struct Lines {
    start: u32,
    end: u32,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "GraphCall")]
struct CallEdge<'a> {
    from: &'a str,
    to: &'a str,
}

type NamedNode = (std::sync::Arc<str>, GraphNode);

fn by_id<S: Serializer>(nodes: &[NamedNode], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(nodes.len()))?;
    for (id, node) in nodes {
        map.serialize_entry(&**id, &Node::from(node))?;
    }
    map.end()
}

fn each_call<S: Serializer>(calls: &[GraphCall], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(calls.iter().map(|call| CallEdge { from: &call.from, to: &call.to }))
}
