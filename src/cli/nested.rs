//! `run`, and the commands for runs, in an agent of a team: they ask the port of the team, as that agent.

use std::time::{Duration, Instant};

use anyhow::anyhow;
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use tokio::signal::unix::{SignalKind, signal};

use super::exit_codes::{INTERRUPTED, KILLED, NOT_STARTED, TIMED_OUT, exit_code};
use super::output::{note, plain, print};
use crate::jobs::RunEnd;
use crate::program::Failure;
use crate::runs::{RunSpec, RunState};
use crate::serve::client::{ClientError, Connection, Target};
use crate::wire::{
    EndRuns, EndRunsParams, Method, RunList, RunRow, RunStarted, StartRun, WaitForRuns,
    WaitForRunsParams,
};

/// The longest wait that the port takes.
const LONGEST_WAIT: Duration = Duration::from_secs(45);

/// Runs a helper of the calling agent; if `spec` waits, to its end, which is reported.
pub(super) async fn run(
    team: &Target,
    spec: &RunSpec,
    report: impl FnOnce(&RunEnd) -> Result<(), Failure>,
) -> Result<u8, Failure> {
    let begun = Instant::now();
    spec.check_for_team().map_err(|why| Failure::Usage(anyhow!("{}", plain(&why))))?;
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let starting = ask::<StartRun>(team, spec);
    // The team ends the run of a command that leaves.
    let started = tokio::select! {
        started = starting => started,
        _ = interrupt.recv() => return Ok(INTERRUPTED),
        _ = terminate.recv() => return Ok(KILLED),
    };
    let RunStarted { id, agent_id: _, zone, reaches_out, without, run } = match started {
        Ok(started) => started,
        Err(ClientError::Refused { code: 400..=404, message }) => {
            return Err(Failure::Usage(anyhow!("{}", plain(&message))));
        }
        // It may have begun, and ends with its team.
        Err(error @ (ClientError::Broken(_) | ClientError::Closed | ClientError::Answer(_))) => {
            return Err(super::team::failed(error));
        }
        Err(error) => {
            let told = match error {
                ClientError::Refused { message, .. } => message,
                error => error.to_string(),
            };
            note(plain(&told));
            return Ok(NOT_STARTED);
        }
    };
    if !reaches_out.is_empty() || (spec.zone.is_empty() && zone != ["**"]) {
        let zone = plain(&zone.join(", "));
        note(format_args!("the zone is cut to that of the agent that starts it: {zone}"));
    }
    if !without.is_empty() {
        let without = plain(&without.join(", "));
        note(format_args!(
            "it goes without what the agent that starts it does not have: {without}"
        ));
    }
    let Some(run) = run else {
        print(id)?;
        return Ok(0);
    };
    let state = kept(&run)?;
    let answer = run.text.unwrap_or_default();
    let end = RunEnd { state, answer, stop_reason: run.stop_reason, took: begun.elapsed() };
    report(&end)?;
    Ok(exit_code(&end.state))
}

pub(super) async fn wait(
    team: &Target,
    ids: &[String],
    any: bool,
    deadline: Option<Instant>,
) -> Result<u8, Failure> {
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let timeout = left.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
        let found = look(team, ids, any, timeout).await?;
        if !found.timed_out {
            let states = found.runs.iter().map(kept).collect::<Result<Vec<_>, _>>()?;
            if !any {
                return Ok(states.iter().map(exit_code).find(|code| *code != 0).unwrap_or(0));
            }
            if let Some(first) = states.iter().find(|state| state.status.is_final()) {
                print(&first.id)?;
                return Ok(exit_code(first));
            }
        }
        if left.is_some_and(|left| left <= timeout) {
            return Ok(TIMED_OUT);
        }
    }
}

/// One run as it stands, and its answer.
pub(super) async fn one(team: &Target, id: &str) -> Result<(RunState, Option<String>), Failure> {
    let ids = [id.to_owned()];
    let found = look(team, &ids, false, Duration::ZERO).await?.runs.into_iter().next();
    let run = found.ok_or_else(|| Failure::Usage(anyhow!("there is no run `{id}`")))?;
    Ok((kept(&run)?, run.text))
}

/// The runs below the calling agent, oldest first.
pub(super) async fn list(team: &Target) -> Result<Vec<RunState>, Failure> {
    let found = look(team, &[], false, Duration::ZERO).await?;
    found.runs.iter().map(kept).collect()
}

/// Ends runs with all below them; true once they have ended.
pub(super) async fn end(team: &Target, ids: &[String]) -> Result<bool, Failure> {
    let params = EndRunsParams { ids: ids.iter().cloned().map(Into::into).collect() };
    let ended = ask::<EndRuns>(team, &params).await.map_err(failed)?;
    Ok(!ended.timed_out)
}

async fn look(
    team: &Target,
    ids: &[String],
    any: bool,
    timeout: Duration,
) -> Result<RunList, Failure> {
    let (ids, timeout_s) = (ids.to_vec(), Some(timeout.as_secs_f64()));
    let params =
        WaitForRunsParams { ids: ids.into_iter().map(Into::into).collect(), any, timeout_s };
    ask::<WaitForRuns>(team, &params).await.map_err(failed)
}

async fn ask<M: Method>(
    team: &Target,
    params: &M::Params,
) -> Result<M::Result<'static>, ClientError>
where
    M::Result<'static>: DeserializeOwned,
{
    Connection::open(team).await?.call::<M>(params).await
}

/// A run in the form that is kept, whose fields have the names of a row's.
fn kept(run: &RunRow) -> Result<RunState, Failure> {
    let state = serde_json::to_value(run).and_then(RunState::deserialize);
    state.map_err(|error| failed(ClientError::Answer(error)))
}

fn failed(error: ClientError) -> Failure {
    match error {
        ClientError::Refused { code: 400..=409, message } => {
            Failure::Usage(anyhow!("{}", plain(&message)))
        }
        error => super::team::failed(error),
    }
}

fn listen(kind: SignalKind) -> Result<tokio::signal::unix::Signal, Failure> {
    signal(kind).map_err(|error| Failure::Run(error.into()))
}
