//! `--team`: selects the running team of a command, and connects to it; or the run of an id.

use std::path::Path;

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::json;

use super::Global;
use crate::app::{self, Failure};
use crate::runs::{FindError, RunFolder, find_run};
use crate::serve::client::{ClientError, Connection, Environment, Target};

/// Selects one of the running teams.
#[derive(Args, Clone, Debug)]
pub(super) struct Which {
    /// The team, if several run [default: `EISEN_TEAM`, or the only running team]
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) team: Option<String>,
}

impl Which {
    pub(super) fn find(&self, global: &Global) -> Result<Target, Failure> {
        let eisen_dir = app::eisen_dir().map_err(Failure::Usage)?;
        let environment = Environment::of_process();
        Target::find(&environment, &eisen_dir, self.team.as_deref(), global.port).map_err(failed)
    }

    pub(super) async fn connect(&self, global: &Global) -> Result<Connection, Failure> {
        Connection::open(&self.find(global)?).await.map_err(failed)
    }

    /// The agent that a name means: one of the team, else that of a run, by the beginning of the run's
    /// id. With `--team` or `--port` it is one of that team.
    pub(super) async fn agent(&self, global: &Global, name: &str) -> Result<AgentAt, Failure> {
        let of_team = |target| AgentAt { target, agent: name.to_owned() };
        if self.team.is_some() || global.port.is_some() {
            return self.find(global).map(of_team);
        }
        let eisen_dir = app::eisen_dir().map_err(Failure::Usage)?;
        let meant = run_named(&eisen_dir, name);
        if let Ok(None) = meant {
            return self.find(global).map(of_team);
        }
        if let Ok(target) = self.find(global)
            && agents(&target).await.is_ok_and(|agents| agents.iter().any(|it| it == name))
        {
            return Ok(of_team(target));
        }
        match meant? {
            Some(run) => agent_of_run(&eisen_dir, &run).await,
            None => self.find(global).map(of_team),
        }
    }
}

/// An agent of a running team.
pub(super) struct AgentAt {
    pub(super) target: Target,
    pub(super) agent: String,
}

/// The run that a name may mean; an error names those that the beginning of an id may mean.
pub(super) fn run_named(eisen_dir: &Path, name: &str) -> Result<Option<RunFolder>, Failure> {
    if name.is_empty() {
        return Ok(None);
    }
    match find_run(eisen_dir, name) {
        Ok(run) => Ok(Some(run)),
        Err(error @ FindError::Ambiguous { .. }) => Err(Failure::Usage(error.into())),
        // Then it names an agent.
        Err(FindError::Unknown(_) | FindError::Io(_)) => Ok(None),
    }
}

/// The agent of a run that has not ended.
async fn agent_of_run(eisen_dir: &Path, run: &RunFolder) -> Result<AgentAt, Failure> {
    let state = run.state().with_context(|| format!("cannot read the run {}", run.id()));
    let state = state.map_err(Failure::Run)?;
    if state.status.is_final() {
        let status = state.status.as_str();
        let why = anyhow!("the run {} has ended ({status}): its agent is gone", run.id());
        return Err(Failure::Run(why));
    }
    let target = Target::find(&Environment::default(), eisen_dir, Some(&state.team), None);
    let target = target.map_err(failed)?;
    let mut agents = agents(&target).await.map_err(failed)?;
    match (agents.pop(), agents.is_empty()) {
        (Some(agent), true) => Ok(AgentAt { target, agent }),
        _ => Err(Failure::Run(anyhow!(
            "the run {} is part of the team `{}`: name its agent, with --team",
            run.id(),
            state.team
        ))),
    }
}

/// The ids of a team's agents.
async fn agents(target: &Target) -> Result<Vec<String>, ClientError> {
    let mut team = Connection::open(target).await?;
    let agents = team.call("list_agents", &json!({})).await?;
    let ids = agents.as_array().into_iter().flatten().map(|agent| agent["agent_id"].as_str());
    Ok(ids.flatten().map(str::to_owned).collect())
}

pub(super) fn failed(error: ClientError) -> Failure {
    Failure::Run(error.into())
}
