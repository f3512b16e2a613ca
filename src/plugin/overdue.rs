//! Says when a call in this very process does not return. It keeps a thread of the runtime, and may
//! keep all else from getting on: nothing but a thread of its own can be sure to say so. There is
//! one for all instances. It sleeps until something may be overdue, or while nothing is under way,
//! so that a call wakes it once in that time and not each time.

use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::blame;

/// How long a call may take: one in this process is reported past that, a process of its own is
/// ended.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);

static WATCH: LazyLock<Option<Arc<Watchdog>>> = LazyLock::new(|| {
    let watch = Arc::new(Watchdog::default());
    let watching = Arc::clone(&watch);
    let thread = thread::Builder::new().name("plugin-watch".to_owned());
    match thread.spawn(move || watching.run(DEADLINE, warn)) {
        Ok(_) => Some(watch),
        Err(error) => {
            tracing::warn!(%error, "plugins are not watched");
            None
        }
    }
});

/// Makes a call of the plugin `name` that is told if it does not return.
pub(super) fn during<T>(name: &Arc<str>, what: &'static str, call: impl FnOnce() -> T) -> T {
    let call = || blame::during(name, what, call);
    match &*WATCH {
        Some(watch) => watch.during(name, what, call),
        None => call(),
    }
}

#[derive(Default)]
struct Watchdog {
    calls: Mutex<Calls>,
    begun: Condvar,
}

#[derive(Default)]
struct Calls {
    under_way: Vec<Underway>,
    last: u64,
    /// The thread sleeps until it is woken.
    rests: bool,
}

struct Underway {
    id: u64,
    name: Arc<str>,
    what: &'static str,
    began: Instant,
    is_reported: bool,
}

impl Calls {
    /// Returns what has become overdue since it was asked last.
    fn overdue(&mut self, now: Instant, longest: Duration) -> Vec<(Arc<str>, &'static str)> {
        let is_overdue = |call: &&mut Underway| !call.is_reported && now - call.began >= longest;
        let overdue = self.under_way.iter_mut().filter(is_overdue);
        overdue
            .map(|call| {
                call.is_reported = true;
                (Arc::clone(&call.name), call.what)
            })
            .collect()
    }
}

impl Watchdog {
    fn during<T>(&self, name: &Arc<str>, what: &'static str, call: impl FnOnce() -> T) -> T {
        let id = self.begins(Underway {
            id: 0,
            name: Arc::clone(name),
            what,
            began: Instant::now(),
            is_reported: false,
        });
        let done = call();
        self.calls().under_way.retain(|call| call.id != id);
        done
    }

    fn begins(&self, call: Underway) -> u64 {
        let mut calls = self.calls();
        calls.last += 1;
        let id = calls.last;
        calls.under_way.push(Underway { id, ..call });
        if std::mem::take(&mut calls.rests) {
            self.begun.notify_one();
        }
        id
    }

    /// Tells each call once that runs for `longest`.
    fn run(&self, longest: Duration, tell: impl Fn(&str, &'static str, Duration)) -> ! {
        let mut calls = self.calls();
        loop {
            let now = Instant::now();
            let overdue = calls.overdue(now, longest);
            if !overdue.is_empty() {
                // Telling may take its time, and no call is to wait for that.
                drop(calls);
                for (name, what) in overdue {
                    tell(&name, what, longest);
                }
                calls = self.calls();
                continue;
            }
            let waiting = calls.under_way.iter().filter(|call| !call.is_reported);
            let next = waiting.map(|call| longest.saturating_sub(now - call.began)).min();
            calls.rests = next.is_none();
            calls = match next {
                Some(time) => {
                    let woken = self.begun.wait_timeout(calls, time);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.begun.wait(calls).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn warn(name: &str, what: &'static str, longest: Duration) {
    tracing::error!(
        plugin = name,
        call = what,
        "a plugin has not returned for {} s, and the team may stand still: if it goes on so, end it \
         with SIGKILL, and let the plugin run with isolation = \"process\"",
        longest.as_secs()
    );
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::mpsc;

    use super::*;

    /// A call is told while it runs, once, and the next one too, though nothing ran in between.
    #[test]
    fn each_call_that_does_not_return_is_told_once() {
        let watch = Arc::new(Watchdog::default());
        let (telling, told) = mpsc::channel();
        let watching = Arc::clone(&watch);
        thread::spawn(move || {
            watching.run(Duration::from_millis(1), move |name, what, _| {
                telling.send(format!("{name} {what}")).unwrap();
            });
        });
        let name: Arc<str> = "words".into();
        watch.during(&name, "create", || assert_eq!(told.recv().unwrap(), "words create"));
        for what in ["gate", "destroy"] {
            let (inner, outer) = (format!("words {what}"), "words read");
            watch.during(&name, "read", || {
                assert_eq!(told.recv().unwrap(), outer);
                watch.during(&name, what, || assert_eq!(told.recv().unwrap(), inner));
            });
        }
        assert!(told.try_recv().is_err());
    }

    /// The log may not take what it is told, and each call needs the lock.
    #[test]
    fn no_call_waits_for_what_is_told() {
        let watch = Arc::new(Watchdog::default());
        let (telling, told) = mpsc::channel();
        let watching = Arc::clone(&watch);
        thread::spawn(move || {
            let seen = Arc::clone(&watching);
            watching.run(Duration::from_millis(1), move |_, _, _| {
                telling.send(seen.calls.try_lock().is_ok()).unwrap();
            });
        });
        watch.during(&"words".into(), "read", || assert!(told.recv().unwrap(), "it is locked"));
    }
}
