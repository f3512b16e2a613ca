//! Connects `[[routing]]` of the configuration with the room `routing`, and shows what becomes of an
//! access.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::config::{Agent, Config, OnBlock, Secrets, Why};
use crate::model::{AccessRule, Action, AgentId, Decide, RuleSpec, Via, wire_path};
use crate::routing::{RoutingRules, RuledAccess};
use crate::zone::Zone;

/// Compiles the rules of a configuration.
pub(crate) fn rules(config: &Config) -> anyhow::Result<RoutingRules> {
    let specs = config.routing.iter();
    let specs = specs.map(|rule| RuleSpec { agents: config.agents_of(rule), ..rule.clone() });
    RoutingRules::compile(specs).context("the patterns of `[[routing]]`")
}

/// The same for a team of which some agents may be observed: for these a person is asked for a file of the default
/// list, also where the configuration says nothing of these.
pub(crate) fn rules_of_run(
    config: &Config,
    observes: &dyn Fn(&Agent) -> bool,
) -> anyhow::Result<RoutingRules> {
    let agents = config.agents.iter().filter(|agent| observes(agent));
    let agents: Vec<AgentId> = agents.map(|agent| agent.id.clone()).collect();
    let mut config = config.clone();
    let is_needed = !agents.is_empty() && config.zones.secrets == Secrets::Allow;
    let further = Secrets::Ask.rule().filter(|_| is_needed);
    config.routing.extend(further.map(|rule| RuleSpec { agents, ..rule }));
    rules(&config)
}

/// The ways of accesses. What is seen after the fact is only reported.
fn ways() -> impl Iterator<Item = Via> {
    Via::ALL.into_iter().filter(|via| *via != Via::Tool)
}

/// The rule that denies an access that it explains, by one way at least.
pub(crate) fn denying(config: &Config, why: &Why, zone: &Zone) -> Option<AccessRule> {
    let rules = rules(config).ok()?;
    let is_owned = why.owners.iter().any(|owner| *owner != why.agent);
    let of = |via| {
        let access = RuledAccess {
            agent: &why.agent,
            path: &why.path,
            via,
            action: why.action,
            grantable: zone.is_grantable(&why.path, why.action),
            is_denied: zone.denied_by(&why.path).is_some(),
            is_search: false,
        };
        rules.first(&access, || is_owned)
    };
    ways().filter_map(of).find(|rule| rule.decide == Decide::Deny)
}

/// The outcome of an access of an agent, by the configuration alone. `Display` is a few lines.
#[derive(Debug)]
pub struct Route {
    agent: AgentId,
    /// As on the wire.
    path: Arc<str>,
    action: Action,
    /// None: the zone allows it.
    outside: Option<Outside>,
}

#[derive(Debug)]
struct Outside {
    owners: Vec<AgentId>,
    grantable: bool,
    denied_by: Option<Arc<str>>,
    /// Each way with the rule that matches; ways with the same rule are together.
    rules: Vec<(Vec<Via>, Option<AccessRule>)>,
    /// The outcome without a rule.
    on_block: String,
}

/// Finds what becomes of an access, by one way or by all; None if there is no such agent. Reads the
/// disk as zones do.
pub fn route(
    config: &Config,
    agent: &AgentId,
    path: &Path,
    action: Action,
    via: Option<Via>,
) -> anyhow::Result<Option<Route>> {
    let Some(agent) = config.agents.iter().find(|one| one.id == *agent) else { return Ok(None) };
    let zone = Zone::compile(&agent.zone.spec).context("the zone")?;
    let rules = rules(config)?;
    let id = agent.id.clone();
    let Err(denied) = zone.check(&config.team.workspace.join(path), action) else {
        let path = wire_path(zone.workspace(), zone.workspace(), path);
        return Ok(Some(Route { agent: id, path: path.into(), action, outside: None }));
    };
    let denied_by = zone.denied_by(&denied.path);
    let owners = config.owners(&denied.path);
    let is_owned = owners.iter().any(|owner| *owner != id);
    let mut found: Vec<(Vec<Via>, Option<AccessRule>)> = Vec::new();
    for via in via.map_or_else(|| ways().collect(), |via| vec![via]) {
        let access = RuledAccess {
            agent: &id,
            path: &denied.path,
            via,
            action,
            grantable: denied.grantable,
            is_denied: denied_by.is_some(),
            is_search: false,
        };
        let rule = rules.first(&access, || is_owned);
        match found.iter_mut().find(|(_, known)| *known == rule) {
            Some((ways, _)) => ways.push(via),
            None => found.push((vec![via], rule)),
        }
    }
    let on_block = match agent.on_block.unwrap_or(config.orchestrator.on_block) {
        OnBlock::Deny => "it is denied at once (`on_block`)".to_owned(),
        OnBlock::Hold => {
            let most = config.orchestrator.holds_for();
            let most = most.map_or_else(String::new, |it| format!(" up to {} s", it.as_secs()));
            format!("it is held{most} for {} (`on_block`)", decider(config))
        }
    };
    let outside =
        Outside { owners, grantable: denied.grantable, denied_by, rules: found, on_block };
    Ok(Some(Route { agent: id, path: denied.path, action, outside: Some(outside) }))
}

fn decider(config: &Config) -> String {
    let agent = config.orchestrator.agent.as_ref();
    agent.map_or_else(|| "a client of the port".to_owned(), |agent| format!("`{agent}`"))
}

impl Route {
    /// One object, for programs.
    pub fn json(&self) -> Value {
        let Some(outside) = &self.outside else {
            return json!({
                "agent": self.agent.as_str(),
                "path": self.path,
                "action": self.action.as_str(),
                "inside": true,
            });
        };
        let rules = outside.rules.iter().map(|(ways, rule)| {
            json!({
                "via": ways.iter().map(|via| via.as_str()).collect::<Vec<_>>(),
                "rule": rule.map(|rule| rule.number),
                "decide": rule.map(|rule| rule.decide.as_str()),
                "outcome": outside.outcome(ways, *rule),
            })
        });
        json!({
            "agent": self.agent.as_str(),
            "path": self.path,
            "action": self.action.as_str(),
            "inside": false,
            "owners": outside.owners.iter().map(AgentId::as_str).collect::<Vec<_>>(),
            "denied_by": outside.denied_by,
            "grantable": outside.grantable,
            "rules": rules.collect::<Vec<_>>(),
        })
    }
}

impl Outside {
    fn outcome(&self, ways: &[Via], rule: Option<AccessRule>) -> String {
        if ways == [Via::Tool] && rule.is_none_or(|rule| rule.decide != Decide::Allow) {
            return "it is reported after the fact".to_owned();
        }
        if !self.grantable {
            return "it is denied at once: it cannot be opened to any agent".to_owned();
        }
        let Some(rule) = rule else { return self.on_block.clone() };
        match rule.decide {
            Decide::Allow => "it is allowed".to_owned(),
            Decide::Deny => "it is denied at once, and only a person can open it".to_owned(),
            Decide::Orchestrator => "it is held for the orchestrator".to_owned(),
            Decide::Owner => "its owner is asked, and its answer is given".to_owned(),
            Decide::Person => "it waits for a person, and no agent decides it".to_owned(),
        }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} by {}", self.path, self.action, self.agent)?;
        let Some(outside) = &self.outside else {
            return writeln!(f, "  zone     allows it: no rule is looked at");
        };
        match &outside.denied_by {
            Some(pattern) => writeln!(f, "  zone     denies it, by `{pattern}` in `denied`")?,
            None => writeln!(f, "  zone     denies it; `eisen-core why` says more")?,
        }
        if !outside.owners.is_empty() {
            let owners: Vec<_> = outside.owners.iter().map(AgentId::as_str).collect();
            writeln!(f, "  owners   {}", owners.join(", "))?;
        }
        for (ways, rule) in &outside.rules {
            let number = rule.map_or("no rule".to_owned(), |rule| format!("rule {}", rule.number));
            let only = if outside.rules.len() > 1 {
                let ways: Vec<_> = ways.iter().map(|via| via.as_str()).collect();
                format!(" (via {})", ways.join(", "))
            } else {
                String::new()
            };
            let outcome = outside.outcome(ways, *rule);
            writeln!(f, "  {number:<8} {outcome}{only}")?;
        }
        Ok(())
    }
}
