//! The runs of a batch while they run: which have ended, and how they are ended.

use std::io;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::time::{Instant, sleep};

use crate::model::now_ms;
use crate::program::StopSignals;
use crate::runs::{RunFolder, RunState, RunStatus};

/// How often the states of the runs are read.
const INTERVAL: Duration = Duration::from_millis(100);

/// How long a run may take to end after SIGTERM: its agents have their own time to end.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn wait() {
    sleep(INTERVAL).await;
}

/// The final state of a run; None if it has not ended. One that is lost is kept as that while nobody
/// performs it: a process that was started for it, and comes late, then leaves it alone.
pub(super) fn look(run: &RunFolder) -> io::Result<Option<RunState>> {
    let state = run.state()?;
    if state.status != RunStatus::Lost {
        return Ok(state.status.is_final().then_some(state));
    }
    let Some(_held) = run.try_hold()? else { return Ok(None) };
    // It may have been taken up, or have ended, before it was held.
    let state = run.state()?;
    if state.status == RunStatus::Lost {
        let state = run.lost(now_ms());
        run.keep(&state)?;
        return Ok(Some(state));
    }
    Ok(state.status.is_final().then_some(state))
}

/// Ends runs; a further signal ends them at once.
pub(super) async fn end_all(runs: &[RunFolder], signals: &mut StopSignals) {
    let signal = |signal| {
        for state in runs.iter().filter_map(|run| run.state().ok()) {
            state.signal(signal);
        }
    };
    signal(Signal::SIGTERM);
    let until = Instant::now() + PATIENCE;
    while runs.iter().any(|run| look(run).is_ok_and(|state| state.is_none())) {
        let is_pressed = tokio::select! {
            _ = signals.next() => true,
            () = wait() => false,
        };
        if is_pressed || Instant::now() > until {
            // Their agents end with them.
            signal(Signal::SIGKILL);
        }
    }
}
