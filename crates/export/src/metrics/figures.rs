//! Figures that their owners know at any time, and that are read for each scrape.

use super::catalog::Metric;
use super::labels::HELPERS;
use super::series::Series;
use crate::model::{AgentId, AgentState};

/// Agents with labels of their own; further ones count as helpers.
const MOST_AGENTS: usize = 256;

/// The figures of one moment.
#[derive(Clone, Default, Debug)]
pub struct Figures {
    pub agents: Vec<AgentFigures>,
    /// Accesses, and writes in conflict, that wait for somebody's decision.
    pub pending: usize,
    /// Events that were ever published.
    pub events: u64,
    pub port: PortFigures,
    /// None without a journal.
    pub journal: Option<JournalFigures>,
}

#[derive(Clone, Debug)]
pub struct AgentFigures {
    pub agent: AgentId,
    /// Another agent started it for one task.
    pub is_helper: bool,
    pub state: AgentState,
    pub pid: Option<u32>,
    /// Prompts behind running turns.
    pub queued: usize,
    /// None: unknown.
    pub memory_bytes: Option<u64>,
    /// The CPU time of the agent's current run; None: unknown.
    pub cpu_ms: Option<u64>,
}

#[derive(Clone, Copy, Default, Debug)]
pub struct PortFigures {
    pub clients: usize,
    pub lags: u64,
    pub missed_events: u64,
}

#[derive(Clone, Copy, Default, Debug)]
pub struct JournalFigures {
    /// Published events that it has not read.
    pub lag: u64,
    /// Batches that wait to be written.
    pub queued: usize,
    pub queued_bytes: usize,
    pub gaps: u64,
    pub lost_events: u64,
}

/// The label of the agent at this place of the list.
pub(super) fn label(at: usize, agent: &AgentFigures) -> String {
    let has_own = !agent.is_helper && at < MOST_AGENTS;
    if has_own { agent.agent.to_string() } else { HELPERS.to_owned() }
}

impl Figures {
    pub(super) fn add_to(&self, series: &mut Series) {
        for state in AgentState::ALL {
            let count = self.agents.iter().filter(|agent| agent.state == state).count();
            series.add(Metric::Agents, [state.as_str().into()], count as u64);
        }
        for (at, agent) in self.agents.iter().enumerate() {
            let label = label(at, agent);
            series.add(Metric::PromptsQueued, [label.clone().into()], agent.queued as u64);
            if let Some(bytes) = agent.memory_bytes {
                series.add(Metric::AgentMemory, [label.into()], bytes);
            }
        }
        series.add(Metric::DecisionsPending, [], self.pending as u64);
        series.add(Metric::BusEvents, [], self.events);
        series.add(Metric::PortClients, [], self.port.clients as u64);
        series.add(Metric::PortLags, [], self.port.lags);
        series.add(Metric::PortMissed, [], self.port.missed_events);
        if let Some(journal) = &self.journal {
            series.add(Metric::JournalLag, [], journal.lag);
            series.add(Metric::JournalQueue, [], journal.queued as u64);
            series.add(Metric::JournalQueuedBytes, [], journal.queued_bytes as u64);
            series.add(Metric::JournalGaps, [], journal.gaps);
            series.add(Metric::JournalLost, [], journal.lost_events);
        }
        series.add(Metric::Build, [env!("CARGO_PKG_VERSION").into()], 1);
    }
}
