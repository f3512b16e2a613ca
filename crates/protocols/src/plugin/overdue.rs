//! Owns the watchdog, a thread that logs calls of in-process plugins that do not return. It is a
//! thread because such a call may block the whole async runtime; it sleeps until a call may be
//! overdue.

use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::blame;

/// How long a call may take. A longer call in this process is logged; a longer call in a child ends
/// the child.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);

static WATCH: LazyLock<Option<Arc<Watchdog>>> = LazyLock::new(|| {
    let watch = Arc::new(Watchdog::default());
    let watching = Arc::clone(&watch);
    let thread = thread::Builder::new().name("plugin-watch".to_owned());
    match thread.spawn(move || watching.run(DEADLINE, warn)) {
        Ok(_) => Some(watch),
        Err(error) => {
            tracing::warn!(%error, "overdue calls of plugins are not logged");
            None
        }
    }
});

/// Makes a call of the plugin `name`, and logs it if it does not return.
pub(super) fn during<T>(name: &Arc<str>, what: &'static str, call: impl FnOnce() -> T) -> T {
    let call = || blame::during(name, what, call);
    match &*WATCH {
        Some(watch) => watch.during(name, what, call),
        None => call(),
    }
}

#[derive(Default)]
struct Watchdog {
    calls: Mutex<RunningCalls>,
    begun: Condvar,
}

#[derive(Default)]
struct RunningCalls {
    under_way: Vec<Underway>,
    last: u64,
    /// The thread sleeps without a timeout and must be notified.
    rests: bool,
}

struct Underway {
    id: u64,
    name: Arc<str>,
    what: &'static str,
    began: Instant,
    is_reported: bool,
}

impl RunningCalls {
    /// Returns the calls that have become overdue since the last query.
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
        self.calls.lock().under_way.retain(|call| call.id != id);
        done
    }

    fn begins(&self, call: Underway) -> u64 {
        let mut calls = self.calls.lock();
        calls.last += 1;
        let id = calls.last;
        calls.under_way.push(Underway { id, ..call });
        if std::mem::take(&mut calls.rests) {
            self.begun.notify_one();
        }
        id
    }

    /// Reports each call once that runs for `longest`.
    fn run(&self, longest: Duration, report: impl Fn(&str, &'static str, Duration)) -> ! {
        let mut calls = self.calls.lock();
        loop {
            let now = Instant::now();
            let overdue = calls.overdue(now, longest);
            if !overdue.is_empty() {
                // A report may block; other calls must not wait for it.
                drop(calls);
                for (name, what) in overdue {
                    report(&name, what, longest);
                }
                calls = self.calls.lock();
                continue;
            }
            let waiting = calls.under_way.iter().filter(|call| !call.is_reported);
            let next = waiting.map(|call| longest.saturating_sub(now - call.began)).min();
            calls.rests = next.is_none();
            match next {
                Some(time) => drop(self.begun.wait_for(&mut calls, time)),
                None => self.begun.wait(&mut calls),
            }
        }
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

    /// A call is reported while it runs, once, and the next one too, though nothing ran in between.
    #[test]
    fn each_call_that_does_not_return_is_reported_once() {
        let watch = Arc::new(Watchdog::default());
        let (sender, reported) = mpsc::channel();
        let watching = Arc::clone(&watch);
        thread::spawn(move || {
            watching.run(Duration::from_millis(1), move |name, what, _| {
                sender.send(format!("{name} {what}")).unwrap();
            });
        });
        let name: Arc<str> = "words".into();
        watch.during(&name, "create", || assert_eq!(reported.recv().unwrap(), "words create"));
        for what in ["gate", "destroy"] {
            let (inner, outer) = (format!("words {what}"), "words read");
            watch.during(&name, "read", || {
                assert_eq!(reported.recv().unwrap(), outer);
                watch.during(&name, what, || assert_eq!(reported.recv().unwrap(), inner));
            });
        }
        assert!(reported.try_recv().is_err());
    }

    /// A report may block, and each call needs the lock.
    #[test]
    fn no_call_waits_for_what_is_reported() {
        let watch = Arc::new(Watchdog::default());
        let (sender, reported) = mpsc::channel();
        let watching = Arc::clone(&watch);
        thread::spawn(move || {
            let seen = Arc::clone(&watching);
            watching.run(Duration::from_millis(1), move |_, _, _| {
                sender.send(seen.calls.try_lock().is_some()).unwrap();
            });
        });
        watch.during(&"words".into(), "read", || assert!(reported.recv().unwrap(), "it is locked"));
    }
}
