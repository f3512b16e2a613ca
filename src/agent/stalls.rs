//! Notices an agent that is alive, in a turn, and does not get on: by what it says and by the CPU time
//! that its processes use, since a clock alone cannot tell it from one that thinks or builds.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::model::STALLED;
use crate::proxy::Vitals;

/// After which silence an agent counts as stalled unless it is said.
pub const STALL_AFTER: Duration = Duration::from_mins(5);

/// CPU time below this part of the time that went by, in thousandths of one core, is no progress:
/// runtimes use so much while they wait.
const IDLE: u128 = 20;

/// Over which time CPU is measured: long enough for the census to have looked, and for a runtime's
/// housekeeping not to count.
const SHORTEST_WINDOW: Duration = Duration::from_secs(2);
const LONGEST_WINDOW: Duration = Duration::from_secs(30);

/// How soon it is seen that a stalled agent gets on.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Bytes of a failed turn's reason that are repeated.
const LONGEST_REASON: usize = 300;

/// Tells what is wrong with an agent that runs, for as long as it is: that it stalls, else why its
/// last turn failed. `after` is how long it may be silent, zero for ever; `cpu_ms` what its processes
/// used so far. Ends when nobody listens.
pub async fn watch_over(
    vitals: Arc<Vitals>,
    after: Duration,
    cpu_ms: impl Fn() -> u64 + Send,
    sender: watch::Sender<Option<String>>,
) {
    let mut state = vitals.watch();
    let mut pace: Option<Pace> = None;
    loop {
        let now = state.borrow_and_update().clone();
        if !now.is_at_work() || after.is_zero() {
            pace = None;
        } else if pace.is_none() {
            pace = Some(Pace::new(after, Instant::now(), cpu_ms()));
        }
        let is_stalled = pace.as_ref().is_some_and(|pace| pace.is_stalled);
        let wrong = match now.failed {
            _ if is_stalled => Some(stalled(after)),
            failed => failed.map(|reason| format!("its last turn failed: {}", cut(&reason))),
        };
        sender.send_if_modified(|told| std::mem::replace(told, wrong.clone()) != wrong);
        let step = pace.as_ref().map(Pace::step);
        tokio::select! {
            () = sender.closed() => return,
            changed = state.changed() => if changed.is_err() { return },
            () = sleep(step.unwrap_or_default()), if step.is_some() => {
                if let Some(pace) = &mut pace {
                    pace.look(Instant::now(), vitals.last_activity(), cpu_ms());
                }
            }
        }
    }
}

/// What is denied at once waits no longer than this.
const AT_ONCE: Duration = Duration::from_millis(200);

/// Tells which decision an agent waits for, as long as it does. Ends when nobody listens.
pub(super) async fn name_held(vitals: Arc<Vitals>, tell: watch::Sender<Option<String>>) {
    let mut state = vitals.watch();
    loop {
        let held = state.borrow_and_update().held.first().cloned();
        let wrong = held.map(|access| {
            format!(
                "waits for the decision of a blocked access: {access} (see `eisen-core blocked \
                 --status pending`)"
            )
        });
        let is_news = *tell.borrow() != wrong;
        tokio::select! {
            () = tell.closed() => return,
            changed = state.changed() => if changed.is_err() { return },
            () = sleep(AT_ONCE), if is_news => {
                tell.send_replace(wrong);
            }
        }
    }
}

/// How an agent gets on with what is its to do.
struct Pace {
    after: Duration,
    /// When it was last seen to get on.
    since: Instant,
    /// Where the measuring of its CPU time began, and what it had used then.
    mark: (Instant, u64),
    is_stalled: bool,
}

impl Pace {
    fn new(after: Duration, now: Instant, cpu_ms: u64) -> Self {
        Self { after, since: now, mark: (now, cpu_ms), is_stalled: false }
    }

    fn look(&mut self, now: Instant, heard: Instant, cpu_ms: u64) {
        if heard > self.since {
            (self.since, self.is_stalled) = (heard, false);
        }
        let measured = now.duration_since(self.mark.0);
        if measured < self.window() {
            return;
        }
        let used = u128::from(cpu_ms.saturating_sub(self.mark.1));
        if used * 1000 > measured.as_millis() * IDLE {
            (self.since, self.is_stalled) = (now, false);
        } else if now.duration_since(self.since) >= self.after {
            self.is_stalled = true;
        }
        self.mark = (now, cpu_ms);
    }

    fn window(&self) -> Duration {
        (self.after / 10).clamp(SHORTEST_WINDOW, LONGEST_WINDOW)
    }

    /// When to look next.
    fn step(&self) -> Duration {
        if self.is_stalled { LOOK_AGAIN } else { self.window() }
    }
}

fn stalled(after: Duration) -> String {
    let after = after.as_secs();
    format!("{STALLED} a turn runs, and for {after} s it said nothing and used next to no CPU")
}

fn cut(reason: &str) -> String {
    let end = reason.floor_char_boundary(LONGEST_REASON);
    let more = if end < reason.len() { "…" } else { "" };
    format!("{}{more}", &reason[..end])
}
