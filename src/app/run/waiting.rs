//! What a run waits for before it starts: its session, a slot of its profile, and memory.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use super::turn::{NOT_STARTED, TIMED_OUT, WorkEnd};
use crate::app::admitting::StartLimits;
use crate::app::{StopSignals, stderr};
use crate::config::Config;
use crate::runs::{RunFolder, RunState, RunStatus, all_runs};
use crate::slots::{MemoryNeed, Place, Request, Reservation, Slot, SlotError, Slots, Wait};

/// Earlier runs that are looked at, and of those the ones whose peaks count.
const MOST_LOOKED_AT: usize = 50;
const MOST_PEAKS: usize = 5;

/// What a run holds until it has ended.
pub(super) struct Admitted {
    _session: Option<Slot>,
    _slot: Option<Slot>,
    _memory: Reservation,
}

/// Waits until the run may start, by its limits; then it runs. Says on standard error, and in its state,
/// what it waits for.
pub(super) async fn start(
    folder: &RunFolder,
    state: &mut RunState,
    of: (&Config, &Path),
    deadline: Option<Instant>,
    stop: &mut StopSignals,
) -> Result<Admitted, WorkEnd> {
    let began = Instant::now();
    let patience = state.slot_timeout_s.map(Duration::from_secs);
    let until = patience.and_then(|patience| began.checked_add(patience));
    let wait = match deadline.into_iter().chain(until).min() {
        _ if patience == Some(Duration::ZERO) => Wait::No,
        Some(until) => Wait::Until(until),
        None => Wait::Forever,
    };
    let admitted = {
        let waiting = admitted(folder, state, of, wait);
        tokio::select! {
            signal = stop.next() => return Err(WorkEnd::stopped(signal)),
            admitted = waiting => admitted,
        }
    };
    match admitted {
        Ok(admitted) => {
            state.status = RunStatus::Running;
            state.waits_for = None;
            let kept = folder.keep(state);
            let failed = |error| WorkEnd::not_started(format!("its state can't be kept: {error}"));
            kept.map_err(failed).map(|()| admitted)
        }
        Err(error) => Err(refused(&error, began.elapsed())),
    }
}

/// How a run ends that did not start.
fn refused(error: &SlotError, waited: Duration) -> WorkEnd {
    let (status, code) = match error {
        SlotError::TimedOut(_) => (RunStatus::TimedOut, TIMED_OUT),
        SlotError::Busy(_) | SlotError::Io { .. } => (RunStatus::Failed, NOT_STARTED),
    };
    let reason = match error {
        SlotError::TimedOut(_) => format!("it waited {:.1} s: {error}", waited.as_secs_f64()),
        SlotError::Busy(why) => format!("{why} (--no-wait)"),
        SlotError::Io { .. } => error.to_string(),
    };
    WorkEnd { reason: Some(reason), ..WorkEnd::new(status, code) }
}

async fn admitted(
    folder: &RunFolder,
    state: &mut RunState,
    (config, eisen_dir): (&Config, &Path),
    wait: Wait,
) -> Result<Admitted, SlotError> {
    let (slots, limits) = (Slots::new(eisen_dir), StartLimits::of(config));
    let agent = &config.agents[0];
    let request = Request {
        tool_name: "eisen-core run".to_owned(),
        reason: state.workspace.display().to_string(),
        run: Some(state.id.clone()),
        team: Some(state.team.clone()),
        agent: Some(agent.id.to_string()),
    };
    let need = MemoryNeed { expected: expected(eisen_dir, state), min_free_mb: limits.min_free_mb };
    let session = session(state);
    let mut is_told = false;
    let mut tell = |why: &str| {
        let why = why.replace(char::is_control, " ");
        if !std::mem::replace(&mut is_told, true) {
            let line = format!("run {}: {why}\n", state.id);
            let _ = stderr().clone().write_all(line.as_bytes());
        }
        state.waits_for = Some(why);
        if let Err(error) = folder.keep(state) {
            tracing::warn!(%error, "the state of the run can't be kept");
        }
    };
    // What few want is taken first: so nobody waits for a session with a slot in its hand.
    let session = match session {
        Some(place) => {
            let told = |standing: &_| tell(&format!("{standing}"));
            Some(slots.acquire(&place, 1, request.clone(), wait, told).await?)
        }
        None => None,
    };
    let slot = match limits.of_agent(agent) {
        Some((base, limit)) => {
            let (place, told) = (Place::Base(base.to_owned()), |it: &_| tell(&format!("{it}")));
            Some(slots.acquire(&place, limit, request.clone(), wait, told).await?)
        }
        None => None,
    };
    let memory = slots.reserve(need, request, wait, tell).await?;
    Ok(Admitted { _session: session, _slot: slot, _memory: memory })
}

/// The session that a run goes on with. A fork leaves it as it is.
fn session(state: &RunState) -> Option<Place> {
    let earlier = state.begins_with.as_ref().filter(|earlier| !earlier.is_fork)?;
    let program = state.profile.as_deref().or(state.command.first().map(String::as_str));
    Some(Place::Session(format!("{} {}", program.unwrap_or_default(), earlier.session_id)))
}

/// The memory that a run may take: the most that the last runs like it have taken; 0 if there are none.
fn expected(eisen_dir: &Path, state: &RunState) -> u64 {
    let runs = all_runs(eisen_dir).unwrap_or_default();
    let earlier = runs.iter().rev().take(MOST_LOOKED_AT).filter_map(|run| run.state().ok());
    let like_it = earlier.filter(|run| match &state.profile {
        Some(profile) => run.profile.as_ref() == Some(profile),
        None => run.profile.is_none() && run.command == state.command,
    });
    let peaks = like_it.filter_map(|run| run.peak_memory_bytes);
    peaks.take(MOST_PEAKS).max().unwrap_or(0)
}
