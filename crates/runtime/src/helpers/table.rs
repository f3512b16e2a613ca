//! The tables of helpers, as they are laid over the configuration.

use serde_json::{Value, json};

use crate::config::AgentTable;
use crate::model::AgentId;
use crate::runs::RunSpec;
use crate::team_file::of_run::agent_keys;

pub(crate) fn table_of(table: Value) -> AgentTable {
    match table {
        Value::Object(table) => table,
        _ => AgentTable::new(),
    }
}

/// A text that names no variable: those of this process are not an agent's to read.
pub(crate) fn plain(text: &str) -> String {
    text.replace('$', "$$")
}

/// The table of the helper that works on a run. Without zone and patterns that are denied it has its parent's.
pub(crate) fn helper_of_run(
    agent: &AgentId,
    parent: &AgentId,
    spec: &RunSpec,
    zone: &[String],
) -> AgentTable {
    let has_zone = !spec.zone.is_empty() || !spec.deny.is_empty();
    let mut table = table_of(json!({
        "id": agent.as_str(),
        "parent": parent.as_str(),
        "restart": { "policy": "never" },
    }));
    table.extend(agent_keys(spec, has_zone.then_some(zone)));
    // Without failover its candidate has been chosen.
    if let Some(tier) = spec.tier.as_ref().filter(|_| !spec.no_failover) {
        table.insert("tier".to_owned(), plain(tier).into());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helper_of_a_run_names_no_variable_of_the_supervisor() {
        let mut spec = RunSpec::default();
        let own = ["src/**".to_owned()];
        let (agent, parent) = (AgentId::new("ui-h1"), AgentId::new("ui"));
        let table = |spec: &RunSpec| {
            serde_json::Value::from(helper_of_run(&agent, &parent, spec, &own)).to_string()
        };
        // What is left out is the parent's.
        let bare = r#"{"id":"ui-h1","parent":"ui","restart":{"policy":"never"}}"#;
        assert_eq!(table(&spec), bare);
        spec.deny = vec!["${HOME}/x".to_owned()];
        spec.command = vec!["sh".to_owned(), "-c".to_owned(), "echo ${KEY} $$".to_owned()];
        let written = table(&spec);
        for part in ["$${HOME}/x", "echo $${KEY} $$$$", r#""allowed":["src/**"]"#] {
            assert!(written.contains(part), "{written}");
        }
    }
}
