//! The runs of agents that hold locks: their processes, and when each last worked. Pure.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use crate::model::{AgentId, SessionId};

/// The holder of a lock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LockHolder {
    pub agent: AgentId,
    /// Empty if several turns of the agent run.
    pub session: SessionId,
    /// The agent's process.
    pub process: Option<HolderProcess>,
}

/// A process, known by more than its number, which the system gives out again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HolderProcess {
    pub pid: u32,
    /// Ticks of the system's clock at its start; 0 where the system does not say.
    pub started: u64,
}

/// Says when an agent last worked.
pub type LastWork = Arc<dyn Fn() -> Instant + Send + Sync>;

#[derive(Default)]
pub(super) struct Workers(HashMap<AgentId, Worker>);

struct Worker {
    process: HolderProcess,
    last_output: LastWork,
    /// Its last access to a file.
    last_access: Option<Instant>,
}

impl Workers {
    pub(super) fn began(&mut self, agent: AgentId, process: HolderProcess, last_output: LastWork) {
        self.0.insert(agent, Worker { process, last_output, last_access: None });
    }

    /// A run ended; false if another one of the agent has begun.
    pub(super) fn ended(&mut self, agent: &AgentId, process: HolderProcess) -> bool {
        let is_its = self.0.get(agent).is_some_and(|worker| worker.process == process);
        if is_its {
            self.0.remove(agent);
        }
        is_its
    }

    pub(super) fn worked(&mut self, agent: &AgentId, at: Instant) {
        if let Some(worker) = self.0.get_mut(agent) {
            worker.last_access = Some(at);
        }
    }

    pub(super) fn last_work(&self, agent: &AgentId) -> Option<Instant> {
        let worker = self.0.get(agent)?;
        Some((worker.last_output)()).max(worker.last_access)
    }

    pub(super) fn process(&self, agent: &AgentId) -> Option<HolderProcess> {
        self.0.get(agent).map(|worker| worker.process)
    }

    /// Whether the process of a holder is not the agent's any more.
    pub(super) fn is_gone(&self, holder: &LockHolder) -> bool {
        holder.process.is_some() && self.process(&holder.agent) != holder.process
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// When a process started, in ticks since the system did; 0 if the system does not say.
pub(super) fn start_of(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name, in parentheses, may have spaces; the start is the 22nd field.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    fields.split_ascii_whitespace().nth(19).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}
