//! The set of agents: who is there, in which order they come up, and their orderly end. Knows
//! neither what lines say nor sockets.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::agent::{AgentHandle, AgentSettings, Order, Surroundings};
use crate::model::{AgentId, AgentStatus};

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

    /// Adds agents, and starts those that start by themselves; each waits for those it depends on.
    pub async fn add(&mut self, members: Vec<Member>) {
        let autostart = members.iter().filter(|member| member.autostart);
        let autostart: Vec<_> = autostart.map(|member| member.settings.id.clone()).collect();
        let mut agents = self.current();
        // Those that others depend on first, so that each finds whom it waits for.
        let mut rest = members;
        while !rest.is_empty() {
            let is_next =
                |member: &Member| member.depends_on.iter().all(|id| agents.contains_key(id));
            // Without a cycle there always is one; with one, its members wait for nobody.
            let next = rest.remove(rest.iter().position(is_next).unwrap_or(0));
            let depends_on = watched(&agents, &next.depends_on);
            let id = next.settings.id.clone();
            let (team, cancel) = (self.team.clone(), self.cancel.clone());
            let (handle, actor) = AgentHandle::spawn(next.settings, team, depends_on, cancel);
            self.tasks.spawn(actor);
            agents.insert(id, handle);
        }
        for handle in autostart.iter().filter_map(|id| agents.get(id)) {
            // An actor that has just begun takes it.
            let _ = handle.order(Order::Start).await;
        }
        // To nobody is an agent that is about to start `stopped`.
        self.agents.send_replace(Arc::new(agents));
    }

    /// Lets agents that are there go on by other settings.
    pub async fn change(&self, members: Vec<Member>) {
        let agents = self.current();
        let changes = members.into_iter().filter_map(|member| {
            let handle = agents.get(&member.settings.id)?;
            Some(handle.change(member.settings, watched(&agents, &member.depends_on)))
        });
        futures_util::future::join_all(changes).await;
    }

    /// Lets agents leave, all at the same time; returns how each stood last. They are there until
    /// nothing is left of them.
    pub async fn remove(&mut self, ids: &[AgentId]) -> Vec<AgentStatus> {
        let agents = self.current();
        let leaving = ids.iter().filter_map(|id| agents.get(id)).map(AgentHandle::leave);
        let left = futures_util::future::join_all(leaving).await;
        let mut agents = self.current();
        agents.retain(|id, _| !ids.contains(id));
        self.agents.send_replace(Arc::new(agents));
        while self.tasks.try_join_next().is_some() {}
        left
    }

    /// Shows the agents in this order from now on.
    pub fn arrange(&self, order: &[AgentId]) {
        let mut agents = self.current();
        agents.sort_by_cached_key(|id, _| order.iter().position(|other| other == id));
        self.agents.send_replace(Arc::new(agents));
    }

    /// Stops all agents in an orderly way, at the same time; names those that are late after
    /// `deadline` and kills them. Each has its own, shorter, grace before that.
    pub async fn stop(&mut self, deadline: Duration) {
        let mut stopping = JoinSet::new();
        for handle in self.current().into_values() {
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

    fn current(&self) -> IndexMap<AgentId, AgentHandle> {
        IndexMap::clone(&self.agents.borrow())
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
