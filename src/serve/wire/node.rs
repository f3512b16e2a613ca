//! Owns a map node's form in `snapshot` and `delta`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::{FileNode, Origin, Touch};

/// A file on the map.
#[derive(Serialize, JsonSchema)]
pub(super) struct Node<'a> {
    /// Relative to the workspace, with forward slashes; absolute if outside.
    path: &'a str,
    #[schemars(range(min = 0, max = 1))]
    heat: f64,
    /// Whether the agent is assumed to have the file in its context.
    in_context: bool,
    #[schemars(extend("enum" = Touch::ALL.map(Touch::as_str)))]
    last_action: &'a str,
    /// Number of the turn of the last access, from 0 for each session.
    turn_accessed: u64,
    /// Time of the last access, in milliseconds since 1970 UTC.
    timestamp_ms: u64,
    /// Ids of the symbols that were read or written, in order; only in context, and only where the
    /// lines of an access and the file's symbols are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    symbols: Option<&'a [Arc<str>]>,
    /// The source of the last write; only if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = Origin::ALL.map(Origin::as_str)))]
    origin: Option<&'a str>,
}

impl<'a> From<&'a FileNode> for Node<'a> {
    fn from(node: &'a FileNode) -> Self {
        Self {
            path: &node.path,
            heat: node.heat,
            in_context: node.in_context,
            last_action: node.last_action.as_str(),
            turn_accessed: node.turn_accessed,
            timestamp_ms: node.timestamp_ms,
            symbols: node.symbols.as_deref(),
            origin: node.origin.map(Origin::as_str),
        }
    }
}

pub(super) fn each<S: serde::Serializer>(
    nodes: &[FileNode],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(nodes.iter().map(Node::from))
}

pub(super) fn by_path<S: serde::Serializer>(
    nodes: &[FileNode],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(nodes.iter().map(|node| (&*node.path, Node::from(node))))
}
