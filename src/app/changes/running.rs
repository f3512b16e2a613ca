//! Runs that agents start: each is a helper of its agent, within its zone.

use serde_json::{Value, json};

use super::spawning::table_of;
use super::started::StartedHelper;
use super::{Changes, conflict, unknown, wrong};
use crate::app::{journaling, members};
use crate::config::{Agent, zone_pattern};
use crate::model::AgentId;
use crate::runs::RunId;
use crate::serve::{NewRun, Refused};
use crate::zone;

impl Changes {
    pub(super) async fn start_run(
        &mut self,
        id: RunId,
        new: &NewRun,
    ) -> Result<StartedHelper, Refused> {
        let Some(of) = self.current.agent(&new.parent) else { return Err(unknown(&new.parent)) };
        let above = members::lineage(&self.current, &new.parent);
        let (depth, most) = (of.depth + 1, self.current.team.max_depth);
        if depth > most {
            let chain = self.conditions.runs.names(&above);
            return Err(conflict(too_deep(&chain, most)));
        }
        self.may_spawn()?;
        let (zone, further) = self.cut_zone(of, &new.zone)?;
        let agent = AgentId::new(self.free_id(&new.parent));
        let table = table_of(helper(&agent, new, &zone));
        let mut overlay = self.overlay.clone();
        overlay.add_helper(table.clone());
        // Before it starts: its environment names the run.
        let runs = self.conditions.runs.clone();
        runs.begin(id, agent.as_str(), &above).map_err(|error| conflict(error.to_string()))?;
        if let Err(refused) = self.add_by(overlay, &agent).await {
            runs.forget(id);
            return Err(refused);
        }
        journaling::spawned(self.journal(), &new.parent, depth, &table);
        let started = self.current.agent(&agent);
        Ok(StartedHelper {
            command: started.map(|agent| agent.command.clone()).unwrap_or_default(),
            model: started.and_then(|agent| agent.model.clone()),
            parent: runs.name(&above),
            workspace: self.current.team.workspace.clone(),
            agent,
            depth,
            zone,
            further,
        })
    }

    /// What of the patterns is within an agent's zone, and which of them reach further.
    fn cut_zone(
        &self,
        of: &Agent,
        asked: &[String],
    ) -> Result<(Vec<String>, Vec<String>), Refused> {
        let own = &of.zone.spec.allowed;
        if asked.is_empty() {
            return Ok((own.clone(), Vec::new()));
        }
        let workspace = &self.current.team.workspace;
        let patterns = asked.iter().map(|pattern| zone_pattern(pattern, workspace));
        let patterns: Vec<_> = patterns.collect::<Result<_, _>>().map_err(|error| wrong(&error))?;
        let (kept, further) = zone::cut(own, &patterns).map_err(|error| wrong(&error))?;
        if kept.is_empty() {
            return Err(wrong(&format!(
                "nothing of the zone {} is within the zone of `{}`, which has: {}",
                further.join(", "),
                of.id,
                own.join(", ")
            )));
        }
        Ok((kept, further))
    }
}

/// The table of the helper that works on a run.
fn helper(agent: &AgentId, new: &NewRun, zone: &[String]) -> Value {
    let denied: Vec<_> = new.denied.iter().map(|pattern| plain(pattern)).collect();
    let mut table = json!({
        "id": agent.as_str(),
        "parent": new.parent.as_str(),
        "restart": { "policy": "never" },
    });
    if !new.zone.is_empty() || !denied.is_empty() {
        let zone: Vec<_> = zone.iter().map(|pattern| plain(pattern)).collect();
        table["zone"] = json!({ "allowed": zone, "denied": denied });
    }
    if let Some(profile) = &new.profile {
        table["profile"] = plain(profile).into();
    }
    if let Some(model) = &new.model {
        table["model"] = plain(model).into();
    }
    if !new.command.is_empty() {
        table["command"] = new.command.iter().map(|word| plain(word)).collect();
    }
    if !new.budget.is_empty() {
        table["budget"] = new.budget.clone().into();
    }
    table
}

/// A text that names no variable: those of this process are not an agent's to read.
fn plain(text: &str) -> String {
    text.replace('$', "$$")
}

fn too_deep(chain: &[String], most: u32) -> String {
    let names = chain.iter().enumerate();
    let names =
        names.map(|(at, name)| if at == 0 { format!("{name} (you)") } else { name.clone() });
    let names = names.collect::<Vec<_>>().join(" ← ");
    format!("too deep: {names}; `[team] max_depth` is {most}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Map;

    use super::*;
    use crate::serve::RunAsks;

    #[test]
    fn what_is_too_deep_names_the_chain() {
        let chain = ["01M8A", "01M89", "cart-team/worker"].map(str::to_owned);
        let told = "too deep: 01M8A (you) ← 01M89 ← cart-team/worker; `[team] max_depth` is 2";
        assert_eq!(too_deep(&chain, 2), told);
    }

    #[test]
    fn a_helper_of_a_run_names_no_variable_of_the_supervisor() {
        let mut new = NewRun {
            parent: AgentId::new("ui"),
            task: "x".to_owned(),
            zone: Vec::new(),
            denied: Vec::new(),
            profile: None,
            command: Vec::new(),
            model: None,
            budget: Map::new(),
            timeout: Some(Duration::from_secs(1)),
            asks: RunAsks::default(),
        };
        let own = ["src/**".to_owned()];
        let table = |new: &NewRun| helper(&AgentId::new("ui-h1"), new, &own).to_string();
        // What is left out is the parent's.
        let bare = r#"{"id":"ui-h1","parent":"ui","restart":{"policy":"never"}}"#;
        assert_eq!(table(&new), bare);
        new.denied = vec!["${HOME}/x".to_owned()];
        new.command = vec!["sh".to_owned(), "-c".to_owned(), "echo ${KEY} $$".to_owned()];
        let written = table(&new);
        for part in ["$${HOME}/x", "echo $${KEY} $$$$", r#""allowed":["src/**"]"#] {
            assert!(written.contains(part), "{written}");
        }
    }
}
