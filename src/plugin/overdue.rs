//! Says when a call in this very process does not return. It keeps a thread of the runtime, and may
//! keep all else from getting on: nothing but a thread of its own can be sure to say so.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(1);

/// Looks at the calls of one instance.
pub(super) struct Watch(Arc<Mutex<Option<Instant>>>);

impl Watch {
    /// `name` is the plugin's; `longest` is when a call is told that runs.
    pub(super) fn new(name: String, longest: Duration) -> Self {
        let began = Arc::default();
        let seen = Arc::downgrade(&began);
        let watching = thread::Builder::new().name("plugin-watch".to_owned());
        if let Err(error) = watching.spawn(move || watch(&name, longest, &seen)) {
            tracing::warn!(%error, "a plugin is not watched");
        }
        Self(began)
    }

    pub(super) fn during<T>(&self, call: impl FnOnce() -> T) -> T {
        let set = |began| *self.0.lock().unwrap_or_else(PoisonError::into_inner) = began;
        set(Some(Instant::now()));
        let done = call();
        set(None);
        done
    }
}

/// Tells each call once that runs for too long, until there is no instance any more.
fn watch(name: &str, longest: Duration, calls: &Weak<Mutex<Option<Instant>>>) {
    let mut told = None;
    while let Some(calls) = calls.upgrade() {
        let began = *calls.lock().unwrap_or_else(PoisonError::into_inner);
        drop(calls);
        if began != told && began.is_some_and(|began| began.elapsed() >= longest) {
            told = began;
            tracing::error!(
                plugin = name,
                "a plugin has not returned for {} s, and the team may stand still: if it goes on so, \
                 end it with SIGKILL, and let the plugin run with isolation = \"process\"",
                longest.as_secs()
            );
        }
        thread::sleep(EVERY);
    }
}
