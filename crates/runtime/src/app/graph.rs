//! Connects the code graph with the tracker: touches are resolved to symbols, and writes on the
//! disk are reported to the tracker.

use std::path::PathBuf;
use std::sync::Arc;

use eisen_base::task::TaskSet;
use tokio_util::sync::CancellationToken;

use crate::bus::Bus;
use crate::capture::{Capture, Noticed};
use crate::graph::Settings;
use crate::home::environment;
use crate::model::Lines;
use crate::tracker::{Symbols, TrackerHandle, Write};
use crate::watch::{GraphHandle, OnChanged};

/// Starts the graph of a workspace. None: it failed to start, which was logged.
pub(super) fn keep(
    workspace: PathBuf,
    bus: Bus,
    tracker: &TrackerHandle,
    capture: Option<Capture>,
    cancel: CancellationToken,
    rooms: &mut TaskSet,
) -> Option<GraphHandle> {
    let writes = tracker.clone();
    let on_write = Box::new(move |path| writes.disk_wrote(path));
    // One thread: the agents need the others.
    let settings = Settings { jobs: 1, tokens: true, cache: environment::cache_folder() };
    let on_changed = capture.map(|capture| -> OnChanged {
        Box::new(move |paths, is_new| {
            let noticed = paths.iter().map(|path| Noticed { path: path.clone(), is_new });
            capture.noticed(noticed.collect());
        })
    });
    match GraphHandle::spawn(workspace, settings, bus, on_write, on_changed, cancel) {
        Ok((graph, keeping)) => {
            rooms.spawn(keeping);
            tracker.join(Arc::new(GraphSymbols(graph.clone())));
            #[cfg(target_os = "linux")]
            {
                // Parsers and tables are rarely used after the first scan: free their pages.
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
            tracing::warn!(%error, "cannot build the code graph");
            None
        }
    }
}

/// The symbol queries of the tracker, answered by the graph.
#[derive(Debug)]
struct GraphSymbols(GraphHandle);

impl Symbols for GraphSymbols {
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
