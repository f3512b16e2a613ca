//! Owns the methods of runs: an agent starts runs below it, waits for them and ends them.

use std::sync::Arc;
use std::time::Duration;

use eisen_base::task;
use tokio::time::Instant;

use super::{MethodCall, Reply, questions, reply, tasks};
use crate::model::{AgentId, Order};
use crate::runs::{FindError, RunSpec, TeamRuns};
use crate::serve::shared::Shared;
use crate::serve::{Refused, StartedRun, Team, rights};
use crate::tasks::{LONGEST_WAIT, WaitKind};
use crate::wire::{
    EndRuns, EndRunsParams, RunList, RunRow, RunStarted, StartRun, WaitForRuns, WaitForRunsParams,
};

/// Runs that one request names.
const MOST_IDS: usize = 1000;

/// How long runs may take to end.
const END_PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn start_run(
    call: MethodCall<'_>,
    spec: RunSpec,
) -> Result<Reply<StartRun>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    // The connection says who asks: nothing in the params could.
    let parent = questions::agent(caller)?.clone();
    let runs = runs(shared)?.clone();
    spec.check_for_team().map_err(Refused::wrong)?;
    let (wait, above) = (spec.wait, parent.clone());
    let team = Arc::clone(&shared.team);
    let (own_team, own_runs) = (Arc::clone(&team), runs.clone());
    // What was started is ended if nobody takes it: it drops with this task's result.
    let starting = task::spawn(async move {
        let started = own_team.start_run(above, spec).await?;
        let agent = wait.then(|| started.agent.clone());
        Ok::<_, Refused>((started, EndsWithCaller { agent, team: own_team, runs: own_runs }))
    });
    let (started, mut guard) = starting.await.map_err(Refused::fault)??;
    let StartedRun { id, agent, zone, further, without } = started;
    let run = if wait {
        // The caller's turn waits for it: whoever waits for the caller is in the circle.
        let _waits = shared.waits.begin(&parent, std::slice::from_ref(&agent), WaitKind::Task)?;
        let ids = [id.clone()];
        let mut found = loop {
            let soon = Instant::now() + LONGEST_WAIT;
            let found = runs.wait(Some(parent.as_str()), &ids, false, soon).await?;
            if !found.timed_out {
                break found.runs;
            }
        };
        guard.agent = None;
        found.pop().map(RunRow::from)
    } else {
        None
    };
    let agent_id = agent.to_string().into();
    reply(&RunStarted { id, agent_id, zone, reaches_out: further, without, run })
}

/// Ends a run whose caller leaves before it has ended.
struct EndsWithCaller {
    /// The helper; None: it has ended, or goes on alone.
    agent: Option<AgentId>,
    team: Arc<dyn Team>,
    runs: TeamRuns,
}

impl Drop for EndsWithCaller {
    fn drop(&mut self) {
        let Some(agent) = self.agent.take() else { return };
        self.runs.ends(agent.as_str(), "the command that started it ended before it");
        let team = Arc::clone(&self.team);
        task::spawn(async move { stop(&*team, agent).await });
    }
}

async fn stop(team: &dyn Team, agent: AgentId) {
    if let Err(error) = team.order(agent, Order::Stop).await {
        tracing::debug!(error = error.message, "the helper of a run is gone already");
    }
}

pub(super) async fn wait_for_runs(
    call: MethodCall<'_>,
    params: WaitForRunsParams,
) -> Result<Reply<WaitForRuns>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let runs = runs(shared)?;
    let WaitForRunsParams { ids, any, timeout_s } = params;
    let ids: Vec<String> = ids.into_iter().map(Into::into).collect();
    check(&ids)?;
    let deadline = Instant::now() + tasks::wait_of(timeout_s)?;
    let by = rights::own_only(caller);
    let workers = runs.workers(by.map(AgentId::as_str), &ids)?;
    let workers: Vec<_> = workers.into_iter().map(AgentId::new).collect();
    let _waits = match by.filter(|_| timeout_s != Some(0.0)) {
        Some(by) => Some(shared.waits.begin(by, &workers, WaitKind::Task)?),
        None => None,
    };
    let found = runs.wait(by.map(AgentId::as_str), &ids, any, deadline).await?;
    reply(&RunList::from(found))
}

pub(super) async fn end_runs(
    call: MethodCall<'_>,
    params: EndRunsParams,
) -> Result<Reply<EndRuns>, Refused> {
    let MethodCall { shared, caller, .. } = call;
    let runs = runs(shared)?;
    let EndRunsParams { ids } = params;
    let ids: Vec<String> = ids.into_iter().map(Into::into).collect();
    check(&ids)?;
    if ids.is_empty() {
        return Err(Refused::wrong("`ids` must name the runs to end"));
    }
    let by = rights::own_only(caller);
    let by_whom = by.map_or_else(|| "by a person".to_owned(), |by| format!("by `{by}`"));
    let by = by.map(AgentId::as_str);
    for agent in runs.workers(by, &ids)? {
        runs.ends(&agent, &format!("it was ended {by_whom}"));
        let (team, agent) = (Arc::clone(&shared.team), AgentId::new(agent));
        // It is ended though the caller leaves.
        task::spawn(async move { stop(&*team, agent).await });
    }
    let found = runs.wait(by, &ids, false, Instant::now() + END_PATIENCE).await?;
    reply(&RunList::from(found))
}

fn runs(shared: &Shared) -> Result<&TeamRuns, Refused> {
    shared.runs.as_ref().ok_or_else(|| shared.team.refusal())
}

fn check(ids: &[String]) -> Result<(), Refused> {
    if ids.len() > MOST_IDS {
        return Err(Refused::wrong(format!("`ids` may have {MOST_IDS} entries")));
    }
    if ids.iter().any(|id| id.trim().is_empty()) {
        return Err(Refused::wrong("`ids` must not be empty"));
    }
    Ok(())
}

impl From<FindError> for Refused {
    fn from(error: FindError) -> Self {
        let code = match error {
            FindError::Unknown(_) => 404,
            FindError::Ambiguous { .. } => 409,
            FindError::Io(_) => 500,
        };
        Self::new(code, error.to_string())
    }
}
