//! `[worktree]`: how the worktrees of tasks are made, and what has to pass before a branch is merged; and
//! `[agents.worktree]`, by which an agent of a team has one.

use std::path::{Path, PathBuf};

use super::Team;
use super::errors::quoted;
use super::fault::Fault;
use super::read::Table;
use super::remote::RemoteAgent;

/// The parts of `path` that stand for names.
const REPOSITORY: &str = "REPO";
const NAME: &str = "NAME";

/// The parts of `branch` that stand for names.
const TEAM: &str = "TEAM";
const AGENT: &str = "AGENT";

/// The branch of an agent that has a worktree, unless its table says.
const BRANCH: &str = "eisen/TEAM/AGENT";

/// Commands of `checks`.
const MOST_CHECKS: usize = 20;

/// How worktrees of tasks are made.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct WorktreeSettings {
    /// Where a new branch begins; None: where the main worktree is.
    pub base: Option<String>,
    /// The place of a worktree, relative to the repository, with `REPO` and `NAME`; None: `../REPO.trees/NAME`.
    pub path: Option<String>,
    /// A command of a shell that makes a new worktree ready.
    pub setup: Option<String>,
    /// Patterns of files that git ignores, or does not know, and that are copied in.
    pub copy: Vec<String>,
    /// Files and folders that become links to those of the main worktree.
    pub link: Vec<String>,
    /// Only the folders of the agent's zone, by git's sparse checkout; None: the file does not say.
    pub sparse: Option<bool>,
    /// Commands of a shell, each of which must succeed on a merge before its branch moves.
    pub checks: Vec<String>,
}

/// The worktree that an agent of a team works in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentWorktree {
    /// With the names of team and agent in it.
    pub branch: String,
    /// The keys that differ from `[worktree]`; it has no checks.
    pub settings: WorktreeSettings,
}

/// Reads `[agents.worktree]`; None: the agent works in the team's workspace.
pub(super) fn of_agent(table: &Table<'_>, team: &Team, agent: &str) -> Option<AgentWorktree> {
    let (is_enabled, branch, settings) = table.section("worktree", "agents.worktree", |own| {
        let branch = own.text("branch").map_or_else(|| BRANCH.to_owned(), |text| text.value);
        (own.flag("enabled", true), branch, settings(own))
    });
    let place = table.place_of("worktree").filter(|_| is_enabled)?;
    if team.scratch {
        let message = "an agent of a team with `scratch = true` has no worktree";
        let help =
            "leave out one of the two: a copy of the workspace is no repository to commit to";
        table.fault(Fault::new(place, message).help(help));
    } else if RemoteAgent::is_at(table) {
        let message = "an agent that runs elsewhere has no worktree here";
        table.fault(Fault::new(place, message).help("leave out `[agents.worktree]`"));
    }
    let branch = branch.replace(TEAM, &team.name).replace(AGENT, agent);
    Some(AgentWorktree { branch, settings })
}

pub(super) fn worktree(table: &Table<'_>) -> WorktreeSettings {
    let checks: Vec<_> =
        table.texts("checks").unwrap_or_default().into_iter().map(|text| text.value).collect();
    if let (true, Some(span)) = (checks.len() > MOST_CHECKS, table.place_of("checks")) {
        let message = format!("`checks` has more than {MOST_CHECKS} commands");
        table.fault(Fault::new(span, message).help("let one command call the others"));
    }
    WorktreeSettings { checks, ..settings(table) }
}

/// Reads how a worktree is made.
fn settings(table: &Table<'_>) -> WorktreeSettings {
    let texts = |key| {
        let all = table.texts(key).unwrap_or_default();
        all.into_iter().map(|text| text.value).collect::<Vec<_>>()
    };
    let text = |key| table.text(key).map(|text| text.value);
    let path = table.text("path").filter(|path| {
        let is_named = Path::new(&path.value)
            .file_name()
            .is_some_and(|name| name.to_string_lossy().contains(NAME));
        if !is_named {
            let message = format!("{} is one place for all worktrees", quoted(&path.value));
            let help =
                "let its last part have NAME, which stands for the branch: \"../REPO.trees/NAME\"";
            table.fault(Fault::new(path.span.clone(), message).help(help));
        }
        is_named
    });
    WorktreeSettings {
        base: text("base"),
        path: path.map(|path| path.value),
        setup: text("setup"),
        copy: texts("copy"),
        link: texts("link"),
        sparse: table.place_of("sparse").map(|_| table.flag("sparse", false)),
        checks: Vec::new(),
    }
}

impl WorktreeSettings {
    /// The place of a worktree with this name, for a repository with this top; None: the usual one.
    pub fn place(&self, top: &Path, name: &str) -> Option<PathBuf> {
        let repository = top.file_name()?.to_string_lossy().into_owned();
        let path = self.path.as_ref()?.replace(REPOSITORY, &repository).replace(NAME, name);
        Some(crate::model::fold(&top.join(path)))
    }

    /// Lays these settings over others. A key that is set here holds.
    #[must_use]
    pub fn over(self, under: &Self) -> Self {
        let list = |own: Vec<String>, other: &Vec<String>| {
            if own.is_empty() { other.clone() } else { own }
        };
        Self {
            base: self.base.or_else(|| under.base.clone()),
            path: self.path.or_else(|| under.path.clone()),
            setup: self.setup.or_else(|| under.setup.clone()),
            copy: list(self.copy, &under.copy),
            link: list(self.link, &under.link),
            sparse: self.sparse.or(under.sparse),
            checks: list(self.checks, &under.checks),
        }
    }
}
