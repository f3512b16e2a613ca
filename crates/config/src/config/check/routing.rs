//! Rules of `[[routing]]` that never match.

use crate::config::{Agent, Config};
use crate::model::{Action, AgentId, Decide, RuleSpec, Via};
use crate::zone::uncovered;

/// Returns a sentence for each rule that never matches.
pub(super) fn warnings(config: &Config) -> Vec<String> {
    let agents: Vec<Vec<AgentId>> = config.routing.iter().map(|it| config.agents_of(it)).collect();
    let mut warnings = Vec::new();
    let implied = config.zones.secrets.rule();
    for (at, rule) in config.routing.iter().enumerate() {
        if Some(rule) == implied.as_ref() {
            continue;
        }
        let before = config.routing.iter().zip(&agents).take(at);
        let covers = |(earlier, of): (&RuleSpec, &Vec<AgentId>)| {
            takes_all(earlier.decide, rule.decide)
                && within(of, &agents[at])
                && within(&earlier.via, &rule.via)
                && earlier.action.is_none_or(|action| rule.action == Some(action))
                && paths_within(&earlier.paths, &rule.paths)
        };
        let why = if rule.decide == Decide::Owner && rule.action == Some(Action::Write) {
            Some("an owner is asked about what is read alone".to_owned())
        } else if let Some(by) = before.map(covers).position(|covers| covers) {
            Some(format!("rule {} matches all of it", by + 1))
        } else if !rule.via.contains(&Via::Tool) && is_inside(config, rule, &agents[at]) {
            Some("its agents have all of it in their zones".to_owned())
        } else {
            None
        };
        let number = at + 1;
        warnings
            .extend(why.map(|why| format!("rule {number} of [[routing]] never matches: {why}")));
    }
    warnings
}

/// Whether a rule leaves nothing for a later one that otherwise matches less. What is denied, or has
/// no owner, is passed on by some.
fn takes_all(earlier: Decide, later: Decide) -> bool {
    match earlier {
        Decide::Deny | Decide::Orchestrator | Decide::Person => true,
        Decide::Allow => matches!(later, Decide::Allow | Decide::Owner),
        Decide::Owner => later == Decide::Owner,
    }
}

/// Whether a list has all of another one; an empty one stands for all.
fn within<T: PartialEq>(wide: &[T], narrow: &[T]) -> bool {
    wide.is_empty() || !narrow.is_empty() && narrow.iter().all(|one| wide.contains(one))
}

fn paths_within(wide: &[String], narrow: &[String]) -> bool {
    wide.is_empty() || !narrow.is_empty() && matches!(uncovered(wide, narrow), Ok(None))
}

/// Whether all that a rule matches is in the zones of its agents.
fn is_inside(config: &Config, rule: &RuleSpec, of: &[AgentId]) -> bool {
    let is_its = |agent: &&Agent| of.is_empty() || of.contains(&agent.id);
    let inside = |agent: &Agent| {
        let spec = &agent.zone.spec;
        let mut granted = [spec.allowed.clone(), spec.shared.clone()].concat();
        if rule.action == Some(Action::Read) {
            granted.extend(spec.readable.iter().cloned());
        }
        spec.denied.is_empty() && !rule.paths.is_empty() && paths_within(&granted, &rule.paths)
    };
    config.agents.iter().filter(is_its).all(inside) && config.agents.iter().any(|it| is_its(&it))
}
