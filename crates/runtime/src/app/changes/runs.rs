//! Runs that agents start: each is a helper of its agent, within its zone.

use serde_json::{Value, json};

use crate::app::changes::helpers::{plain, table_of};
use crate::app::changes::{Changes, conflict, unknown, wrong};
use crate::app::{journal, members};
use crate::branches;
use crate::config::{Agent, AgentTable, zone_pattern};
use crate::failover::told::none_left;
use crate::model::AgentId;
use crate::runs::{RunId, RunSpec, RunState, RunZone};
use crate::serve::{BranchBy, NewBranch, Refused, blocking};
use crate::team_file::of_run::agent_keys;
use crate::turn::command::StartedHelper;
use crate::zone::{self, ZoneSpec};

impl Changes {
    pub(super) async fn start_run(
        &mut self,
        id: RunId,
        parent: &AgentId,
        mut spec: RunSpec,
        earlier: Option<&RunState>,
    ) -> Result<StartedHelper, Refused> {
        let Some(of) = self.current.agent(parent) else { return Err(unknown(parent)) };
        let above = members::lineage(&self.current, parent);
        let (depth, most) = (of.depth + 1, self.current.team.max_depth);
        if depth > most {
            let chain = self.conditions.runs.names(&above);
            return Err(conflict(too_deep(&chain, most)));
        }
        self.may_spawn()?;
        let (zone, further) = self.cut_zone(of, &spec.zone)?;
        let could_read = earlier.map(|earlier| self.within_zone(of, earlier)).transpose()?;
        if let Some(earlier) = earlier
            && spec.profile.is_none()
            && earlier.command != of.command
        {
            spec.command.clone_from(&earlier.command);
        }
        let agent = AgentId::new(self.free_id(parent));
        let thinking = self.choose(&agent, &mut spec)?;
        let mut table = helper(&agent, parent, &spec, &zone);
        table.extend(self.worktree(parent, &spec).await?.map(|own| ("worktree".to_owned(), own)));
        table.extend(thinking.map(|thinking| ("thinking".to_owned(), plain(&thinking).into())));
        if earlier.is_some() {
            // It opens no other one.
            table.insert("session".to_owned(), false.into());
        }
        let mut overlay = self.overlay.clone();
        overlay.add_helper(table.clone());
        // Before it starts: its environment names the run.
        let runs = self.conditions.runs.clone();
        runs.begin(id, agent.as_str(), &above).map_err(|error| conflict(error.to_string()))?;
        if let Err(refused) = self.add_by(overlay, &agent).await {
            runs.forget(id);
            return Err(refused);
        }
        journal::spawned(self.journal(), parent, depth, &table);
        let started = self.current.agent(&agent);
        let without = started.map(|agent| agent.without.clone()).unwrap_or_default();
        if let Some(started) = started {
            let zone = self.zone_of(started);
            let zone = could_read.iter().fold(zone, RunZone::and);
            self.conditions.runs.note_zone(id, zone);
        }
        Ok(StartedHelper {
            command: started.map(|agent| agent.command.clone()).unwrap_or_default(),
            profile: spec.profile.or_else(|| Some(started?.candidate.as_ref()?.profile.clone())),
            model: started.and_then(|agent| agent.model.clone()),
            parent: runs.name(&above),
            workspace: self.conditions.trees.workspace_of(&self.current, &agent),
            agent,
            depth,
            zone,
            further,
            without,
        })
    }

    /// The table of the worktree that a run asks for.
    async fn worktree(&self, parent: &AgentId, spec: &RunSpec) -> Result<Option<Value>, Refused> {
        let branch = match &spec.branch {
            Some(branch) => branch.clone(),
            None if spec.worktree => {
                let (workspace, task) = (self.current.team.workspace.clone(), spec.task.clone());
                let named = blocking(move || branches::named_by(&workspace, &task)).await?;
                named.map_err(|failure| conflict(format!("{:#}", failure.error())))?
            }
            None => return Ok(None),
        };
        let branch = NewBranch { name: branch, by: BranchBy::Member };
        self.may_take_branch(parent, &branch).await?;
        let mut table = table_of(json!({ "branch": plain(&branch.name) }));
        table.extend(spec.base.as_deref().map(|base| ("base".to_owned(), plain(base).into())));
        Ok(Some(table.into()))
    }

    /// Looks for a candidate of the tier that a run names. One without failover keeps it: returns how much it
    /// thinks.
    fn choose(&self, agent: &AgentId, spec: &mut RunSpec) -> Result<Option<String>, Refused> {
        let Some(name) = &spec.tier else { return Ok(None) };
        let shared = &self.current.shared;
        let Some(tier) = shared.tier(name) else {
            let known: Vec<_> = shared.tiers.iter().map(|tier| &*tier.name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(wrong(&format!("there is no tier `{name}`; there are: {known}")));
        };
        let (next, skipped) = self.next(agent, tier);
        let Some(next) = next else {
            return Err(conflict(none_left(name, &skipped.iter().collect::<Vec<_>>())));
        };
        if !spec.no_failover {
            return Ok(None);
        }
        (spec.profile, spec.model) = (Some(next.profile), next.model);
        Ok(next.thinking)
    }

    /// The paths that an earlier run could read, if all of them are within an agent's zone. The run's session
    /// has contents of them.
    fn within_zone(&self, of: &Agent, earlier: &RunState) -> Result<RunZone, Refused> {
        let refused = |what: &str| {
            Refused::new(
                403,
                format!(
                    "the run {} {what}: its session is not for runs of `{}`",
                    earlier.id, of.id
                ),
            )
        };
        let Some(zone) = self.conditions.runs.zone_of(&earlier.id) else {
            return Err(refused("had a zone that is not known any more"));
        };
        match reaches_out(&self.zone_of(of), &zone) {
            Some(pattern) => {
                Err(refused(&format!("could read more than that agent may (`{pattern}`)")))
            }
            None => Ok(zone),
        }
    }

    fn zone_of(&self, agent: &Agent) -> RunZone {
        readable(&agent.zone.spec, self.conditions.observes(agent))
    }

    /// The patterns that are within an agent's zone, and the patterns that reach further.
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
        let patterns = asked.iter().map(|pattern| zone_pattern(pattern, workspace, "`denied`"));
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

/// The paths that an agent may read: while it is observed, all of the workspace that is not denied.
fn readable(spec: &ZoneSpec, is_observed: bool) -> RunZone {
    let mut reads = [&spec.allowed[..], &spec.shared, &spec.readable].concat();
    if is_observed {
        reads.push("**".to_owned());
    }
    RunZone { reads, denied: spec.denied.clone() }
}

/// A pattern by which `other` could read more; None if there is none.
fn reaches_out(own: &RunZone, other: &RunZone) -> Option<String> {
    let new: Vec<_> = other.reads.iter().filter(|it| !own.reads.contains(it)).cloned().collect();
    let further = match zone::uncovered(&own.reads, &new) {
        Ok(further) => further.map(str::to_owned),
        Err(error) => Some(error.to_string()),
    };
    further.or_else(|| own.denied.iter().find(|it| !other.denied.contains(it)).cloned())
}

/// The table of the helper that works on a run. Without zone and patterns that are denied it has its parent's.
fn helper(agent: &AgentId, parent: &AgentId, spec: &RunSpec, zone: &[String]) -> AgentTable {
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

fn too_deep(chain: &[String], most: u32) -> String {
    let names = chain.iter().enumerate();
    let names =
        names.map(|(at, name)| if at == 0 { format!("{name} (you)") } else { name.clone() });
    let names = names.collect::<Vec<_>>().join(" ← ");
    format!("too deep: {names}; `[team] max_depth` is {most}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_deep_names_the_chain() {
        let chain = ["01M8A", "01M89", "cart-team/worker"].map(str::to_owned);
        let told = "too deep: 01M8A (you) ← 01M89 ← cart-team/worker; `[team] max_depth` is 2";
        assert_eq!(too_deep(&chain, 2), told);
    }

    #[test]
    fn a_session_is_not_for_one_that_may_read_less() {
        let zone = |reads: &[&str], denied: &[&str]| RunZone {
            reads: reads.iter().map(|it| (*it).to_owned()).collect(),
            denied: denied.iter().map(|it| (*it).to_owned()).collect(),
        };
        let own = zone(&["src/**", "docs/*.md"], &["**/.env"]);
        let further = |other: &RunZone| reaches_out(&own, other);
        assert_eq!(further(&own), None);
        assert_eq!(further(&zone(&["src/ui/**"], &["**/.env", "src/x"])), None);
        assert_eq!(further(&zone(&["src/**", "lib/**"], &["**/.env"])).as_deref(), Some("lib/**"));
        assert_eq!(further(&zone(&["src/**"], &[])).as_deref(), Some("**/.env"));
        // Whoever goes on with a session has what was read in it before.
        let narrow =
            zone(&["src/ui/**"], &["**/.env", "src/x"]).and(&zone(&["lib/**"], &["src/x"]));
        assert_eq!(narrow, zone(&["src/ui/**", "lib/**"], &["src/x"]));
    }

    #[test]
    fn a_run_of_an_observed_agent_could_read_all() {
        let spec = ZoneSpec {
            git: zone::GitAccess::Read,
            ..ZoneSpec::new("/w", vec!["src/**".to_owned()], "/e")
        };
        let [observed, bound] = [true, false].map(|is_observed| readable(&spec, is_observed));
        assert_eq!(reaches_out(&bound, &observed).as_deref(), Some("**"));
        assert_eq!(reaches_out(&observed, &observed), None);
        assert_eq!(reaches_out(&observed, &bound), None);
    }

    #[test]
    fn a_helper_of_a_run_names_no_variable_of_the_supervisor() {
        let mut spec = RunSpec::default();
        let own = ["src/**".to_owned()];
        let (agent, parent) = (AgentId::new("ui-h1"), AgentId::new("ui"));
        let table = |spec: &RunSpec| {
            serde_json::Value::from(helper(&agent, &parent, spec, &own)).to_string()
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
