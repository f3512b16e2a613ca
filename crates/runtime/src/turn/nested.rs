//! Runs that agents of a team start. Each is a helper for one turn, ends as a run of its own does, and
//! is kept by the supervisor: no confined agent can write what is kept.

mod earlier;

use std::time::Duration;

use eisen_base::task;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::model::{AgentId, TaskState};
use crate::runs::{RunFolder, RunId, RunSpec, RunState, RunStatus, TeamRuns};
use crate::serve::{HelperEnd, Refused, StartedRun};
use crate::slots::TakenSlot;
use crate::supervisor::Roster;
use crate::tracker::TrackerHandle;
use crate::turn::command;
use crate::turn::command::{StartedHelper, TeamCommand};
use crate::turn::progress::recorded;
use crate::turn::request::RunRequest;
use crate::turn::schema::AnswerSchema;
use crate::turn::{WorkEnd, helper_turn, settle};

/// The parts of a team that work on its runs; cheap to clone.
#[derive(Clone)]
pub(crate) struct Workplace {
    pub(crate) roster: Roster,
    pub(crate) tracker: TrackerHandle,
    pub(crate) changes: mpsc::Sender<TeamCommand>,
    pub(crate) runs: TeamRuns,
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
pub(crate) async fn start(
    team: Workplace,
    parent: AgentId,
    mut spec: RunSpec,
) -> Result<StartedRun, Refused> {
    let (id, timeout) = (RunId::generate(), spec.timeout_s.map(Duration::from_secs));
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    if let Some(schema) = &spec.schema {
        let checked = AnswerSchema::of_agent(schema);
        checked.map_err(|error| Refused::wrong(format!("{error:#}")))?;
    }
    let earlier = match spec.earlier() {
        Some(wanted) => Some(earlier::find(&team, &parent, &mut spec, wanted).await?),
        None => None,
    };
    let session = match &earlier {
        Some(earlier) => earlier::hold(&team, id, earlier).await?,
        None => None,
    };
    let begins_with = earlier.as_ref().map(|earlier| earlier.session.clone());
    let above = earlier.map(|earlier| Box::new(earlier.run));
    // They are large, and nothing of the helper's start.
    let files = std::mem::take(&mut spec.files);
    let asked = Box::new(spec.clone());
    spec.files = files;
    let change = |reply| TeamCommand::StartRun(id, parent, asked, above, reply);
    let helper: StartedHelper = command::request(&team.changes, change).await?;
    let (agent, zone) = (helper.agent, helper.zone);
    let (further, without) = (helper.further, helper.without);
    let state = RunState {
        status: RunStatus::Running,
        team: team.runs.team().to_owned(),
        parent: helper.parent,
        depth: team.runs.depth_of(helper.depth),
        command: helper.command,
        profile: helper.profile,
        model: helper.model,
        begins_with,
        ..RunState::new(&spec, id.to_string(), helper.workspace)
    };
    let kept = keep(team.clone(), id, state, spec).await;
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
    task::spawn(perform(team, run));
    Ok(StartedRun { id: id.to_string(), agent, zone, further, without })
}

/// Writes the folder of a run; also returns its prompt.
async fn keep(
    team: Workplace,
    id: RunId,
    state: RunState,
    spec: RunSpec,
) -> anyhow::Result<(RunFolder, RunState, RunRequest, String)> {
    let write = move || {
        let folder = team.runs.folder(id)?;
        let files = || {
            folder.keep_asked(&spec)?;
            let mut request =
                RunRequest::of(&folder, &state, team.runs.eisen_dir(), watch::Sender::default())?;
            request.schema = spec.schema.as_ref().map(AnswerSchema::of_agent).transpose()?;
            // Without failover the agent has no tier.
            request.moves = state.tier.is_some().then(|| team.changes.clone());
            folder.keep(&state)?;
            anyhow::Ok(request)
        };
        match files() {
            Ok(request) => Ok((folder, state, request, spec.task)),
            Err(error) => {
                // What stays is no run: it has no state.
                let _ = folder.remove();
                Err(error)
            }
        }
    };
    task::spawn_blocking(write).await?
}

/// Performs a run to its end. Its final state is kept once its agent is gone, with all that it started.
async fn perform(team: Workplace, run: TurnUnderway) {
    let TurnUnderway { id, agent, folder, mut state, request, prompt, deadline, session } = run;
    let turn = helper_turn(&team.roster, &team.tracker, &agent, &request, &prompt, deadline);
    let mut end = recorded(&folder, &mut state, request.progress.subscribe(), turn).await;
    if let Some(reason) = team.runs.ending(id) {
        end = end.ended_by(reason);
    }
    if let Some(last) = team.roster.get(&agent).and_then(|agent| agent.status().candidate) {
        (state.profile, state.model) = (Some(last.profile), last.model);
    }
    end_helper(&team, &agent, &end).await;
    drop(session);
    let kept = task::spawn_blocking(move || {
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
    if let Err(error) = command::end_helper(&team.roster, &team.changes, ended).await {
        // A team that ends has ended it, too.
        tracing::debug!(error = error.message, "cannot end the helper of a run");
    }
}
