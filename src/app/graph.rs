//! The code graph beside the team: what is touched is told by its symbols, and what is on the disk
//! by who wrote it.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::environment;
use crate::bus::Bus;
use crate::graph::Settings;
use crate::model::Lines;
use crate::tracker::{Symbols, TrackerHandle, Write};
use crate::watch::GraphHandle;

/// Keeps the graph of a workspace from now on. None: it cannot be, which was told.
pub(super) fn keep(
    workspace: PathBuf,
    bus: Bus,
    tracker: &TrackerHandle,
    cancel: CancellationToken,
    rooms: &mut JoinSet<()>,
) -> Option<GraphHandle> {
    let told = tracker.clone();
    let tell_written = Box::new(move |path| told.disk_wrote(path));
    // Agents have work for the other threads.
    let settings = Settings { jobs: 1, tokens: true, cache: environment::cache_folder() };
    match GraphHandle::spawn(workspace, settings, bus, tell_written, cancel) {
        Ok((graph, keeping)) => {
            rooms.spawn(keeping);
            tracker.join(Arc::new(Joined(graph.clone())));
            #[cfg(target_os = "linux")]
            {
                // Parsers and tables are needed all at once for the whole, and seldom from then on.
                let made = graph.clone();
                rooms.spawn(async move {
                    if made.is_made().await {
                        crate::process::give_back_program();
                    }
                });
            }
            Some(graph)
        }
        Err(error) => {
            tracing::warn!(%error, "there is no code graph");
            None
        }
    }
}

/// The graph, as the tracker asks for it.
#[derive(Debug)]
struct Joined(GraphHandle);

impl Symbols for Joined {
    fn covered(&self, path: &str, lines: &Lines) -> Vec<Arc<str>> {
        self.0.covered(path, lines)
    }

    fn callers(&self, symbol: &str) -> Vec<Arc<str>> {
        self.0.callers(symbol)
    }

    fn wrote(&self, write: &Write<'_>) {
        self.0.wrote(write.path, write.lines, write.timestamp_ms);
    }
}
