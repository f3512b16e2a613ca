//! The waits between agents, as one graph. A wait that would close a circle is refused.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::model::AgentId;

/// The waits of a team; cheap to clone.
#[derive(Clone, Default, Debug)]
pub struct Waits(Arc<Mutex<WaitGraph>>);

/// The kind of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitKind {
    /// The end of another's task. It also ends once the task needs a decision.
    Task,
    /// An owner's answer.
    Answer,
    /// A decision of the orchestrator.
    Decision,
    /// The end of another's lock of a file.
    Lock,
}

/// For each agent the agents that it waits for, once for each wait.
#[derive(Default, Debug)]
struct WaitGraph(HashMap<AgentId, Vec<(AgentId, WaitKind)>>);

/// A wait, which ends when this is dropped.
#[derive(Debug)]
pub struct WaitGuard {
    waits: Waits,
    waiter: AgentId,
    awaited: Vec<(AgentId, WaitKind)>,
}

/// Agents that would each wait for the next one, and the last for the first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Circle(pub Vec<AgentId>);

impl fmt::Display for Circle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.iter().chain(self.0.first()).map(|agent| format!("`{agent}`"));
        let names: Vec<_> = names.collect();
        write!(f, "the wait would never end, since each waits for the next: {}", names.join(" → "))
    }
}

impl Waits {
    /// Begins a wait of an agent for others, unless one of them waits for it, directly or through
    /// others.
    pub fn begin(
        &self,
        waiter: &AgentId,
        awaited: &[AgentId],
        kind: WaitKind,
    ) -> Result<WaitGuard, Circle> {
        let mut graph = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for other in awaited {
            if let Some(mut path) = graph.path(other, waiter, kind) {
                // The path ends with the waiter, and the circle begins with it.
                path.rotate_right(1);
                return Err(Circle(path));
            }
        }
        let awaited: Vec<_> = awaited.iter().map(|agent| (agent.clone(), kind)).collect();
        graph.0.entry(waiter.clone()).or_default().extend(awaited.iter().cloned());
        Ok(WaitGuard { waits: self.clone(), waiter: waiter.clone(), awaited })
    }
}

impl WaitGraph {
    /// Returns a path along the waits from an agent to another that wants to wait for it, with both
    /// ends, if that wait would never end.
    fn path(&self, from: &AgentId, to: &AgentId, kind: WaitKind) -> Option<Vec<AgentId>> {
        let first = (from, Chain::of(kind));
        let mut came_from: HashMap<(&AgentId, Chain), Option<(&AgentId, Chain)>> =
            HashMap::from([(first, None)]);
        let mut open = vec![first];
        while let Some(at) = open.pop() {
            let (agent, chain) = at;
            if agent == to {
                if chain.is_woken() && from != to {
                    continue;
                }
                let steps =
                    std::iter::successors(Some(at), |at| came_from.get(at).copied().flatten());
                let mut path: Vec<_> = steps.map(|(agent, _)| agent.clone()).collect();
                path.reverse();
                return Some(path);
            }
            for (next, waits) in self.0.get(agent).into_iter().flatten() {
                let next = (next, chain.and(*waits));
                came_from.entry(next).or_insert_with(|| {
                    open.push(next);
                    Some(at)
                });
            }
        }
        None
    }
}

/// The kinds of the waits along a path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Chain {
    /// All waits are for tasks.
    Tasks,
    /// One is for a decision, the others are for tasks.
    OneDecision,
    Other,
}

impl Chain {
    fn of(kind: WaitKind) -> Self {
        Self::Tasks.and(kind)
    }

    fn and(self, kind: WaitKind) -> Self {
        match (self, kind) {
            (chain, WaitKind::Task) => chain,
            (Self::Tasks, WaitKind::Decision) => Self::OneDecision,
            _ => Self::Other,
        }
    }

    /// Whether a circle of them is none: whoever waits for tasks alone is woken when one of them, or
    /// one below it, needs its decision.
    fn is_woken(self) -> bool {
        self == Self::OneDecision
    }
}

impl Drop for WaitGuard {
    fn drop(&mut self) {
        let mut graph = self.waits.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(all) = graph.0.get_mut(&self.waiter) else { return };
        for other in &self.awaited {
            if let Some(at) = all.iter().position(|it| it == other) {
                all.swap_remove(at);
            }
        }
        if all.is_empty() {
            graph.0.remove(&self.waiter);
        }
    }
}
