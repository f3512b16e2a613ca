//! Polls the resource usage of all families, from a thread of its own: reading their processes blocks, and
//! limits must hold however busy the runtime is.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::family_state::{FamilyInner, PollRate};
use super::tree::ProcessTable;

#[derive(Default)]
struct LimitMonitor {
    families: Vec<Weak<FamilyInner>>,
    /// Whether the thread runs; it ends when there are no families.
    runs: bool,
}

static MONITOR: Mutex<LimitMonitor> =
    Mutex::new(LimitMonitor { families: Vec::new(), runs: false });

/// Polls a family until it is dropped.
pub(super) fn enter(family: &Arc<FamilyInner>) {
    let mut monitor = MONITOR.lock();
    monitor.families.push(Arc::downgrade(family));
    if !monitor.runs {
        let thread = std::thread::Builder::new().name("limits".to_owned()).spawn(run);
        monitor.runs = thread.is_ok();
        if let Err(error) = thread {
            tracing::error!(%error, "cannot start the thread that enforces limits by polling");
        }
    }
}

fn run() {
    while let Some(families) = families() {
        let mut busy = families.iter().filter(|family| family.has_processes()).peekable();
        let processes = if busy.peek().is_none() {
            ProcessTable::default()
        } else if busy.any(|family| family.limits.is_any()) {
            // A limit holds for every process.
            ProcessTable::take()
        } else {
            ProcessTable::take_below(families.iter().flat_map(|family| family.wardens()))
        };
        let rate = families.iter().map(|family| family.poll(&processes)).min();
        drop(families);
        std::thread::sleep(interval(rate.unwrap_or(PollRate::Calm)));
    }
}

/// The families that exist. None without any: the thread ends.
fn families() -> Option<Vec<Arc<FamilyInner>>> {
    let mut monitor = MONITOR.lock();
    monitor.families.retain(|family| family.strong_count() > 0);
    monitor.runs = !monitor.families.is_empty();
    monitor.runs.then(|| monitor.families.iter().filter_map(Weak::upgrade).collect())
}

fn interval(rate: PollRate) -> Duration {
    Duration::from_millis(match rate {
        PollRate::Dying => 10,
        PollRate::Growing => 50,
        PollRate::Limited => 250,
        PollRate::Calm => 1000,
    })
}
