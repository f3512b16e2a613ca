//! `--team`: selects the running team of a command, and connects to it; or the run of an id.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Global;
use super::output::{note, plain};
use crate::home;
use crate::model::{AgentState, is_name};
use crate::program::Failure;
use crate::runs::{FindError, RunFolder, find_run};
use crate::serve::client::{ClientError, Connection, Environment, Message, MethodAnswer, Target};
use crate::wire::{Agent, AgentDetails, Empty, ListAgents, Method};

/// How often the team of a run is looked for that begins.
const LOOK_AGAIN: Duration = Duration::from_millis(40);

/// The variables by which a command finds its team, and the teams of the folder where it is called.
pub(super) fn environment(global: &Global, eisen_dir: &Path) -> Environment {
    let environment = Environment::of_process();
    // An agent has its team from its variables, and may not look into `$EISEN_DIR`.
    if environment.token.is_some() || environment.tool_token.is_some() {
        return environment;
    }
    let folder = global.cwd.clone().unwrap_or_default();
    Environment { here: home::teams_of(eisen_dir, &folder), ..environment }
}

/// Selects one of the running teams.
#[derive(Args, Clone, Debug)]
pub(super) struct Which {
    /// The team [default: `EISEN_TEAM`, the team of this folder, or the only running one]
    #[arg(long, global = true, value_name = "NAME")]
    pub(super) team: Option<String>,
}

impl Which {
    pub(super) fn find(&self, global: &Global) -> Result<Target, Failure> {
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let environment = environment(global, &eisen_dir);
        Target::find(&environment, &eisen_dir, self.team.as_deref(), global.port).map_err(failed)
    }

    /// A program, with the options by which a further command means the same team.
    pub(super) fn program(&self, program: &str, global: &Global) -> String {
        let team = self.team.as_deref().filter(|team| is_name(team));
        let team = team.map(|team| format!(" --team {team}"));
        let port = global.port.filter(|_| team.is_none()).map(|port| format!(" --port {port}"));
        format!("{program}{}", team.or(port).unwrap_or_default())
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
        let eisen_dir = home::eisen_dir().map_err(Failure::Usage)?;
        let meant = run_named(&eisen_dir, name);
        if let Ok(None) = meant {
            return self.find(global).map(of_team);
        }
        if let Ok(target) = self.find(global)
            && agents(&target).await.is_ok_and(|agents| agents.iter().any(|it| it.id == name))
        {
            return Ok(of_team(target));
        }
        match meant? {
            Some(run) => agent_of_run(&eisen_dir, &run).await,
            None => self.find(global).map(of_team),
        }
    }
}

/// Selects one team of a hub, for what is about a whole team.
#[derive(Args, Clone, Debug)]
pub(super) struct AtHost {
    /// At a hub: the team of this host
    #[arg(long, global = true, value_name = "HOST")]
    host: Option<String>,
}

impl AtHost {
    /// Calls a method, for that team.
    pub(super) async fn ask<M: Method>(
        &self,
        team: &mut Connection,
        params: &M::Params,
    ) -> Result<MethodAnswer<M>, ClientError> {
        team.ask_at(self.host.as_deref(), params).await
    }

    /// An answer of that team, with its host.
    pub(super) fn with_host(&self, mut answer: Value) -> Value {
        if let (Some(host), Value::Object(answer)) = (&self.host, &mut answer) {
            answer.insert("host".to_owned(), host.as_str().into());
        }
        answer
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

/// The agent of a run that has not ended. Waits for one that begins.
async fn agent_of_run(eisen_dir: &Path, run: &RunFolder) -> Result<AgentAt, Failure> {
    loop {
        let state = run.state().with_context(|| format!("cannot read the run {}", run.id()));
        let state = state.map_err(Failure::Run)?;
        if state.status.is_final() {
            let status = state.status.as_str();
            let why = anyhow!("the run {} has ended ({status}): its agent is gone", run.id());
            return Err(Failure::Run(why));
        }
        match Target::find(&Environment::default(), eisen_dir, Some(&state.team), None) {
            Ok(target) => match agents(&target).await.as_deref() {
                Ok([one]) if one.is_ready => {
                    return Ok(AgentAt { target, agent: one.id.clone() });
                }
                Ok([_, _, ..]) => {
                    return Err(Failure::Run(anyhow!(
                        "the run {} is part of the team `{}`: name its agent, with --team",
                        run.id(),
                        state.team
                    )));
                }
                // An agent that ended ends its run.
                Ok(_)
                | Err(ClientError::Closed | ClientError::Broken(_) | ClientError::Connect { .. }) =>
                    {}
                Err(error) => return Err(Failure::Run(anyhow!("{error}"))),
            },
            Err(ClientError::NotRunning { .. }) => {}
            Err(error) => return Err(failed(error)),
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// An agent in the list of its team.
struct ListedAgent {
    id: String,
    is_ready: bool,
    is_starting: bool,
}

/// The agents of a team.
async fn agents(target: &Target) -> Result<Vec<ListedAgent>, ClientError> {
    listed(&mut Connection::open(target).await?).await
}

/// The agents of a team, as it lists them.
pub(super) async fn list_agents(
    team: &mut Connection,
) -> Result<Vec<AgentDetails<'static>>, ClientError> {
    Ok(rows(&team.ask::<ListAgents>(&Empty {}).await?))
}

async fn listed(team: &mut Connection) -> Result<Vec<ListedAgent>, ClientError> {
    let agents = list_agents(team).await?;
    let listed = agents.into_iter().map(|AgentDetails { status, .. }| ListedAgent {
        is_ready: status.state == AgentState::Ready,
        is_starting: is_starting(&status),
        id: status.agent_id.into_owned(),
    });
    Ok(listed.collect())
}

fn is_starting(agent: &Agent<'_>) -> bool {
    let starts = [AgentState::Initializing, AgentState::Connecting, AgentState::Restarting];
    agent.state.known().is_some_and(|state| starts.contains(&state))
}

/// The first agent of the team that is ready or starts, or else the first of all: which one that is does not depend on how
/// fast they start.
pub(super) async fn first_agent(team: &mut Connection) -> Result<String, Failure> {
    let agents = listed(team).await.map_err(failed)?;
    let found = agents.iter().find(|agent| agent.is_ready || agent.is_starting);
    let found = found.or(agents.first()).map(|agent| agent.id.clone());
    found.ok_or_else(|| Failure::Run(anyhow!("the team has no agent")))
}

/// Waits while an agent starts or restarts.
pub(super) async fn await_start(team: &mut Connection, agent: &str) -> Result<(), ClientError> {
    let mut waits = false;
    loop {
        let asked = team.send::<ListAgents>(&Empty {});
        // A change that comes before the answer may have come too late for it.
        let mut has_changed = false;
        let agents = loop {
            match team.next().await? {
                Message::Answer { id, outcome } if id == asked => break outcome?,
                message => has_changed |= is_change(&message),
            }
        };
        let agents = rows(&MethodAnswer::<ListAgents>::new(agents));
        let mut agents = agents.iter().map(|it| &it.status);
        if !agents.find(|it| it.agent_id == agent).is_some_and(is_starting) {
            return Ok(());
        }
        if !std::mem::replace(&mut waits, true) {
            note(format_args!("waiting for `{}` to be ready", plain(agent)));
        }
        while !has_changed {
            has_changed = is_change(&team.next().await?);
        }
    }
}

fn is_change(message: &Message) -> bool {
    matches!(message, Message::Changed | Message::Turn { .. } | Message::Lagged)
}

/// Reads the rows of a list. Those that cannot be read are told of on standard error.
pub(super) fn rows<M, T: DeserializeOwned>(list: &MethodAnswer<M>) -> Vec<T>
where
    M: Method<Result<'static> = Vec<T>>,
{
    rows_of(&list.json)
}

/// Reads the rows of a part of an answer likewise.
pub(super) fn rows_of<T: DeserializeOwned>(list: &Value) -> Vec<T> {
    let rows = list.as_array().into_iter().flatten();
    rows.filter_map(|row| readable(row, T::deserialize(row))).collect()
}

/// The row that was read; None, and a line on standard error, if another version wrote it so that it cannot be.
pub(super) fn readable<T>(row: &impl Display, read: serde_json::Result<T>) -> Option<T> {
    read.inspect_err(|error| {
        note(format_args!("error: this cannot be read ({error}): {}", plain(&row.to_string())));
    })
    .ok()
}

/// Reads an answer of the port.
pub(super) fn read<M: Method>(answer: &MethodAnswer<M>) -> Result<M::Result<'static>, Failure>
where
    M::Result<'static>: DeserializeOwned,
{
    answer.read().map_err(failed)
}

pub(super) fn failed(error: ClientError) -> Failure {
    Failure::Run(error.into())
}
