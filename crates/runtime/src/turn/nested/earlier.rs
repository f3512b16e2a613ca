//! The session of an earlier run that a run of an agent begins with. It holds what was read under another zone:
//! an agent has those of ended runs below itself, and no others.

use tokio::time::Instant;

use crate::model::AgentId;
use crate::runs::{
    EarlierSession, FoundRun, RunId, RunSpec, RunState, SessionError, WantedSession, session_among,
};
use crate::serve::{AgentDetails, Refused};
use crate::slots::{SlotError, SlotRequest, Slots, TakenSlot, Wait, place_of_session};
use crate::turn::details;
use crate::turn::nested::Workplace;

/// A run, with the session that it had.
pub(super) struct Earlier {
    pub(super) run: RunState,
    pub(super) session: EarlierSession,
}

/// Finds the session that `by` asks for, and gives `spec` its profile and its model.
pub(super) async fn find(
    team: &Workplace,
    by: &AgentId,
    spec: &mut RunSpec,
    wanted: WantedSession,
) -> Result<Earlier, Refused> {
    let WantedSession { name, is_fork } = wanted;
    let below = team.runs.wait(Some(by.as_str()), &[], false, Instant::now()).await;
    let mut below = below.map_err(Refused::fault)?.runs;
    below.retain(|run| run.state.status.is_final() && run.state.session_id.is_some());
    let nobody = || {
        Refused::new(
            403,
            format!(
                "no run that `{by}` or an agent below it started, and that has ended, has had the session `{name}`: \
                 those of agents above, of others and of runs under way are not for its runs"
            ),
        )
    };
    let Some(workspace) = below.last().map(|run| run.state.workspace.clone()) else {
        return Err(nobody());
    };
    let states = below.iter().map(|run| run.state.clone()).collect();
    let (run, session_id) =
        session_among(states, &name, &workspace).map_err(|error| match error {
            SessionError::Unknown(_) | SessionError::None(_) => nobody(),
            error => Refused::new(409, error.to_string()),
        })?;
    not_of_others(team, &session_id).await?;
    same_agent(spec, &run, &session_id)?;
    let is_it = |found: &&FoundRun| found.state.id == run.id;
    let agent = below.iter().find(is_it).map(|found| found.agent.clone());
    let earlier = Some(run.team.clone());
    let session = EarlierSession { run: run.id.clone(), session_id, is_fork, team: earlier, agent };
    Ok(Earlier { run, session })
}

/// An agent names its sessions itself: one that has the name of another's is refused.
async fn not_of_others(team: &Workplace, session_id: &str) -> Result<(), Refused> {
    let all = details::of_supervised(team.roster.handles(), &team.tracker).await;
    let has_it = |agent: &AgentDetails| {
        agent.sessions.iter().any(|it| it.is_open && it.session.as_str() == session_id)
    };
    match all.iter().find(|agent| has_it(agent)) {
        Some(agent) => Err(Refused::new(
            403,
            format!("the agent `{}` has the session `{session_id}` now", agent.status.agent),
        )),
        None => Ok(()),
    }
}

/// No other agent has the session.
fn same_agent(spec: &mut RunSpec, run: &RunState, session_id: &str) -> Result<(), Refused> {
    let other = spec.profile.as_ref().is_some_and(|it| Some(it) != run.profile.as_ref())
        || (!spec.command.is_empty() && spec.command != run.command);
    if other {
        let own = run.profile.clone().unwrap_or_else(|| run.command.join(" "));
        let why = format!("the session `{session_id}` is of `{own}`: no other agent has it");
        return Err(Refused::wrong(why));
    }
    spec.profile.clone_from(&run.profile);
    spec.model = spec.model.take().or_else(|| run.model.clone());
    Ok(())
}

/// Lock of a session: one of the user's runs continues it at a time. A fork needs none.
pub(super) async fn hold(
    team: &Workplace,
    id: RunId,
    earlier: &Earlier,
) -> Result<Option<TakenSlot>, Refused> {
    let Earlier { run, session } = earlier;
    if session.is_fork {
        return Ok(None);
    }
    let place = place_of_session(run.profile.as_deref(), &run.command, &session.session_id);
    let request = SlotRequest {
        tool_name: "eisen-core run".to_owned(),
        reason: run.workspace.display().to_string(),
        run: Some(id.to_string()),
        team: Some(run.team.clone()),
        agent: None,
    };
    let slots = Slots::new(team.runs.eisen_dir());
    match slots.acquire(&place, 1, request, Wait::No, |_| {}).await {
        Ok(slot) => Ok(Some(slot)),
        Err(SlotError::Busy(why)) => Err(Refused::new(409, format!("the run {why}"))),
        Err(error) => Err(Refused::fault(error)),
    }
}
