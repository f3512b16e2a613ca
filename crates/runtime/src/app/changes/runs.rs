//! Runs that agents start: each is a helper of its agent, within its zone.

use serde_json::{Value, json};

use crate::app::changes::{Changes, conflict, unknown};
use crate::app::journal;
use crate::branches;
use crate::config::Agent;
use crate::failover::told::none_left;
use crate::helpers::{
    cut_zone, helper_of_run, lineage, may_take_branch, plain, reaches_out, readable, table_of,
};
use crate::model::AgentId;
use crate::runs::{RunId, RunSpec, RunState, RunZone};
use crate::serve::{BranchBy, NewBranch, Refused, blocking};
use crate::turn::command::StartedHelper;

impl Changes {
    pub(super) async fn start_run(
        &mut self,
        id: RunId,
        parent: &AgentId,
        mut spec: RunSpec,
        earlier: Option<&RunState>,
    ) -> Result<StartedHelper, Refused> {
        let Some(of) = self.current.agent(parent) else { return Err(unknown(parent)) };
        let above = lineage(&self.current, parent);
        let (depth, most) = (of.depth + 1, self.current.team.max_depth);
        if depth > most {
            let chain = self.conditions.runs.names(&above);
            return Err(conflict(too_deep(&chain, most)));
        }
        self.limits().may_spawn()?;
        let (zone, further) = cut_zone(&self.current.team.workspace, of, &spec.zone)?;
        let could_read = earlier.map(|earlier| self.within_zone(of, earlier)).transpose()?;
        if let Some(earlier) = earlier
            && spec.profile.is_none()
            && earlier.command != of.command
        {
            spec.command.clone_from(&earlier.command);
        }
        let agent = AgentId::new(self.limits().free_id(parent));
        let thinking = self.choose(&agent, &mut spec)?;
        let mut table = helper_of_run(&agent, parent, &spec, &zone);
        table.extend(self.worktree(of, &spec).await?.map(|own| ("worktree".to_owned(), own)));
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
    async fn worktree(&self, parent: &Agent, spec: &RunSpec) -> Result<Option<Value>, Refused> {
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
        may_take_branch(&self.current, parent, &branch).await?;
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
            return Err(Refused::wrong(format!("there is no tier `{name}`; there are: {known}")));
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
}
