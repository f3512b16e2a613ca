//! `start`, `stop`, `restart` and `cancel`: commands to agents, and their outcomes.

use clap::Args;
use serde_json::Value;

use super::output::{note, plain, print, style};
use super::team::{Which, failed, list_agents, read};
use super::{Global, format};
use crate::program::Failure;
use crate::serve::client::{ClientError, Connection, Message, MethodAnswer, Refusal};
use crate::wire::{self, Agent, AgentParams, CancelParams, Cancelled, Method};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core agent stop ui         stop one agent; the others keep running
  eisen-core agent restart ui api  restart two agents
  eisen-core agent start --all     start every agent that is not running
  eisen-core agent stop --all --team webshop

Prints the state of each agent, one line each. Follow a start with `eisen-core ps --watch`.

Exit codes: 0 done, 1 refused for an agent or no such team, 2 wrong usage.")]
pub(super) struct AgentsArgs {
    /// Ids of the agents
    #[arg(value_name = "AGENT", required_unless_present = "all")]
    agents: Vec<String>,
    /// All agents of the team
    #[arg(long, conflicts_with = "agents")]
    all: bool,
    /// Print each agent's status object as JSON, one line each
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

/// Cancel an agent's running turn and its queued prompts
///
/// The agent is asked to end its turn, which may take a while. Its session stays open.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  eisen-core agent cancel ui
  eisen-core agent cancel ui --session ui-s2

Exit codes: 0 done, or nothing to cancel; 1 refused or no such team, 2 wrong usage.")]
pub(super) struct Cancel {
    /// Id of the agent
    agent: String,
    /// Only this session [default: all sessions of the agent]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    which: Which,
}

impl AgentsArgs {
    /// Calls a method for all agents at once, and prints the results in the order of the arguments.
    pub(super) async fn run<M>(self, global: &Global) -> Result<u8, Failure>
    where
        M: Method<Params = AgentParams, Result<'static> = Agent<'static>>,
    {
        let mut team = self.which.connect(global).await?;
        let mut agents = self.agents;
        if self.all {
            let all = list_agents(&mut team).await.map_err(failed)?;
            agents = all.into_iter().map(|agent| agent.status.agent_id.into_owned()).collect();
        }
        // A second call for the same agent would repeat or undo the first.
        let mut seen = std::collections::HashSet::new();
        agents.retain(|agent| seen.insert(agent.clone()));
        let order =
            |agent: &String| team.send::<M>(&AgentParams { agent_id: agent.clone().into() });
        let requests: Vec<u64> = agents.iter().map(order).collect();
        let mut outcomes: Vec<Option<Result<Value, Refusal>>> = vec![None; agents.len()];
        let (mut printed, mut refused) = (0, false);
        while printed < agents.len() {
            receive(&mut team, &requests, &mut outcomes).await.map_err(failed)?;
            while let Some(outcome) = outcomes.get_mut(printed).and_then(Option::take) {
                match outcome {
                    Ok(status) if self.json => print(status)?,
                    Ok(status) => print(describe(&read(&MethodAnswer::<M>::new(status))?))?,
                    Err(refusal) => {
                        refused = true;
                        note(format!("error: {}", plain(&refusal.message)));
                    }
                }
                printed += 1;
            }
        }
        Ok(u8::from(refused))
    }
}

impl Cancel {
    pub(super) async fn run(self, global: &Global) -> Result<(), Failure> {
        let mut team = self.which.connect(global).await?;
        let session_id = self.session.or_else(|| global.session_id.clone());
        let params = CancelParams { agent_id: self.agent.clone().into(), session_id, queued: None };
        let result = team.ask::<wire::Cancel>(&params).await.map_err(failed)?;
        if self.json {
            return print(result);
        }
        let Cancelled { turns, prompts } = read(&result)?;
        let turns = (turns > 0).then(|| format!("{} asked to end", were(turns, "turn")));
        let prompts =
            (prompts > 0).then(|| format!("{} withdrawn", were(prompts, "queued prompt")));
        let done: Vec<_> = turns.into_iter().chain(prompts).collect();
        let done =
            if done.is_empty() { "there was nothing to cancel".into() } else { done.join(", ") };
        print(format_args!("{}: {done}", self.agent))
    }
}

fn were(count: usize, noun: &str) -> String {
    format!("{} {}", format::counted(count as u64, noun), if count == 1 { "was" } else { "were" })
}

/// Receives the response to one of `requests`.
async fn receive(
    team: &mut Connection,
    requests: &[u64],
    outcomes: &mut [Option<Result<Value, Refusal>>],
) -> Result<(), ClientError> {
    loop {
        if let Message::Answer { id, outcome } = team.next().await?
            && let Some(at) = requests.iter().position(|request| *request == id)
        {
            outcomes[at] = Some(outcome);
            return Ok(());
        }
    }
}

/// Returns e.g. `ui: connecting (pid 4711)`.
fn describe(Agent { agent_id, state, pid, reason, .. }: &Agent<'_>) -> String {
    let color = style(state.as_str());
    let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    let reason = reason.as_deref().map(|why| format!(": {}", plain(why)));
    let agent = plain(agent_id);
    format!("{agent}: {color}{state}{color:#}{pid}{}", reason.unwrap_or_default())
}
