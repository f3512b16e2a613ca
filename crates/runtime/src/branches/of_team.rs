//! The worktrees of a team's agents: made ready before these start, and held as long as the team has them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use futures_util::future::join_all;
use tokio::sync::watch;

use super::given::{Whose, given};
use super::{Given, repository_of, set_up};
use crate::config::{Agent, Config};
use crate::home::environment;
use crate::model::AgentId;
use crate::program::Failure;
use crate::repository::GitRepository;
use crate::team_file::load::hold_to_own_part;
use crate::tree::{Worktree, WorktreeState, Worktrees, branch_of_task, default_folder};
use crate::zone::GitAccess;

/// Letters of a task that are kept.
const LONGEST_TASK: usize = 4 << 10;

/// The worktrees of a team's agents, by their branches. Nobody else works in them meanwhile; cheap to clone.
#[derive(Clone, Default, Debug)]
pub(crate) struct TeamTrees {
    known: Arc<Mutex<BTreeMap<String, (AgentId, Given)>>>,
    /// Whether there was ever one.
    begun: watch::Sender<bool>,
}

impl TeamTrees {
    /// Makes the worktrees that agents of a configuration lack, and runs the `setup` of each. `said` gets lines for
    /// the person.
    pub(crate) async fn make(&self, config: &Config, said: fn(&str)) -> anyhow::Result<()> {
        let lacking: Vec<_> = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let has = |agent: &&Agent| {
                agent.worktree.as_ref().is_some_and(|own| !known.contains_key(&own.branch))
            };
            config.agents.iter().filter(has).cloned().collect()
        };
        if lacking.is_empty() {
            return Ok(());
        }
        let config = config.clone();
        let give = move || give_all(&config, &lacking);
        let given = tokio::task::spawn_blocking(give).await??;
        let ready = given.into_iter().map(|(agent, mut given)| async move {
            for note in &given.notes {
                said(&format!("{agent}: {note}"));
            }
            let mut tell = |line: &str| said(&format!("{agent}: {line}"));
            let done = set_up(&mut given, &mut tell).await;
            done.map_err(|failure| failure.into_error().context(of(&agent)))?;
            anyhow::Ok((agent, given))
        });
        let ready: Vec<_> = join_all(ready).await.into_iter().collect::<anyhow::Result<_>>()?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        self.begun.send_replace(true);
        known.extend(ready.into_iter().map(|(agent, given)| {
            let branch = given.held.tree.branch.clone();
            (branch, (agent, given))
        }));
        Ok(())
    }

    /// Moves agents to their worktrees, and helpers to those of their parents; keeps all others out of these.
    pub(crate) fn place(&self, config: &mut Config) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        place(config, &|branch| known.get(branch).map(|(_, given)| given.held.tree.clone()));
    }

    /// The agent that a branch was made for.
    pub(crate) fn agent_on(&self, branch: &str) -> Option<AgentId> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(branch).map(|(agent, _)| agent.clone())
    }

    /// Notes the first prompt of an agent as the task of its branch.
    pub(super) fn note_task(&self, agent: &AgentId, task: &str) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let own = known.values_mut().find(|(of, _)| of == agent);
        let Some((_, given)) = own.filter(|(_, given)| given.held.tree.task.is_none()) else {
            return;
        };
        given.held.tree.task = Some(task.chars().take(LONGEST_TASK).collect());
        if let Err(error) = given.held.keep() {
            tracing::warn!(%agent, %error, "cannot keep the task of a branch");
        }
    }

    /// The folder that an agent works in.
    pub(crate) fn workspace_of(&self, config: &Config, agent: &AgentId) -> PathBuf {
        let workspace = &config.team.workspace;
        let branch = branches(config).remove(agent);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let given = branch.and_then(|branch| known.get(&branch));
        given.map_or_else(|| workspace.clone(), |(_, given)| inside(&given.held.tree, workspace))
    }

    /// Waits for the first one.
    pub(super) async fn begun(&self) {
        let _ = self.begun.subscribe().wait_for(|begun| *begun).await;
    }

    /// The worktrees, each with the agent that it was made for.
    pub(super) fn all(&self) -> Vec<(AgentId, Worktree)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().map(|(agent, given)| (agent.clone(), given.held.tree.clone())).collect()
    }

    /// Lets go of the worktrees that no agent has any more.
    pub(crate) fn keep_those_of(&self, config: &Config) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|branch, _| {
            let mut own = config.agents.iter().filter_map(|agent| agent.worktree.as_ref());
            own.any(|own| own.branch == *branch)
        });
    }
}

/// Moves the agents of a configuration to the worktrees that they have already.
pub fn placed(config: &mut Config) {
    if config.agents.iter().all(|agent| agent.worktree.is_none()) {
        return;
    }
    let Ok(repository) = GitRepository::find(&config.team.workspace) else { return };
    let Ok(eisen_dir) = environment::eisen_dir() else { return };
    let known = Worktrees::new(&eisen_dir).of(&repository);
    let is_ready = |tree: &&Worktree| tree.state == WorktreeState::Ready;
    let find = |branch: &str| known.iter().filter(is_ready).find(|it| it.branch == branch).cloned();
    place(config, &find);
}

fn place(config: &mut Config, tree_of: &dyn Fn(&str) -> Option<Worktree>) {
    let branches = branches(config);
    let trees: BTreeMap<_, _> =
        branches.values().filter_map(|branch| Some((branch.clone(), tree_of(branch)?))).collect();
    let workspace = config.team.workspace.clone();
    let beside: BTreeSet<_> = trees
        .values()
        .flat_map(|tree| default_folder(&tree.repository()).into_iter().chain([tree.path.clone()]))
        .collect();
    for agent in &mut config.agents {
        let branch = branches.get(&agent.id);
        let Some(tree) = branch.and_then(|branch| trees.get(branch)) else {
            agent.zone.spec.beside.extend(beside.iter().cloned());
            continue;
        };
        let to = inside(tree, &workspace);
        agent.move_workspace(&workspace, &to);
        let spec = &mut agent.zone.spec;
        let sealed = spec.sealed.iter().filter_map(|file| file.strip_prefix(&workspace).ok());
        let moved: Vec<_> = sealed.map(|file| to.join(file)).collect();
        spec.sealed.extend(moved);
        if spec.git == GitAccess::Read {
            // Its branch is there to be committed to.
            spec.git = GitAccess::Commit;
        }
        hold_to_own_part(spec, tree);
        for (name, value) in tree.variables() {
            agent.env.entry(name).or_insert(value);
        }
    }
}

/// The folder in a worktree that the team's workspace is in the main one.
fn inside(tree: &Worktree, workspace: &Path) -> PathBuf {
    let inside = tree.main.as_ref().and_then(|main| workspace.strip_prefix(main).ok());
    tree.path.join(inside.unwrap_or(Path::new("")))
}

/// Whether a branch is new, or one that a team made for its agents.
pub(crate) fn is_free_for(workspace: &Path, team: &str, branch: &str) -> Result<bool, Failure> {
    let (repository, trees) = repository_of(workspace)?;
    let known = trees.of_branch(&repository, branch);
    let is_own = |tree: Worktree| tree.owner.split_once('/').is_some_and(|(of, _)| of == team);
    Ok(known.map_or_else(|| repository.tip(branch).is_none(), is_own))
}

/// A name of a new branch, made from a task.
pub(crate) fn named_by(workspace: &Path, task: &str) -> Result<String, Failure> {
    let (repository, _) = repository_of(workspace)?;
    Ok(branch_of_task(&repository, task))
}

/// The branch of the worktree that each agent works in.
fn branches(config: &Config) -> HashMap<AgentId, String> {
    let of = |agent: &Agent| {
        let parent = |agent: &&Agent| config.agent(agent.parent.as_ref()?);
        let mut above = std::iter::successors(Some(agent), parent).take(config.agents.len());
        Some((agent.id.clone(), above.find_map(|agent| agent.worktree.as_ref())?.branch.clone()))
    };
    config.agents.iter().filter_map(of).collect()
}

fn give_all(config: &Config, agents: &[Agent]) -> anyhow::Result<Vec<(AgentId, Given)>> {
    let found = repository_of(&config.team.workspace);
    let (repository, trees) = found.map_err(Failure::into_error)?;
    let branches = branches(config);
    let mut all = Vec::new();
    for agent in agents {
        let Some(own) = &agent.worktree else { continue };
        let mut settings = own.settings.clone();
        // A helper begins where its parent is.
        let parent = agent.parent.as_ref().and_then(|parent| branches.get(parent)).cloned();
        settings.base = settings.base.or(parent);
        let settings = settings.over(&config.shared.worktree);
        let whose = Whose {
            zone: &agent.zone.spec.allowed,
            owner: format!("{}/{}", config.team.name, agent.id),
            task: agent.prompt.clone(),
        };
        let given = given(&trees, &repository, own.branch.clone(), settings, whose);
        all.push((agent.id.clone(), given.with_context(|| of(&agent.id))?));
    }
    Ok(all)
}

fn of(agent: &AgentId) -> String {
    format!("the worktree of agent `{agent}`")
}
