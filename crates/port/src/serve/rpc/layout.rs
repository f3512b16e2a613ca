//! Owns the method that says where files and folders are on the map.

use std::sync::Arc;

use super::{MethodCall, Reply, reply};
use crate::model::{GraphKind, GraphSnapshot};
use crate::serve::lines::GRAPH_IS_OFF;
use crate::serve::{Refused, blocking};
use crate::watch::GraphState;
use crate::wire::{GetLayout, GetLayoutParams, MapLayout};

pub(super) async fn get_layout(
    call: MethodCall<'_>,
    params: GetLayoutParams,
) -> Result<Reply<GetLayout>, Refused> {
    let shared = call.shared;
    let graph = match shared.sources.graph(true).await {
        GraphState::There { graph, .. } => graph,
        GraphState::Off => return Err(Refused::new(404, GRAPH_IS_OFF)),
        GraphState::Coming => return Err(Refused::new(409, "the team is stopping")),
    };
    let layout = Arc::clone(&shared.layout);
    blocking(move || {
        let part = {
            let mut layout = layout.lock();
            if layout.seq() != Some(graph.seq) {
                layout.update(graph.seq, &files(&graph));
            }
            layout.since(params.since)
        };
        reply(&MapLayout::from(part))
    })
    .await?
}

/// The files of the graph, with their lines.
fn files(graph: &GraphSnapshot) -> Vec<(Arc<str>, u32)> {
    let files = graph.nodes.iter().filter(|(_, node)| node.kind == GraphKind::File);
    files.map(|(id, node)| (Arc::clone(id), node.lines.end)).collect()
}
