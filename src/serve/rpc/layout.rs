//! Owns the method that says where files and folders are on the map.

use std::sync::Arc;

use super::{MethodCall, Reply, reply};
use crate::model::{GraphKind, GraphSnapshot};
use crate::serve::lines::GRAPH_IS_OFF;
use crate::view::{LayoutPart, Placed, SIDE};
use crate::watch::GraphState;
use crate::wire::{FilePlace, FolderPlace, GetLayout, GetLayoutParams, MapLayout, RpcError};

pub(super) async fn get_layout(
    call: MethodCall<'_>,
    params: GetLayoutParams,
) -> Result<Reply<GetLayout>, RpcError> {
    let shared = call.shared;
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
        reply(&MapLayout::from(part))
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
