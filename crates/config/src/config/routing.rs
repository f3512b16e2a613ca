//! `[[routing]]`: who decides about which accesses outside of zones.

use std::path::Path;

use super::Config;
use super::errors::code;
use super::fault::Fault;
use super::patterns::patterns;
use super::read::{Table, Text, unknown_value};
use crate::model::{AgentId, RuleSpec, Via};

/// Tables of one file: each access outside of a zone is compared with all.
const MOST: usize = 256;

/// With its agents not resolved.
pub(super) struct RawRouting {
    routing: RuleSpec,
    agents: Vec<Text>,
}

impl RawRouting {
    /// Takes the names of its agents, after `check` has looked at each.
    pub(super) fn resolved(self, check: impl Fn(&Text)) -> RuleSpec {
        self.agents.iter().for_each(check);
        let agents = self.agents.iter().map(|name| AgentId::new(name.value.as_str()));
        RuleSpec { agents: agents.collect(), ..self.routing }
    }
}

impl Config {
    /// The agents that a rule names, with their helpers, and those of the helpers; empty if it is
    /// for all.
    pub fn agents_of(&self, rule: &RuleSpec) -> Vec<AgentId> {
        let mut agents = rule.agents.clone();
        // Parents are before their helpers or after: each round finds another level.
        while let Some(helper) = self.agents.iter().find(|agent| {
            agent.parent.as_ref().is_some_and(|parent| agents.contains(parent))
                && !agents.contains(&agent.id)
        }) {
            agents.push(helper.id.clone());
        }
        agents
    }
}

/// Reads all tables.
pub(super) fn routing(root: &Table<'_>, workspace: &Path) -> Vec<RawRouting> {
    let mut count = 0;
    root.sections("routing", |table| {
        count += 1;
        if count == MOST + 1 {
            let help = "name several paths and agents in one";
            table.lacks(format!("there are more than {MOST} tables of `[[routing]]`"), help);
        }
        one(table, workspace)
    })
}

fn one(table: &Table<'_>, workspace: &Path) -> RawRouting {
    if table.place_of("decide").is_none() {
        let help =
            "write `decide = \"allow\"`, \"deny\", \"orchestrator\", \"owner\" or \"person\"";
        table.lacks("this table has no `decide`", help);
    }
    for key in ["paths", "agents", "via"] {
        if let Some(place) = table.place_of(key).filter(|_| is_empty(table, key)) {
            let fault =
                Fault::new(place, format!("{} is empty: it would match nothing", code(key)));
            table.fault(fault.help("leave it out for all"));
        }
    }
    let known = Via::ALL.map(Via::as_str);
    let via = |name: &Text| {
        let found = Via::ALL.into_iter().find(|via| via.as_str() == name.value);
        if found.is_none() {
            table.fault(unknown_value("via", name, &known));
        }
        found
    };
    let routing = RuleSpec {
        paths: patterns(table, "paths", workspace).unwrap_or_default(),
        agents: Vec::new(),
        via: table.texts("via").iter().flatten().filter_map(via).collect(),
        action: table.place_of("action").map(|_| table.choice("action")),
        decide: table.choice("decide"),
    };
    RawRouting { routing, agents: table.texts("agents").unwrap_or_default() }
}

fn is_empty(table: &Table<'_>, key: &'static str) -> bool {
    table.get(key).and_then(|item| item.get_ref().as_array()).is_some_and(|list| list.is_empty())
}
