//! Keeps the code graph of the workspace up to date with the disk, and publishes its changes.
//!
//! A separate thread owns the graph, away from the relay: it collects changed files until they
//! settle, reads them again, and publishes the difference. Of agents it knows only the writes they
//! claim.

mod disk;
mod inbox;
mod pending;
mod shown;
mod updater;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use self::inbox::{Inbox, Write};
use self::updater::UpdaterThread;
use crate::bus::{Bus, Rendered};
use crate::graph::{Graph, Settings};
use crate::model::{GraphSnapshot, Lines, TimestampMs};

pub use self::updater::{OnChanged, OnWritten};

/// The graph, or the reason that it is missing.
#[derive(Clone, Debug)]
pub enum GraphState {
    /// No graph is kept.
    Off,
    /// The graph is being built and will be published on the bus; or its thread has ended.
    Coming,
    /// The graph was built.
    There {
        /// Number of the first event on the bus that is not included.
        as_of: u64,
        /// The graph, encoded once for all clients.
        graph: Arc<Rendered<GraphSnapshot>>,
    },
}

/// Queries the graph's thread; cheap to clone.
#[derive(Clone)]
pub struct GraphHandle {
    shared: Arc<GraphShared>,
    root: PathBuf,
    is_there: watch::Receiver<bool>,
}

/// State shared between the thread and the handles.
struct GraphShared {
    inbox: Inbox,
    /// Locked only to apply changes or to take a copy.
    graph: Mutex<Graph>,
}

impl GraphHandle {
    /// Starts the thread for the folder `root`; the future ends soon after `cancel`. `on_written`
    /// is called for each file written on disk, `on_changed` for each change.
    pub fn spawn(
        root: PathBuf,
        settings: Settings,
        bus: Bus,
        on_written: OnWritten,
        on_changed: Option<OnChanged>,
        cancel: CancellationToken,
    ) -> std::io::Result<(Self, impl Future<Output = ()> + Send + 'static)> {
        let shared = Arc::new(GraphShared::of(&root));
        let (there, is_there) = watch::channel(false);
        let keeper = UpdaterThread {
            root: root.clone(),
            settings,
            shared: Arc::clone(&shared),
            bus,
            on_written,
            on_changed,
            is_there: there,
        };
        let thread = std::thread::Builder::new().name("graph".to_owned());
        let (ended, has_ended) = oneshot::channel::<()>();
        thread.spawn(move || {
            keeper.run();
            drop(ended);
        })?;
        let handle = Self { shared: Arc::clone(&shared), root, is_there };
        let keeping = async move {
            cancel.cancelled().await;
            shared.inbox.close();
            let _ = has_ended.await;
        };
        Ok((handle, keeping))
    }

    /// Waits until the graph was built for the first time; false if the thread ends before.
    pub async fn is_made(&self) -> bool {
        self.is_there.clone().wait_for(|there| *there).await.is_ok()
    }

    /// Returns the graph; with `wait`, waits until it is built.
    pub async fn state(&self, wait: bool) -> GraphState {
        let mut is_there = self.is_there.clone();
        if !wait && !*is_there.borrow() {
            return GraphState::Coming;
        }
        let (reply, answer) = oneshot::channel();
        if is_there.wait_for(|there| *there).await.is_err() {
            return GraphState::Coming;
        }
        self.shared.inbox.query(reply);
        answer.await.unwrap_or(GraphState::Coming)
    }

    /// Returns the ids of the innermost symbols that lines of a file touch.
    pub fn covered(&self, path: &str, lines: &Lines) -> Vec<Arc<str>> {
        let nodes = self.shared.graph.lock().nodes_at(path, lines.ranges());
        nodes.into_iter().skip(1).map(|(id, _)| id).collect()
    }

    /// Returns the ids of a symbol's callers.
    pub fn callers(&self, symbol: &str) -> Vec<Arc<str>> {
        self.shared.graph.lock().callers(symbol)
    }

    /// Records a write claimed by an agent, to mark its symbols. Never waits.
    pub fn wrote(&self, path: &str, lines: &Lines, timestamp_ms: TimestampMs) {
        let write = Write { lines: lines.clone(), timestamp_ms };
        self.shared.inbox.wrote(path, write);
    }
}

impl std::fmt::Debug for GraphHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphHandle").field("root", &self.root).finish_non_exhaustive()
    }
}

impl GraphShared {
    fn of(root: &Path) -> Self {
        Self { inbox: Inbox::default(), graph: Mutex::new(Graph::of(root)) }
    }
}
