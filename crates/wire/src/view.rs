//! The state of a team as people look at it: folds the lines of the port into agents, what waits for
//! a person, hot files and a log; and places files on its map. Knows no socket, no terminal and no
//! browser.

mod heat;
mod inbox;
mod layout;
mod log;

use std::collections::HashMap;

use indexmap::IndexMap;
use indexmap::map::Entry;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::heat::HeatMap;
pub use self::heat::HotFile;
use self::inbox::PendingList;
pub use self::inbox::{CardId, CardKind, Undecided};
pub use self::layout::{Layout, LayoutPart, Placed, SIDE, Tile};
pub use self::log::{Log, LogEntry, SweepCount, access_text, decider, folded_noise};
use crate::model::{AgentState, BudgetState};
use crate::wire::{AgentDetails, Blocked, Budget, ConflictLine, ConflictList, ServerLine};

/// Bytes of a line that is folded as a whole; maps may be longer.
const LONGEST_LINE: usize = 1 << 20;

/// The data of a team.
#[derive(Debug, Default)]
pub struct TeamView {
    /// As `list_agents` has them, in the order of the configuration.
    agents: IndexMap<String, AgentDetails<'static>>,
    /// Accesses that wait for a decision.
    pending: PendingList<Blocked<'static>>,
    /// Writes that wait for another agent, or a person.
    conflicts: PendingList<ConflictLine<'static>>,
    /// Budgets with limits; the empty name is the team's.
    budgets: IndexMap<String, Budget<'static>>,
    heat: HeatMap,
    log: Log,
}

/// How much of the view a line changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineEffect {
    Nothing,
    /// Something that is shown.
    Shown,
    /// Also figures of agents, which only `list_agents` has.
    Agents,
}

impl TeamView {
    /// The state of a new connection, whose lists are on their way; the log goes on.
    pub fn joined(&mut self) {
        let log = std::mem::take(&mut self.log);
        let (pending, conflicts) = (PendingList::joined(), PendingList::joined());
        *self = Self { pending, conflicts, log, ..Self::default() };
    }

    /// Takes the answer of `list_blocked`.
    pub fn set_pending(&mut self, list: &Value) {
        let accesses = self.rows(list, "an access");
        self.pending.set(accesses);
    }

    /// Takes the answer of `list_conflicts`.
    pub fn set_conflicts(&mut self, listed: &Value) {
        match ConflictList::deserialize(listed) {
            Ok(listed) => self.conflicts.set(listed.conflicts),
            Err(error) => self.unreadable("the list of conflicts", &error),
        }
    }

    /// Takes the answer of `list_budgets`.
    pub fn set_budgets(&mut self, list: &Value) {
        for budget in self.rows(list, "a budget") {
            self.budget_line(budget);
        }
    }

    /// Takes the answer of `list_agents`.
    pub fn set_agents(&mut self, list: &Value) {
        let agents: Vec<AgentDetails<'_>> = self.rows(list, "an agent");
        let named = agents.into_iter().map(|agent| (agent.status.agent_id.to_string(), agent));
        self.agents = named.collect();
    }

    /// Reads the rows of a list; the log says of those that cannot be read that there are some.
    fn rows<T: DeserializeOwned>(&mut self, list: &Value, what: &str) -> Vec<T> {
        let mut read = Vec::new();
        for row in list.as_array().into_iter().flatten() {
            match T::deserialize(row) {
                Ok(row) => read.push(row),
                Err(error) => self.unreadable(what, &error),
            }
        }
        read
    }

    fn unreadable(&mut self, what: &str, error: &serde_json::Error) {
        self.log.note(&format!("{what} of the team cannot be read, and is not shown: {error}"));
    }

    /// Takes a line of the port, of this type.
    pub fn line(&mut self, kind: &str, line: &[u8]) -> LineEffect {
        match kind {
            "snapshot" => return shown(self.heat.snapshot(line)),
            "delta" => return shown(self.heat.delta(line)),
            "lagged" => {
                // What waits follows anew.
                self.pending.clear();
                self.conflicts.clear();
                self.log.missed(line);
                return LineEffect::Agents;
            }
            "agent" | "blocked" | "budget" | "conflict" | "loop" | "overlap" | "report"
            | "task" | "turn" | "usage" => {}
            _ => return LineEffect::Nothing,
        }
        if line.len() > LONGEST_LINE {
            return LineEffect::Nothing;
        }
        let read = match ServerLine::read(line) {
            Ok(read) => read,
            // What a person decides does not vanish without a word.
            Err(error) if ["blocked", "budget", "conflict"].contains(&kind) => {
                self.unreadable(&format!("a line `{kind}`"), &error);
                return LineEffect::Shown;
            }
            Err(_) => return LineEffect::Nothing,
        };
        self.log.line(&read);
        match read {
            ServerLine::Agent(status) => {
                // Figures that only `list_agents` has stay.
                let agent = self.agents.entry(status.agent_id.to_string());
                match agent {
                    Entry::Occupied(mut known) => known.get_mut().status = status,
                    Entry::Vacant(new) => drop(new.insert(status.into())),
                }
                LineEffect::Agents
            }
            ServerLine::Blocked(access) => {
                self.pending.line(access);
                LineEffect::Shown
            }
            ServerLine::Conflict(conflict) => {
                self.conflicts.line(conflict);
                LineEffect::Shown
            }
            ServerLine::Budget(budget) => self.budget_line(budget),
            ServerLine::Turn(_) | ServerLine::Usage(_) => LineEffect::Agents,
            _ => LineEffect::Shown,
        }
    }

    fn budget_line(&mut self, budget: Budget<'static>) -> LineEffect {
        let whose = budget.agent_id.as_deref().unwrap_or_default().to_owned();
        self.budgets.insert(whose, budget);
        LineEffect::Shown
    }

    /// The agents with how much of theirs waits: first those for which a person is needed.
    pub fn agents(&self) -> Vec<(&AgentDetails<'static>, usize)> {
        let mut waits = HashMap::<&str, usize>::new();
        for undecided in self.waiting() {
            *waits.entry(undecided.agent()).or_default() += 1;
        }
        let waits = |id: &str| waits.get(id).copied().unwrap_or_default();
        let mut agents: Vec<_> = self.agents.iter().map(|(id, it)| (it, waits(id))).collect();
        agents.sort_by_key(|(agent, waits)| (*waits == 0, !self.is_in_trouble(agent)));
        agents
    }

    fn is_in_trouble(&self, agent: &AgentDetails<'_>) -> bool {
        let budget = self.budget(Some(&agent.status.agent_id));
        let status = &agent.status;
        // It is ready, and something is wrong all the same: it is stalled.
        let is_stalled = status.state == AgentState::Ready && status.reason.is_some();
        status.state == AgentState::Error || is_stalled || budget.is_some_and(is_exceeded)
    }

    /// The place of an agent in the configuration, from 0.
    pub fn place(&self, agent: &str) -> Option<usize> {
        self.agents.get_index_of(agent)
    }

    /// The items that wait for a person: accesses, then conflicts, oldest first, then budgets.
    pub fn waiting(&self) -> impl Iterator<Item = Undecided<'_>> {
        let exceeded = self.budgets.values().filter(|budget| is_exceeded(budget));
        let accesses = self.pending.iter().map(Undecided::Access);
        let conflicts = self.conflicts.iter().map(Undecided::Conflict);
        accesses.chain(conflicts).chain(exceeded.map(Undecided::Budget))
    }

    /// The budget of an agent, or the team's.
    pub fn budget(&self, agent: Option<&str>) -> Option<&Budget<'static>> {
        self.budgets.get(agent.unwrap_or_default())
    }

    /// The `most` hottest files.
    pub fn hottest(&self, most: usize) -> Vec<HotFile<'_>> {
        self.heat.hottest(most)
    }

    /// Adds to the log what was before the view was opened, oldest first.
    pub fn earlier(&mut self, entries: Vec<LogEntry>) {
        self.log.earlier(entries);
    }

    /// Adds something to the log that no line of the team says.
    pub fn note(&mut self, text: &str) {
        self.log.note(text);
    }

    /// The log of events.
    pub fn log(&self) -> &Log {
        &self.log
    }
}

fn is_exceeded(budget: &Budget<'_>) -> bool {
    budget.state == BudgetState::Exceeded
}

fn shown(is_changed: bool) -> LineEffect {
    if is_changed { LineEffect::Shown } else { LineEffect::Nothing }
}

#[cfg(test)]
mod tests;
