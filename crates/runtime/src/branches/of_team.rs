//! The worktrees of a team's agents: made ready before these start, and held as long as the team has them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use eisen_base::task;
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
        let mut taken = BTreeSet::new();
        let own = config.agents.iter().filter_map(|agent| agent.worktree.as_ref());
        for branch in own.map(|own| &own.branch) {
            if !taken.insert(branch) {
                anyhow::bail!(
                    "two agents would have the branch `{branch}`: stop the one that has it"
                );
            }
        }
        let lacking: Vec<_> = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            for agent in &config.agents {
                let branch = agent.worktree.as_ref().map(|own| &own.branch);
                if let Some((of, _)) = branch.and_then(|branch| known.get_mut(branch)) {
                    of.clone_from(&agent.id);
                }
            }
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
        let given = task::spawn_blocking(give).await??;
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
    pub(crate) fn place(&self, config: &mut Config) -> anyhow::Result<()> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let left =
            place(config, &|branch| known.get(branch).map(|(_, given)| given.held.tree.clone()));
        match &left[..] {
            [] => Ok(()),
            // Never in the main worktree in its place.
            [agent, ..] => anyhow::bail!("{} is not ready", of(agent)),
        }
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
        let own = given.and_then(|(_, given)| inside(&given.held.tree, workspace));
        own.unwrap_or_else(|| workspace.clone())
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
    let _ = place(config, &find);
}

/// Returns the agents that have a branch and could not be moved.
fn place(config: &mut Config, tree_of: &dyn Fn(&str) -> Option<Worktree>) -> Vec<AgentId> {
    let branches = branches(config);
    let trees: BTreeMap<_, _> =
        branches.values().filter_map(|branch| Some((branch.clone(), tree_of(branch)?))).collect();
    let workspace = config.team.workspace.clone();
    let beside: BTreeSet<_> = trees
        .values()
        .flat_map(|tree| default_folder(&tree.repository()).into_iter().chain([tree.path.clone()]))
        .collect();
    let mut left = Vec::new();
    for agent in &mut config.agents {
        let Some(branch) = branches.get(&agent.id) else {
            agent.zone.spec.beside.extend(beside.iter().cloned());
            continue;
        };
        let tree = trees.get(branch).and_then(|tree| Some((tree, inside(tree, &workspace)?)));
        let Some((tree, to)) = tree else {
            left.push(agent.id.clone());
            continue;
        };
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
        // What git ignores is said further up, too.
        for folder in to.ancestors().skip(1).take_while(|folder| folder.starts_with(&tree.path)) {
            let named = [".gitignore", ".gitattributes"].map(|name| folder.join(name));
            spec.readable.extend(named.map(|it| globset::escape(&it.to_string_lossy())));
        }
        for (name, value) in tree.variables() {
            agent.env.entry(name).or_insert(value);
        }
    }
    left
}

/// The folder in a worktree that the workspace is in its own: the main one, or another. None: it is in none.
fn inside(tree: &Worktree, workspace: &Path) -> Option<PathBuf> {
    let all = tree.main.iter().cloned().chain(tree.beside()).chain([tree.path.clone()]);
    let around = all.filter(|top| workspace.starts_with(top) && top.join(".git").exists());
    let around = around.max_by_key(|top| top.as_os_str().len())?;
    Some(tree.path.join(workspace.strip_prefix(around).ok()?))
}

/// Whether a branch is new, or one that a team made for its agents.
pub(crate) fn is_free_for(workspace: &Path, team: &str, branch: &str) -> Result<bool, Failure> {
    let (repository, trees) = repository_of(workspace)?;
    let known = trees.of_branch(&repository, branch);
    let is_own = |tree: Worktree| {
        tree.made_branch && tree.owner.split_once('/').is_some_and(|(of, _)| of == team)
    };
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
        let (mut settings, mut note) = (own.settings.clone(), None);
        // A helper begins where its parent is, and gets what that got.
        let parent = agent.parent.as_ref();
        let of_parent = parent.and_then(|parent| branches.get(parent)).cloned();
        let around = || Some(trees.around(&config.team.workspace)?.branch);
        settings.base = settings.base.or(of_parent).or_else(around);
        if let Some(above) = parent.and_then(|it| config.agent(it)?.worktree.as_ref()) {
            settings = settings.over(&above.settings);
        }
        let mut settings = settings.over(&config.shared.worktree);
        if agent.is_asked_for && settings.setup.take().is_some() {
            // It would run what agents wrote, in a wider zone than theirs.
            note = Some("`setup` does not run where an agent asks for the branch".to_owned());
        }
        let around = trees.around(&config.team.workspace).map(|tree| tree.path);
        let around = around.or_else(|| repository.main().map(Path::to_owned));
        let inside =
            around.and_then(|top| config.team.workspace.strip_prefix(top).ok().map(Path::to_owned));
        let above = inside.filter(|inside| !inside.as_os_str().is_empty());
        let whose = Whose {
            zone: &agent.zone.spec.allowed,
            above: above.map_or_else(String::new, |inside| format!("{}/", inside.display())),
            owner: format!("{}/{}", config.team.name, agent.id),
            task: agent.prompt.clone(),
        };
        let given = given(&trees, &repository, own.branch.clone(), settings, whose);
        let mut given = given.with_context(|| of(&agent.id))?;
        given.notes.extend(note);
        all.push((agent.id.clone(), given));
    }
    Ok(all)
}

fn of(agent: &AgentId) -> String {
    format!("the worktree of agent `{agent}`")
}
