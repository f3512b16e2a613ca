//! Runs that agents of a team start. Each is a helper for one turn, ends as a run of its own does, and
//! is kept by the supervisor: no confined agent can write what is kept.

mod earlier;

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::changes::{self, StartedHelper, TeamCommand};
use super::turn::progress::recorded;
use super::turn::request::RunRequest;
use super::turn::schema::AnswerSchema;
use super::turn::{WorkEnd, helper_turn, settle};
use crate::model::{AgentId, TaskState, now_ms};
use crate::process;
use crate::runs::{RunFolder, RunId, RunState, RunStatus, TeamRuns};
use crate::serve::{HelperEnd, NewRun, Refused, RunAsks, StartedRun};
use crate::slots::TakenSlot;
use crate::supervisor::Roster;
use crate::tracker::TrackerHandle;

/// What of a team works on its runs; cheap to clone.
#[derive(Clone)]
pub(super) struct Workplace {
    pub(super) roster: Roster,
    pub(super) tracker: TrackerHandle,
    pub(super) changes: mpsc::Sender<TeamCommand>,
    pub(super) runs: TeamRuns,
}

/// A run that is under way.
struct TurnUnderway {
    id: RunId,
    agent: AgentId,
    folder: RunFolder,
    state: RunState,
    request: RunRequest,
    prompt: String,
    deadline: Option<Instant>,
    /// The right to the session that it goes on with, until its agent has ended.
    session: Option<TakenSlot>,
}

/// Starts a run below an agent of the team.
pub(super) async fn start(team: Workplace, mut new: NewRun) -> Result<StartedRun, Refused> {
    let (id, timeout) = (RunId::generate(), new.timeout);
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let (prompt, mut asks) = (new.task.clone(), std::mem::take(&mut new.asks));
    if let Some(schema) = &asks.schema {
        let checked = AnswerSchema::of_agent(schema);
        checked.map_err(|error| Refused::new(400, format!("{error:#}")))?;
    }
    let earlier = match asks.begins_with.take() {
        Some(wanted) => Some(earlier::find(&team, &mut new, wanted).await?),
        None => None,
    };
    let session = match &earlier {
        Some(earlier) => earlier::hold(&team, id, earlier).await?,
        None => None,
    };
    let begins_with = earlier.as_ref().map(|earlier| earlier.session.clone());
    let tier = (new.tier.clone(), new.no_failover);
    let above = earlier.map(|earlier| Box::new(earlier.run));
    let change = |reply| TeamCommand::StartRun(id, Box::new(new), above, reply);
    let helper: StartedHelper = changes::request(&team.changes, change).await?;
    let (agent, zone) = (helper.agent.clone(), helper.zone.clone());
    let (further, without) = (helper.further.clone(), helper.without.clone());
    let state = RunState { begins_with, ..first_state(&team, id, helper, (tier, timeout)) };
    let kept = keep(team.clone(), id, state, (prompt, asks)).await;
    let (folder, state, request, prompt) = match kept {
        Ok(kept) => kept,
        Err(error) => {
            let why = format!("the run can't be kept: {error:#}");
            end_helper(&team, &agent, &WorkEnd::not_started(why.clone())).await;
            team.runs.forget(id);
            return Err(Refused::new(500, why));
        }
    };
    let run = TurnUnderway {
        id,
        agent: agent.clone(),
        folder,
        state,
        request,
        prompt,
        deadline,
        session,
    };
    tokio::spawn(perform(team, run));
    Ok(StartedRun { id: id.to_string(), agent, zone, further, without })
}

fn first_state(
    team: &Workplace,
    id: RunId,
    helper: StartedHelper,
    ((tier, no_failover), timeout): ((Option<String>, bool), Option<Duration>),
) -> RunState {
    RunState {
        id: id.to_string(),
        status: RunStatus::Running,
        pid: std::process::id(),
        pid_start_time_ticks: process::start_of(std::process::id()),
        team: team.runs.team().to_owned(),
        parent: helper.parent,
        depth: team.runs.depth_of(helper.depth),
        workspace: helper.workspace,
        timeout_s: timeout.map(|timeout| timeout.as_secs()),
        slot_timeout_s: None,
        waits_for: None,
        command: helper.command,
        profile: helper.profile,
        model: helper.model,
        tier,
        no_failover,
        attempts: Vec::new(),
        session_id: None,
        last_action: None,
        begins_with: None,
        started_at_ms: now_ms(),
        ended_at_ms: None,
        exit_code: None,
        reason: None,
        background: Vec::new(),
        peak_memory_bytes: None,
        tokens: None,
        cost: BTreeMap::new(),
    }
}

/// Writes the folder of a run.
async fn keep(
    team: Workplace,
    id: RunId,
    state: RunState,
    (prompt, asks): (String, RunAsks),
) -> anyhow::Result<(RunFolder, RunState, RunRequest, String)> {
    let write = move || {
        let folder = team.runs.folder(id)?;
        let files = || {
            folder.keep_prompt(&prompt)?;
            if !asks.files.is_empty() {
                folder.keep_attachments(&asks.files)?;
            }
            asks.schema.as_ref().map_or(Ok(()), |schema| folder.keep_schema(schema))?;
            let mut request =
                RunRequest::of(&folder, &state, team.runs.eisen_dir(), watch::Sender::default())?;
            // Without failover the agent has no tier.
            request.moves = state.tier.is_some().then(|| team.changes.clone());
            folder.keep(&state)?;
            anyhow::Ok(request)
        };
        match files() {
            Ok(request) => Ok((folder, state, request, prompt)),
            Err(error) => {
                // What stays is no run: it has no state.
                let _ = folder.remove();
                Err(error)
            }
        }
    };
    tokio::task::spawn_blocking(write).await?
}

/// Performs a run to its end. Its final state is kept once its agent is gone, with all that it started.
async fn perform(team: Workplace, run: TurnUnderway) {
    let TurnUnderway { id, agent, folder, mut state, request, prompt, deadline, session } = run;
    let (asked, place) = ((&request, &*prompt), (&team.roster, &team.tracker));
    let turn = helper_turn(place, &agent, asked, deadline);
    let mut end = recorded(&folder, &mut state, request.progress.subscribe(), turn).await;
    if let Some(reason) = team.runs.ending(id) {
        end = end.ended_by(reason);
    }
    if let Some(last) = team.roster.get(&agent).and_then(|agent| agent.status().candidate) {
        (state.profile, state.model) = (Some(last.profile), last.model);
    }
    end_helper(&team, &agent, &end).await;
    drop(session);
    let kept = tokio::task::spawn_blocking(move || {
        let answer_kept = folder.keep_answer(&end.answer);
        settle(&folder, &mut state, end, answer_kept)
    });
    let stop_reason = match kept.await {
        Ok(Ok((_, stop_reason))) => stop_reason,
        Ok(Err(failure)) => {
            tracing::error!(run = %id, "{:#}", failure.error());
            None
        }
        Err(error) => {
            tracing::error!(run = %id, %error, "the end of a run is not kept");
            None
        }
    };
    team.runs.ended(id, stop_reason);
}

async fn end_helper(team: &Workplace, agent: &AgentId, end: &WorkEnd) {
    let state = match end.status {
        RunStatus::Succeeded => TaskState::Done,
        RunStatus::Killed => TaskState::Cancelled,
        _ => TaskState::Failed,
    };
    let (reason, text) = (end.reason.clone(), end.answer.clone());
    let ended = HelperEnd { agent: agent.clone(), task: None, state, reason, text };
    if let Err(error) = changes::end_helper(&team.roster, &team.changes, ended).await {
        // A team that ends has ended it, too.
        tracing::debug!(error = error.message, "cannot end the helper of a run");
    }
}
