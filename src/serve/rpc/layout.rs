//! Owns the method that says where files and folders are on the map.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::raw;
use crate::model::{GraphKind, GraphSnapshot};
use crate::serve::shared::Shared;
use crate::serve::wire::{GRAPH_IS_OFF, RpcError};
use crate::view::{LayoutPart, Placed, SIDE};
use crate::watch::GraphState;

#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "GetLayoutParams")]
pub(in crate::serve) struct GetLayout {
    /// The `seq` of an earlier answer: only what changed since then.
    since: Option<u64>,
}

/// The places of files and folders.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Layout")]
pub(in crate::serve) struct MapLayout {
    /// Of the code graph that it shows.
    seq: u64,
    /// It replaces what the client knew; else it changes that.
    whole: bool,
    width: u16,
    height: u16,
    /// By path; the workspace's is empty.
    folders: Vec<FolderPlace>,
    files: Vec<FilePlace>,
    /// Paths that have no place any more; to be removed before the others are added.
    removed: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct FolderPlace {
    #[serde(flatten)]
    place: FilePlace,
    /// Only if it is not 0: files in it that have no place of their own.
    #[serde(skip_serializing_if = "is_zero")]
    more: usize,
}

#[derive(Serialize, JsonSchema)]
struct FilePlace {
    path: String,
    x: u16,
    y: u16,
    w: u16,
    h: u16,
}

pub(super) async fn get_layout(
    shared: &Shared,
    params: GetLayout,
) -> Result<Box<RawValue>, RpcError> {
    let graph = match shared.sources.graph(true).await {
        GraphState::There { graph, .. } => graph,
        GraphState::Off => return Err(RpcError::new(404, GRAPH_IS_OFF)),
        GraphState::Coming => return Err(RpcError::new(409, "the team is stopping")),
    };
    let layout = Arc::clone(&shared.layout);
    let laying = tokio::task::spawn_blocking(move || {
        let part = {
            let mut layout = layout.lock();
            if layout.seq() != Some(graph.seq) {
                layout.update(graph.seq, &files(&graph));
            }
            layout.since(params.since)
        };
        raw(&MapLayout::from(part))
    });
    laying.await.map_err(|error| RpcError::new(500, error.to_string()))?
}

/// The files of the graph, with their lines.
fn files(graph: &GraphSnapshot) -> Vec<(Arc<str>, u32)> {
    let files = graph.nodes.iter().filter(|(_, node)| node.kind == GraphKind::File);
    files.map(|(id, node)| (Arc::clone(id), node.lines.end)).collect()
}

impl From<LayoutPart> for MapLayout {
    fn from(part: LayoutPart) -> Self {
        let folder = |it: Placed| FolderPlace { more: it.more, place: it.into() };
        Self {
            seq: part.seq,
            whole: part.is_whole,
            width: SIDE,
            height: SIDE,
            folders: part.folders.into_iter().map(folder).collect(),
            files: part.files.into_iter().map(FilePlace::from).collect(),
            removed: part.removed.iter().map(ToString::to_string).collect(),
        }
    }
}

impl From<Placed> for FilePlace {
    fn from(placed: Placed) -> Self {
        let tile = placed.tile;
        Self { path: placed.path.to_string(), x: tile.x, y: tile.y, w: tile.w, h: tile.h }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
