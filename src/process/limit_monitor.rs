//! Looks at all families again and again, from a thread of its own: a look at every process of the
//! machine takes some milliseconds, and a limit is to hold however busy the rest is.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::household::{FamilyInner, PollRate};
use super::tree::ProcessTable;

#[derive(Default)]
struct LimitMonitor {
    families: Vec<Weak<FamilyInner>>,
    /// Whether the thread is there, which ends when there is no family any more.
    runs: bool,
}

static CENSUS: Mutex<LimitMonitor> = Mutex::new(LimitMonitor { families: Vec::new(), runs: false });

/// Has a family looked at for as long as it is there.
pub(super) fn enter(family: &Arc<FamilyInner>) {
    let mut census = CENSUS.lock().unwrap_or_else(PoisonError::into_inner);
    census.families.push(Arc::downgrade(family));
    if !census.runs {
        let thread = std::thread::Builder::new().name("census".to_owned()).spawn(run);
        census.runs = thread.is_ok();
        if let Err(error) = thread {
            tracing::error!(%error, "no limit is held by looking: there is no thread for it");
        }
    }
}

fn run() {
    while let Some(families) = families() {
        let processes = ProcessTable::take();
        let mood = families.iter().map(|family| family.look(&processes)).min();
        drop(families);
        std::thread::sleep(until_next(mood.unwrap_or(PollRate::Calm)));
    }
}

/// Those that are there; None, and the end of the thread, if there is none.
fn families() -> Option<Vec<Arc<FamilyInner>>> {
    let mut census = CENSUS.lock().unwrap_or_else(PoisonError::into_inner);
    census.families.retain(|family| family.strong_count() > 0);
    census.runs = !census.families.is_empty();
    census.runs.then(|| census.families.iter().filter_map(Weak::upgrade).collect())
}

fn until_next(mood: PollRate) -> Duration {
    Duration::from_millis(match mood {
        PollRate::Dying => 10,
        PollRate::Growing => 50,
        PollRate::Limited => 250,
        PollRate::Calm => 1000,
    })
}
