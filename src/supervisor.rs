//! The set of agents: who is there, in which order they come up, and their orderly end. Knows
//! neither what lines say nor sockets.

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

/// The team's agents; cheap to clone.
#[derive(Clone, Debug)]
pub struct Roster {
    agents: Arc<IndexMap<AgentId, AgentHandle>>,
}

/// Owns the tasks of all agents. Dropping it kills every agent.
#[derive(Debug)]
pub struct Supervisor {
    roster: Roster,
    tasks: JoinSet<()>,
    autostart: Vec<AgentId>,
}

impl Supervisor {
    /// Sets up every agent; none is started yet.
    pub fn new(members: Vec<Member>, team: &Surroundings, cancel: &CancellationToken) -> Self {
        let mut tasks = JoinSet::new();
        let mut agents: IndexMap<AgentId, AgentHandle> = IndexMap::new();
        let order: Vec<_> = members.iter().map(|member| member.settings.id.clone()).collect();
        let autostart = members.iter().filter(|member| member.autostart);
        let autostart = autostart.map(|member| member.settings.id.clone()).collect();
        // Those that others depend on first, so that each finds whom it waits for.
        let mut rest = members;
        while !rest.is_empty() {
            let is_next =
                |member: &Member| member.depends_on.iter().all(|id| agents.contains_key(id));
            // Without a cycle there always is one; with one, its members wait for nobody.
            let next = rest.remove(rest.iter().position(is_next).unwrap_or(0));
            let depends_on: Vec<watch::Receiver<AgentStatus>> = next
                .depends_on
                .iter()
                .filter_map(|id| agents.get(id))
                .map(AgentHandle::watch)
                .collect();
            let id = next.settings.id.clone();
            let (handle, actor) =
                AgentHandle::spawn(next.settings, team.clone(), depends_on, cancel.clone());
            tasks.spawn(actor);
            agents.insert(id, handle);
        }
        agents.sort_by_cached_key(|id, _| order.iter().position(|other| other == id));
        Self { roster: Roster { agents: Arc::new(agents) }, tasks, autostart }
    }

    pub fn roster(&self) -> Roster {
        self.roster.clone()
    }

    /// Starts the agents that start by themselves; each waits for those it depends on.
    pub async fn start(&self) {
        for handle in self.autostart.iter().filter_map(|id| self.roster.get(id)) {
            // An actor ends only with the team.
            let _ = handle.order(Order::Start).await;
        }
    }

    /// Stops all agents in an orderly way, at the same time; names those that are late after
    /// `deadline` and kills them. Each has its own, shorter, grace before that.
    pub async fn stop(mut self, deadline: Duration) {
        let mut stopping = JoinSet::new();
        for handle in self.roster.agents.values() {
            let handle = handle.clone();
            stopping.spawn(async move {
                let _ = handle.order(Order::Stop).await;
            });
        }
        if tokio::time::timeout(deadline, stopping.join_all()).await.is_err() {
            for status in self.roster.statuses() {
                if !status.state.is_at_rest() {
                    tracing::error!(agent = %status.agent, "did not stop in time: killed");
                }
            }
        }
        self.tasks.shutdown().await;
    }
}

impl Roster {
    pub fn get(&self, id: &AgentId) -> Option<&AgentHandle> {
        self.agents.get(id)
    }

    /// Every agent, in the configuration's order.
    pub fn handles(&self) -> Vec<AgentHandle> {
        self.agents.values().cloned().collect()
    }

    /// Every agent as it stands, in the configuration's order.
    pub fn statuses(&self) -> Vec<AgentStatus> {
        self.agents.values().map(AgentHandle::status).collect()
    }
}
