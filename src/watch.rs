//! Keeps the code graph of the workspace up to date with its disk, and tells of it.
//!
//! A thread of its own owns the graph, off the way of every line: it hears of changed files, lets
//! them settle, has them read anew, and publishes what that changed. Knows nothing of agents, but
//! for what they say they wrote.

mod disk;
mod inbox;
mod keeper;
mod pending;
mod shown;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use self::inbox::{Inbox, Write};
use self::keeper::Keeper;
use crate::bus::{Bus, Rendered};
use crate::graph::{Graph, Settings};
use crate::model::{GraphSnapshot, Lines, TimestampMs};

pub use self::keeper::OnWritten;

/// What there is of the graph.
#[derive(Clone, Debug)]
pub enum GraphState {
    /// Nobody keeps one.
    Off,
    /// It is still made, and tells of itself on the bus; or it is gone already.
    Coming,
    There {
        /// Number of the first event on the bus that the graph doesn't contain.
        as_of: u64,
        graph: Arc<Rendered<GraphSnapshot>>,
    },
}

/// Asks whoever keeps the graph; cheap to clone.
#[derive(Clone)]
pub struct GraphHandle {
    shared: Arc<GraphShared>,
    root: PathBuf,
    is_there: watch::Receiver<bool>,
}

/// What the thread shares with those who ask.
struct GraphShared {
    inbox: Inbox,
    /// Held for as long as it takes to put in what was read, or to write out what there is.
    graph: Mutex<Graph>,
}

impl GraphHandle {
    /// Starts to keep the graph of the folder `root`; the future ends soon after `cancel`.
    /// `tell_written` is told of each file that the disk shows written.
    pub fn spawn(
        root: PathBuf,
        settings: Settings,
        bus: Bus,
        tell_written: OnWritten,
        cancel: CancellationToken,
    ) -> std::io::Result<(Self, impl Future<Output = ()> + Send + 'static)> {
        let shared = Arc::new(GraphShared::of(&root));
        let (there, is_there) = watch::channel(false);
        let keeper = Keeper {
            root: root.clone(),
            settings,
            shared: Arc::clone(&shared),
            bus,
            on_written: tell_written,
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

    /// Waits until the graph was made for the first time; false if it never will be.
    pub async fn is_made(&self) -> bool {
        self.is_there.clone().wait_for(|there| *there).await.is_ok()
    }

    /// Returns the graph; with `wait` as soon as it is there.
    pub async fn state(&self, wait: bool) -> GraphState {
        let mut is_there = self.is_there.clone();
        if !wait && !*is_there.borrow() {
            return GraphState::Coming;
        }
        let (reply, answer) = oneshot::channel();
        if is_there.wait_for(|there| *there).await.is_err() {
            return GraphState::Coming;
        }
        self.shared.inbox.ask(reply);
        answer.await.unwrap_or(GraphState::Coming)
    }

    /// Returns the ids of the innermost symbols that lines of a file touch.
    pub fn covered(&self, path: &str, lines: &Lines) -> Vec<Arc<str>> {
        let nodes = self.shared.graph().nodes_at(path, lines.ranges());
        nodes.into_iter().skip(1).map(|(id, _)| id).collect()
    }

    /// Returns the ids of those that call a symbol.
    pub fn callers(&self, symbol: &str) -> Vec<Arc<str>> {
        self.shared.graph().callers(symbol)
    }

    /// Marks what an agent wrote, once the file is looked at. Never waits.
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

    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
