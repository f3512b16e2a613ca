//! The set of agents: who is there, in which order they come up, and their orderly end. Knows
//! neither what lines say nor sockets.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use indexmap::IndexMap;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::agent::{AgentHandle, AgentSettings, Capacity, Surroundings};
use crate::model::{AgentId, AgentStatus, Order};

/// An agent of the team before it runs.
#[derive(Debug)]
pub struct Member {
    pub settings: AgentSettings,
    /// Ready before this one starts; no cycles.
    pub depends_on: Vec<AgentId>,
    pub autostart: bool,
}

/// The team's agents as they are at any time; cheap to clone.
#[derive(Clone, Debug)]
pub struct Roster {
    agents: watch::Receiver<Agents>,
}

type Agents = Arc<IndexMap<AgentId, AgentHandle>>;

/// Owns the tasks of all agents, and alone changes who is there. Dropping it kills every agent.
pub struct Supervisor {
    agents: watch::Sender<Agents>,
    tasks: JoinSet<()>,
    team: Surroundings,
    cancel: CancellationToken,
}

impl Supervisor {
    pub fn new(team: Surroundings, cancel: CancellationToken) -> Self {
        Self { agents: watch::Sender::default(), tasks: JoinSet::new(), team, cancel }
    }

    pub fn roster(&self) -> Roster {
        Roster { agents: self.agents.subscribe() }
    }

    /// How much may run at a time, from now on.
    pub fn set_capacity(&self, capacity: Capacity) {
        self.team.admission.set(capacity);
    }

    /// Makes these the team, in this order. Who is there already goes on by its settings, before
    /// anything takes time; then the others leave, all at the same time, and are there until
    /// nothing is left of them; then who is new starts, if it starts by itself. Returns how those
    /// who left stood last.
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
        // Now that all have an actor, each finds whom it waits for.
        let changes = members.into_iter().filter_map(|member| {
            let depends_on = watched(&agents, &member.depends_on);
            Some(agents.get(&member.settings.id)?.change(member.settings, depends_on))
        });
        join_all(changes).await;
        let leaving = before.iter().filter(|(id, _)| !agents.contains_key(*id));
        let left = join_all(leaving.map(|(_, handle)| handle.leave())).await;
        for handle in starting {
            // An actor that has just begun takes it.
            let _ = handle.order(Order::Start).await;
        }
        // To nobody is an agent that is about to start `stopped`.
        self.agents.send_replace(Arc::new(agents));
        while self.tasks.try_join_next().is_some() {}
        left
    }

    /// Stops all agents in an orderly way, at the same time; names those that are late after
    /// `deadline` and kills them. Each has its own, shorter, grace before that.
    pub async fn stop(&mut self, deadline: Duration) {
        let mut stopping = JoinSet::new();
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

    /// Every agent, in the configuration's order.
    pub fn handles(&self) -> Vec<AgentHandle> {
        self.agents.borrow().values().cloned().collect()
    }

    /// Every agent as it stands, in the configuration's order.
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
