//! The limits of what agents start: `max_depth`, `max_agents` and `max_spawns` of `[team]`, `may_add` of
//! `[orchestrator]`, and the branches that they may work on.

use crate::branches;
use crate::config::{Agent, Config, MayAdd, Overlay, zone_pattern};
use crate::model::AgentId;
use crate::serve::{BranchBy, NewBranch, Refused, blocking};
use crate::zone::{self, GitAccess};

/// Bytes of an agent's id.
const LONGEST_ID: usize = 64;

/// The limits of a team, and what its agents have started.
pub(crate) struct StartLimits<'a> {
    pub(crate) config: &'a Config,
    pub(crate) overlay: &'a Overlay,
}

/// An agent and those above it, up to the one without a parent.
pub(crate) fn lineage(config: &Config, agent: &AgentId) -> Vec<String> {
    let parent = |agent: &AgentId| config.agent(agent)?.parent.clone();
    let above = std::iter::successors(Some(agent.clone()), parent);
    // Their parents form no circle.
    above.take(config.agents.len()).map(|agent| agent.to_string()).collect()
}

impl StartLimits<'_> {
    /// Checks that one more agent may be started by agents.
    pub(crate) fn may_spawn(&self) -> Result<(), Refused> {
        let team = &self.config.team;
        let (running, spawned) = (self.config.agents.len(), self.overlay.spawned());
        if team.max_agents > 0 && running >= team.max_agents {
            return Err(conflict(format!(
                "the team has {running} agents, and `[team] max_agents` is {}: wait until a helper has ended",
                team.max_agents
            )));
        }
        if spawned >= team.max_spawns {
            return Err(conflict(format!(
                "agents have started {spawned} agents since the team's start, and `[team] max_spawns` is {}: \
                 do the work with the agents that are there",
                team.max_spawns
            )));
        }
        Ok(())
    }

    /// Checks that `[orchestrator] may_add` covers an agent.
    pub(crate) fn may_add(&self, profile: &str, zone: &[String]) -> Result<(), Refused> {
        let Some(may_add) = &self.config.orchestrator.may_add else {
            let message = "the orchestrator may add no agents: a person can say which, by `may_add` in \
                           `[orchestrator]`";
            return Err(Refused::new(403, message));
        };
        let MayAdd { profiles, zone: widest, max } = may_add;
        if !profiles.iter().any(|known| known == profile) {
            let known = profiles.join(", ");
            let message = format!(
                "`may_add` of `[orchestrator]` does not have the profile `{profile}`; it has: {known}"
            );
            return Err(Refused::new(403, message));
        }
        let workspace = &self.config.team.workspace;
        let patterns = zone.iter().map(|pattern| zone_pattern(pattern, workspace, "`denied`"));
        let patterns: Vec<_> = patterns.collect::<Result<_, _>>().map_err(Refused::wrong)?;
        let further = zone::uncovered(widest, &patterns).map_err(Refused::wrong)?;
        if let Some(further) = further {
            let widest = widest.join(", ");
            let message = format!(
                "the zone `{further}` reaches out of `may_add` of `[orchestrator]`, which has: {widest}"
            );
            return Err(Refused::new(403, message));
        }
        let added = self.overlay.by_lead().len();
        if added >= *max {
            return Err(conflict(format!(
                "the orchestrator has added {added} agents, and may have {max}: remove one by `remove_member`"
            )));
        }
        Ok(())
    }

    /// A name for a helper, after its parent's.
    pub(crate) fn free_id(&self, parent: &AgentId) -> String {
        let number = self.overlay.spawned() + 1;
        let names = (number..).map(|number| {
            let behind = format!("-h{number}");
            let parent = parent.as_str();
            let end = parent.floor_char_boundary(LONGEST_ID - behind.len());
            format!("{}{behind}", &parent[..end])
        });
        let taken = &self.config.agents;
        let is_free = |name: &String| taken.iter().all(|agent| agent.id.as_str() != name);
        names.into_iter().find(is_free).unwrap_or_default()
    }
}

/// Checks that a helper of `parent` may work on a branch: for an agent a new one, or one that this team made. It
/// commits, which a member's helper may only where the parent may.
pub(crate) async fn may_take_branch(
    config: &Config,
    parent: &Agent,
    branch: &NewBranch,
) -> Result<(), Refused> {
    let is_in_tree = lineage(config, &parent.id).iter().any(|above| {
        let above = config.agent(&AgentId::new(above.as_str()));
        above.is_some_and(|above| above.worktree.is_some())
    });
    match (parent.zone.spec.git, branch.by) {
        (GitAccess::None, _) => {
            return Err(Refused::new(403, "the agent may not read the repository (`[zones] git`)"));
        }
        (GitAccess::Read, BranchBy::Member) if !is_in_tree => {
            return Err(Refused::new(
                403,
                "a helper with a branch commits, and you may not: `git = \"commit\"` of `[zones]` or `[agents.worktree]` would let you",
            ));
        }
        _ => {}
    }
    if branch.by == BranchBy::Person {
        return Ok(());
    }
    let (workspace, team) = (config.team.workspace.clone(), config.team.name.clone());
    let branch = branch.name.clone();
    let is_free = blocking(move || branches::is_free_for(&workspace, &team, &branch)).await?;
    if is_free.map_err(|failure| conflict(format!("{:#}", failure.error())))? {
        return Ok(());
    }
    let message =
        "the branch is not one of this team's: name a new one; a person can give an agent any";
    Err(Refused::new(403, message))
}

fn conflict(message: String) -> Refused {
    Refused::new(409, message)
}
