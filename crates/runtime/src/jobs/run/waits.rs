//! The waits of a run before it starts: for its session, a slot of its agent's profile, and memory.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use crate::config::{Config, SharedConfig};
use crate::program::{StopSignals, outlet};
use crate::runs::{RunFolder, RunState, RunStatus, all_runs};
use crate::slots::{
    MemoryHold, MemoryNeed, SlotError, SlotPlace, SlotRequest, Slots, TakenSlot, Wait,
    place_of_session,
};
use crate::turn::{NOT_STARTED, TIMED_OUT, WorkEnd, clipped};

/// Earlier runs that are looked at, and of those the ones whose peaks count.
const MOST_LOOKED_AT: usize = 50;
const MOST_PEAKS: usize = 5;

/// The places and the memory that a run holds until its agent has ended.
pub(super) struct Admitted {
    _session: Option<TakenSlot>,
    _slot: Option<TakenSlot>,
    _memory: MemoryHold,
}

/// The configurations by which a run waits.
pub(super) struct WaitsBy<'a> {
    pub(super) config: &'a Config,
    /// As it is now, for the bases of profiles.
    pub(super) bases: &'a SharedConfig,
    pub(super) eisen_dir: &'a Path,
}

/// Waits until the agent may start; then the run is running. Says on standard error, and in the run's
/// state, what it waits for. An error says how the run ended instead.
pub(super) async fn start(
    folder: &RunFolder,
    state: &mut RunState,
    by: &WaitsBy<'_>,
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
    state.status = RunStatus::Waiting;
    // It is large.
    let waiting = Box::pin(in_order(folder, state, by, wait));
    let admitted = tokio::select! {
        signal = stop.next() => return Err(WorkEnd::stopped(signal)),
        admitted = waiting => admitted.map_err(|error| refused(&error, began.elapsed()))?,
    };
    state.status = RunStatus::Running;
    state.waits_for = None;
    let kept = folder.keep(state);
    let failed = |error| WorkEnd::not_started(format!("its state can't be kept: {error}"));
    kept.map_err(failed).map(|()| admitted)
}

/// How a run ends that may not start.
fn refused(error: &SlotError, waited: Duration) -> WorkEnd {
    let (status, code, reason) = match error {
        SlotError::TimedOut(why) => {
            let waited = waited.as_secs_f64();
            (
                RunStatus::TimedOut,
                TIMED_OUT,
                format!("its time was up after {waited:.1} s: it {why}"),
            )
        }
        SlotError::Busy(why) => {
            (RunStatus::Failed, NOT_STARTED, format!("it may not wait: it {why}"))
        }
        SlotError::Io { .. } => (RunStatus::Failed, NOT_STARTED, error.to_string()),
    };
    WorkEnd { reason: Some(reason), ..WorkEnd::new(status, code) }
}

/// Takes one after the other. A session comes first: few want it, so that nobody waits with a slot in its
/// hands that others could use.
async fn in_order(
    folder: &RunFolder,
    state: &mut RunState,
    by: &WaitsBy<'_>,
    wait: Wait,
) -> Result<Admitted, SlotError> {
    let WaitsBy { config, bases, eisen_dir } = *by;
    let (slots, shared, agent) = (Slots::new(eisen_dir), &config.shared, &config.agents[0]);
    let base = state.profile.as_deref().map_or(&*agent.profile.base, |it| bases.base_of(it));
    let slot = shared.slots.get(base).map(|limit| (SlotPlace::Base(base.to_owned()), *limit));
    let need =
        MemoryNeed { expected: expected(eisen_dir, state), min_free_mb: shared.runs.min_free_mb };
    let request = SlotRequest {
        tool_name: "eisen-core run".to_owned(),
        reason: state.workspace.display().to_string(),
        run: Some(state.id.clone()),
        team: Some(state.team.clone()),
        agent: Some(agent.id.to_string()),
    };
    let session_place = session(state);
    let mut is_told = false;
    let mut tell = |why: &str| {
        let why = clipped(why.replace(char::is_control, " "));
        if !std::mem::replace(&mut is_told, true) {
            let line = format!("run {}: {why}\n", state.id);
            let _ = outlet::stderr().clone().write_all(line.as_bytes());
        }
        state.waits_for = Some(why);
        if let Err(error) = folder.keep(state) {
            tracing::warn!(%error, "the state of the run can't be kept");
        }
    };
    let mut one_of = async |place: &SlotPlace, limit: u32| {
        let told = |standing: &crate::slots::SlotWaiter| tell(&standing.to_string());
        slots.acquire(place, limit, request.clone(), wait, told).await
    };
    let session = match session_place {
        Some(place) => Some(one_of(&place, 1).await?),
        None => None,
    };
    let slot = match slot {
        Some((place, limit)) => Some(one_of(&place, limit).await?),
        None => None,
    };
    let memory = slots.reserve(need, request.clone(), wait, tell).await?;
    Ok(Admitted { _session: session, _slot: slot, _memory: memory })
}

/// The session that a run goes on with. A fork leaves it as it is.
fn session(state: &RunState) -> Option<SlotPlace> {
    let earlier = state.begins_with.as_ref().filter(|earlier| !earlier.is_fork)?;
    Some(place_of_session(state.profile.as_deref(), &state.command, &earlier.session_id))
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
