//! The state of a team as people look at it: folds the lines of the port into agents, what waits for
//! a person, hot files and a log; and places files on its map. Knows no socket, no terminal and no
//! browser.

mod fields;
mod heat;
mod layout;
mod log;
mod waiting;

use std::collections::HashMap;

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;

pub use self::fields::Fields;
use self::heat::HeatMap;
pub use self::heat::HotFile;
pub use self::layout::{Layout, LayoutPart, Placed, SIDE, Tile};
pub use self::log::{Log, LogEntry};
pub use self::waiting::{CardId, CardKind, Undecided};
use self::waiting::{PendingList, ShownLine};

/// Bytes of a line that is folded as a whole; maps may be longer.
const LONGEST_LINE: usize = 1 << 20;

/// What is known of a team.
#[derive(Debug, Default)]
pub struct TeamView {
    /// As `list_agents` has them, in the order of the configuration.
    agents: IndexMap<String, Value>,
    /// Accesses that wait for a decision, as on the wire.
    pending: PendingList,
    /// Writes that wait for another agent, or a person.
    conflicts: PendingList,
    /// Budgets with limits, as on the wire; the empty name is the team's.
    budgets: IndexMap<String, ShownLine>,
    heat: HeatMap,
    log: Log,
}

/// What a line changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineEffect {
    Nothing,
    /// Something that is shown.
    Shown,
    /// Also figures of agents, which only `list_agents` has.
    Agents,
}

#[derive(Deserialize)]
struct AgentFields {
    agent_id: String,
    #[serde(default)]
    state: String,
}

#[derive(Default, Deserialize)]
struct ListedConflicts {
    conflicts: Value,
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
        self.pending.set(list);
    }

    /// Takes the answer of `list_conflicts`.
    pub fn set_conflicts(&mut self, listed: &Value) {
        let ListedConflicts { conflicts } =
            ListedConflicts::deserialize(listed).unwrap_or_default();
        self.conflicts.set(&conflicts);
    }

    /// Takes the answer of `list_budgets`.
    pub fn set_budgets(&mut self, list: &Value) {
        for budget in list.as_array().into_iter().flatten() {
            self.budget_line(ShownLine::new(budget.clone()));
        }
    }

    /// Takes the answer of `list_agents`.
    pub fn set_agents(&mut self, list: &Value) {
        self.agents.clear();
        for agent in list.as_array().into_iter().flatten() {
            if let Ok(AgentFields { agent_id, .. }) = AgentFields::deserialize(agent) {
                self.agents.insert(agent_id, agent.clone());
            }
        }
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
        let Ok(line) = serde_json::from_slice::<Value>(line) else { return LineEffect::Nothing };
        let line = ShownLine::new(line);
        self.log.line(kind, &line.fields);
        match kind {
            "agent" => self.agent(&line.line),
            "blocked" => shown(self.pending.line(line)),
            "conflict" => shown(self.conflicts.line(line)),
            "budget" => self.budget_line(line),
            "turn" | "usage" => LineEffect::Agents,
            _ => LineEffect::Shown,
        }
    }

    fn agent(&mut self, fields: &Value) -> LineEffect {
        let Ok(AgentFields { agent_id, .. }) = AgentFields::deserialize(fields) else {
            return LineEffect::Nothing;
        };
        let known = self.agents.entry(agent_id).or_insert_with(|| Value::Object(<_>::default()));
        if let (Some(known), Some(new)) = (known.as_object_mut(), fields.as_object()) {
            let new = new.iter().filter(|(name, _)| *name != "type");
            known.extend(new.map(|(name, value)| (name.clone(), value.clone())));
        }
        LineEffect::Agents
    }

    fn budget_line(&mut self, line: ShownLine) -> LineEffect {
        let whose = line.fields.agent_id.clone().unwrap_or_default();
        self.budgets.insert(whose, line);
        LineEffect::Shown
    }

    /// The agents with how much of theirs waits: first those for which a person is needed.
    pub fn agents(&self) -> Vec<(&Value, usize)> {
        let mut waits = HashMap::<&str, usize>::new();
        for undecided in self.waiting() {
            *waits.entry(undecided.agent()).or_default() += 1;
        }
        let waits = |id: &str| waits.get(id).copied().unwrap_or_default();
        let mut agents: Vec<_> = self.agents.iter().map(|(id, it)| (it, waits(id))).collect();
        agents.sort_by_key(|(agent, waits)| (*waits == 0, !self.is_in_trouble(agent)));
        agents
    }

    fn is_in_trouble(&self, agent: &Value) -> bool {
        let Ok(AgentFields { agent_id, state }) = AgentFields::deserialize(agent) else {
            return false;
        };
        let budget = self.budgets.get(&agent_id);
        state == "error" || budget.is_some_and(|budget| budget.fields.state == "exceeded")
    }

    /// The place of an agent in the configuration, from 0.
    pub fn place(&self, agent: &str) -> Option<usize> {
        self.agents.get_index_of(agent)
    }

    /// What waits for a person: accesses, then conflicts, oldest first, then budgets.
    pub fn waiting(&self) -> impl Iterator<Item = Undecided<'_>> {
        fn of<'a>(kind: CardKind) -> impl Fn((&'a str, &'a ShownLine)) -> Undecided<'a> {
            move |(id, shown)| Undecided { kind, id, fields: &shown.fields, line: &shown.line }
        }
        let exceeded = self.budgets.iter().filter(|(_, it)| it.fields.state == "exceeded");
        let exceeded = exceeded.map(|(whose, budget)| (whose.as_str(), budget));
        let accesses = self.pending.iter().map(of(CardKind::Access));
        let conflicts = self.conflicts.iter().map(of(CardKind::Conflict));
        accesses.chain(conflicts).chain(exceeded.map(of(CardKind::Budget)))
    }

    /// The budget of an agent, or the team's.
    pub fn budget(&self, agent: Option<&str>) -> Option<&Value> {
        self.budgets.get(agent.unwrap_or_default()).map(|budget| &budget.line)
    }

    /// The `most` hottest files.
    pub fn hottest(&self, most: usize) -> Vec<HotFile<'_>> {
        self.heat.hottest(most)
    }

    /// Adds something to the log that no line of the team says.
    pub fn note(&mut self, text: &str) {
        self.log.note(text);
    }

    /// What happened.
    pub fn log(&self) -> &Log {
        &self.log
    }
}

fn shown(is_changed: bool) -> LineEffect {
    if is_changed { LineEffect::Shown } else { LineEffect::Nothing }
}

#[cfg(test)]
mod tests;
