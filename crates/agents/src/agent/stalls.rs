//! Detects an agent that is alive and in a turn but makes no progress. Output and CPU time decide,
//! since a clock alone does not separate a stall from a long build.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use crate::model::STALLED;
use crate::proxy::{LiveCalls, Vitals};

/// Default time without progress after which an agent counts as stalled.
pub const STALL_AFTER: Duration = Duration::from_mins(5);

/// CPU use that is no progress, in thousandths of one core: runtimes use as much while they wait.
const IDLE: u128 = 20;

/// Bounds of the window in which CPU time is measured: long enough for a measurement of the process
/// family, and for a runtime's housekeeping not to count.
const SHORTEST_WINDOW: Duration = Duration::from_secs(2);
const LONGEST_WINDOW: Duration = Duration::from_secs(30);

/// Interval at which a stalled agent is checked for progress.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Bytes of a failed turn's reason that are shown.
const LONGEST_REASON: usize = 300;

/// Publishes the current problem of a running agent: a stall, or the reason why its last turn
/// failed. `after` is the allowed silence, zero for no limit; `cpu_ms` returns the CPU time of its
/// processes. Ends when all receivers are gone.
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
        sender.send_if_modified(|shown| std::mem::replace(shown, wrong.clone()) != wrong);
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

/// The silence of an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Silence {
    /// No progress for a time.
    Lasted {
        /// There was none since its prompt.
        since_prompt: bool,
        /// The trouble that it reported and tries to get over.
        trouble: Option<Arc<str>>,
        /// How long it showed none.
        time: Duration,
    },
    /// Why its provider does not serve it, as the team's endpoint saw: it is not waited for.
    Refused(Arc<str>),
}

/// Returns once an agent has shown no progress for so long in a turn, while it waited for nobody and no tool
/// call ran; at once where its provider does not serve it. CPU time is none: who asks its model's service again and
/// again uses some.
pub(super) async fn silence(vitals: &Vitals, calls: &LiveCalls, after: Duration) -> Silence {
    let mut state = vitals.watch();
    let mut began = None;
    let mut since = Instant::now();
    loop {
        let (now, state_now) = (Instant::now(), state.borrow_and_update().clone());
        if state_now.turns == 0 {
            began = None;
        } else if began.is_none() {
            (began, since) = (Some(now), now);
        }
        since = since.max(vitals.last_activity());
        // What ends a call or a wait is progress, too.
        let is_busy = !state_now.is_at_work() || calls.has_running();
        if is_busy {
            since = now;
        }
        let due = since + after;
        if let Some(why) = state_now.set_back.filter(|_| !is_busy) {
            return Silence::Refused(why);
        }
        if now >= due {
            let since_prompt = began.is_some_and(|began| vitals.last_activity() <= began);
            return Silence::Lasted { since_prompt, trouble: state_now.trouble, time: after };
        }
        // The wait may have ended with nothing said.
        let was_waiting = state_now.waits > 0;
        tokio::select! {
            // The vitals are there as long as the receiver.
            _ = state.changed() => if was_waiting { since = Instant::now() },
            () = sleep_until(due) => {}
        }
    }
}

/// Waits shorter than this are not published: an immediate denial takes less.
const AT_ONCE: Duration = Duration::from_millis(200);

/// Publishes the decision that an agent waits for. Ends when all receivers are gone.
pub(super) async fn publish_held(vitals: Arc<Vitals>, sender: watch::Sender<Option<String>>) {
    let mut state = vitals.watch();
    loop {
        let held = state.borrow_and_update().held.first().cloned();
        let wrong = held.map(|access| {
            format!("waits for the decision of a blocked access: {access} (see `eisen-core inbox`)")
        });
        let is_news = *sender.borrow() != wrong;
        tokio::select! {
            () = sender.closed() => return,
            changed = state.changed() => if changed.is_err() { return },
            () = sleep(AT_ONCE), if is_news => {
                sender.send_replace(wrong);
            }
        }
    }
}

/// The progress of an agent in its turn.
struct Pace {
    after: Duration,
    /// Time of the last progress.
    since: Instant,
    /// Start of the CPU measurement, and the CPU time used by then.
    mark: (Instant, u64),
    is_stalled: bool,
}

impl Pace {
    fn new(after: Duration, now: Instant, cpu_ms: u64) -> Self {
        Self { after, since: now, mark: (now, cpu_ms), is_stalled: false }
    }

    fn look(&mut self, now: Instant, active: Instant, cpu_ms: u64) {
        if active > self.since {
            (self.since, self.is_stalled) = (active, false);
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

    /// Returns the time until the next check.
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
