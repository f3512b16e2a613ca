//! The set of agents of a team: adding, removing, starting in the order of their dependencies, and
//! stopping. Knows nothing of the protocol or of sockets.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use eisen_base::task::TaskSet;
use futures_util::future::join_all;
use indexmap::IndexMap;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::agent::{AgentHandle, AgentSettings, Capacity, Surroundings};
use crate::model::{AgentId, AgentStatus, Order};

/// An agent of the team, before its actor is spawned.
#[derive(Debug)]
pub struct Member {
    pub settings: AgentSettings,
    /// Agents that must be ready before this one starts; without cycles.
    pub depends_on: Vec<AgentId>,
    pub autostart: bool,
}

/// A live view of the team's agents; cheap to clone.
#[derive(Clone, Debug)]
pub struct Roster {
    agents: watch::Receiver<Agents>,
}

type Agents = Arc<IndexMap<AgentId, AgentHandle>>;

/// Owns the tasks of all agents, and is the only one to add or remove agents. Dropping it kills
/// every agent.
pub struct Supervisor {
    agents: watch::Sender<Agents>,
    tasks: TaskSet,
    team: Surroundings,
    cancel: CancellationToken,
}

impl Supervisor {
    pub fn new(team: Surroundings, cancel: CancellationToken) -> Self {
        Self { agents: watch::Sender::default(), tasks: TaskSet::default(), team, cancel }
    }

    pub fn roster(&self) -> Roster {
        Roster { agents: self.agents.subscribe() }
    }

    /// Changes how many agents may run at a time.
    pub fn set_capacity(&self, capacity: Capacity) {
        self.team.admission.set(capacity);
    }

    /// Makes `members` the team, in this order: first updates the settings of existing agents, then
    /// removes the other agents and waits for their end, then starts new agents with `autostart`.
    /// Returns the last status of each removed agent.
    pub async fn assemble(&mut self, members: Vec<Member>) -> Vec<AgentStatus> {
        let before = Agents::clone(&self.agents.borrow());
        let mut agents = IndexMap::new();
        let mut starting = Vec::new();
        for member in &members {
            let id = member.settings.id.clone();
            let handle = before.get(&id).cloned().unwrap_or_else(|| {
                let settings = member.settings.clone();
                let (handle, actor) =
                    AgentHandle::spawn(settings, self.team.clone(), self.cancel.clone());
                self.tasks.spawn(actor);
                if member.autostart {
                    starting.push(handle.clone());
                }
                handle
            });
            agents.insert(id, handle);
        }
        // All actors are spawned: resolve their dependencies.
        let changes = members.into_iter().filter_map(|member| {
            let depends_on = watched(&agents, &member.depends_on);
            Some(agents.get(&member.settings.id)?.change(member.settings, depends_on))
        });
        join_all(changes).await;
        let leaving = before.iter().filter(|(id, _)| !agents.contains_key(*id));
        let left = join_all(leaving.map(|(_, handle)| handle.leave())).await;
        for handle in starting {
            let _ = handle.order(Order::Start).await;
        }
        // After the starts: no reader sees a starting agent as `stopped`.
        self.agents.send_replace(Arc::new(agents));
        while self.tasks.try_join_next().is_some() {}
        left
    }

    /// Stops all agents at the same time. After `deadline`, logs and kills the remaining ones; each
    /// agent has its own, shorter, grace period.
    pub async fn stop(&mut self, deadline: Duration) {
        let mut stopping = TaskSet::default();
        for handle in self.roster().handles() {
            stopping.spawn(async move {
                let _ = handle.order(Order::Stop).await;
            });
        }
        if tokio::time::timeout(deadline, stopping.join_all()).await.is_err() {
            for status in self.roster().statuses() {
                if !status.state.is_at_rest() {
                    tracing::error!(agent = %status.agent, "did not stop in time: killed");
                }
            }
        }
        self.tasks.shutdown().await;
    }
}

impl Roster {
    pub fn get(&self, id: &AgentId) -> Option<AgentHandle> {
        self.agents.borrow().get(id).cloned()
    }

    /// The handles of all agents, in the configuration's order.
    pub fn handles(&self) -> Vec<AgentHandle> {
        self.agents.borrow().values().cloned().collect()
    }

    /// The current status of all agents, in the configuration's order.
    pub fn statuses(&self) -> Vec<AgentStatus> {
        self.agents.borrow().values().map(AgentHandle::status).collect()
    }
}

fn watched(
    agents: &IndexMap<AgentId, AgentHandle>,
    ids: &[AgentId],
) -> Vec<watch::Receiver<AgentStatus>> {
    ids.iter().filter_map(|id| agents.get(id)).map(AgentHandle::watch).collect()
}
