//! Owns the code graph: its lines, and where files and folders are on the map.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::method::method;
use super::{Empty, NameOf};
use crate::model::GraphKind;

method! {
    GetGraph = "get_graph": Empty => Graph<'a>;
    port: Anyone, web: Read, token: Read(Team), waits: false, lasts: false, hub: Graph
}

method! {
    GetLayout = "get_layout": GetLayoutParams => MapLayout;
    port: Anyone, web: Read, token: Read(Team), waits: false, lasts: false, hub: Graph
}

/// The whole graph, in its line, in answers and printed by `snapshot`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Graph<'a> {
    /// Number of the last delta that it contains.
    pub seq: u64,
    /// By id: a path relative to the workspace, or `path::symbol`, `path::Class::method`.
    #[serde(with = "by_id")]
    #[schemars(with = "BTreeMap<String, GraphNode>")]
    pub nodes: Vec<(Cow<'a, str>, GraphNode)>,
    pub calls: Vec<GraphCall<'a>>,
}

/// A change of the graph.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GraphDelta<'a> {
    /// One more than the delta before.
    pub seq: u64,
    pub added: GraphPart<'a>,
    /// Nodes that are no longer as they were, whole.
    pub changed: GraphChanged<'a>,
    pub removed: GraphRemoved<'a>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GraphPart<'a> {
    #[serde(with = "by_id")]
    #[schemars(with = "BTreeMap<String, GraphNode>")]
    pub nodes: Vec<(Cow<'a, str>, GraphNode)>,
    pub calls: Vec<GraphCall<'a>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GraphChanged<'a> {
    #[serde(with = "by_id")]
    #[schemars(with = "BTreeMap<String, GraphNode>")]
    pub nodes: Vec<(Cow<'a, str>, GraphNode)>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GraphRemoved<'a> {
    /// Ids.
    pub nodes: Vec<Cow<'a, str>>,
    pub calls: Vec<GraphCall<'a>>,
}

/// A folder, file or symbol.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GraphNode {
    pub kind: NameOf<GraphKind>,
    pub lines: NodeLines,
    /// By the encoding `o200k`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u32>,
    /// Only of a file that was parsed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<Cow<'static, str>>,
    /// When an agent of the team last wrote it, in milliseconds since 1970 UTC.
    #[serde(rename = "lastWrite", skip_serializing_if = "Option::is_none")]
    pub last_write: Option<u64>,
    /// Only if an agent of the team wrote it since the team came up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
}

/// From 1, both counted; a folder has 0 to 0.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Lines")]
pub struct NodeLines {
    pub start: u32,
    pub end: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GraphCall<'a> {
    pub from: Cow<'a, str>,
    pub to: Cow<'a, str>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GetLayoutParams {
    /// The `seq` of an earlier answer: only what changed since then.
    pub since: Option<u64>,
}

/// The places of files and folders.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Layout")]
pub struct MapLayout {
    /// The number of the code graph that it shows.
    pub seq: u64,
    /// The layout replaces the one that the client knew; else it changes that one.
    pub whole: bool,
    pub width: u16,
    pub height: u16,
    /// By path; the workspace's is empty.
    pub folders: Vec<FolderPlace>,
    pub files: Vec<FilePlace>,
    /// Paths that have no place any more; to be removed before the others are added.
    pub removed: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FolderPlace {
    #[serde(flatten)]
    pub place: FilePlace,
    /// Files in it without a place of their own. Left out where there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FilePlace {
    pub path: String,
    pub x: u16,
    pub y: u16,
    pub w: u16,
    pub h: u16,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Nodes as an object, whose keys are their ids.
mod by_id {
    use std::borrow::Cow;
    use std::fmt;
    use std::marker::PhantomData;

    use serde::de::{Deserializer, MapAccess, Visitor};
    use serde::ser::Serializer;

    use super::GraphNode;

    pub(super) fn serialize<S: Serializer>(
        nodes: &[(Cow<'_, str>, GraphNode)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(nodes.iter().map(|(id, node)| (id, node)))
    }

    pub(super) fn deserialize<'de, 'a, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(Cow<'a, str>, GraphNode)>, D::Error> {
        deserializer.deserialize_map(Nodes(PhantomData))
    }

    struct Nodes<'a>(PhantomData<&'a ()>);

    impl<'de, 'a> Visitor<'de> for Nodes<'a> {
        type Value = Vec<(Cow<'a, str>, GraphNode)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("nodes by id")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut nodes = Vec::new();
            while let Some(node) = map.next_entry()? {
                nodes.push(node);
            }
            Ok(nodes)
        }
    }
}
