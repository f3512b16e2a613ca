//! The branches of tasks of a team's repository, over the port: how all of them stand.

mod merges;
mod pull_request;
pub(crate) mod reviews;

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use eisen_base::task;
use tokio::sync::Mutex;

use crate::branches::{self, DiskSizes, ListedBranch, TeamTrees};
use crate::config::Config;
use crate::serve::{Refused, blocking};
use crate::wire::{
    BranchChecks, BranchConflict, BranchDiff, BranchList, BranchProcess, BranchRow, TeamReport,
};

/// Branches of an answer.
const MOST: usize = 200;

/// How long a list is given again.
const FRESH: Duration = Duration::from_secs(1);

/// Files of a conflict, processes of a branch, and letters of the first line of a task, that an answer has.
const MOST_FILES: usize = 20;
const MOST_PROCESSES: usize = 20;
const LONGEST_TASK: usize = 500;

/// The branches of a team's repository; cheap to clone.
#[derive(Clone)]
pub(crate) struct TeamBranches {
    team: String,
    workspace: PathBuf,
    trees: TeamTrees,
    /// The last list; locked while one is made, so that all who ask meanwhile get the same.
    listed: Arc<Mutex<Option<LastList>>>,
    sizes: Arc<std::sync::Mutex<DiskSizes>>,
    /// Locked while a branch is merged or checked.
    busy: Arc<Mutex<()>>,
    /// Locked while a pull request is opened.
    requesting: Arc<Mutex<()>>,
    /// Locked while one is merged in memory only.
    trying: Arc<Mutex<()>>,
}

/// A list of branches, or why there is none.
#[derive(Clone)]
struct LastList {
    made_at: Instant,
    result: Result<Arc<(Vec<ListedBranch>, usize)>, Refused>,
}

impl TeamBranches {
    pub(crate) fn of(config: &Config, trees: &TeamTrees) -> Self {
        Self {
            team: config.team.name.clone(),
            workspace: config.team.workspace.clone(),
            trees: trees.clone(),
            listed: Arc::default(),
            sizes: Arc::default(),
            busy: Arc::default(),
            requesting: Arc::default(),
            trying: Arc::default(),
        }
    }

    /// Lists the branches. `report`: what the team's agents do now.
    pub(crate) async fn list(&self, report: &TeamReport<'_>) -> Result<BranchList, Refused> {
        let this = self.clone();
        // It goes on where nobody waits any more: a client that asks again and again begins no second one.
        let listed = task::spawn(async move { this.listed().await }).await;
        let listed = listed.map_err(Refused::fault)??;
        let (all, omitted) = &*listed;
        let row = |branch: &ListedBranch| {
            let mut branch = branch.clone();
            if branch.is_of(&self.team) {
                branch.of_report(report, std::process::id());
            }
            self.on_wire(branch)
        };
        Ok(BranchList { branches: all.iter().map(row).collect(), omitted: *omitted })
    }

    async fn listed(&self) -> Result<Arc<(Vec<ListedBranch>, usize)>, Refused> {
        let mut last = self.listed.lock().await;
        if let Some(listed) = last.as_ref().filter(|it| it.made_at.elapsed() < FRESH) {
            return listed.result.clone();
        }
        let (workspace, sizes) = (self.workspace.clone(), Arc::clone(&self.sizes));
        let listing = move || {
            let mut sizes = sizes.lock().unwrap_or_else(PoisonError::into_inner);
            branches::list_some(&workspace, None, MOST, &mut sizes)
        };
        let result = match blocking(listing).await {
            Ok(Ok((mut all, omitted))) => {
                branches::ask_teams(&mut all, Some(&self.team)).await;
                Ok(Arc::new((all, omitted)))
            }
            Ok(Err(failure)) => Err(reviews::refused(&failure)),
            Err(refused) => Err(refused),
        };
        *last = Some(LastList { made_at: Instant::now(), result: result.clone() });
        result
    }

    fn on_wire(&self, branch: ListedBranch) -> BranchRow {
        let agent = self.trees.agent_on(&branch.branch);
        let stands = branch.standing;
        BranchRow {
            path: branch.path.to_string_lossy().into_owned(),
            state: branch.state.to_owned(),
            owner: branch.owner,
            agent_id: agent.map(|agent| agent.to_string().into()),
            task: branch.task.map(|task| task.chars().take(LONGEST_TASK).collect()),
            ahead: stands.as_ref().map(|it| it.ahead),
            behind: stands.as_ref().map(|it| it.behind),
            diff: stands.as_ref().map(|it| BranchDiff {
                files: it.diff.files,
                added: it.diff.added,
                removed: it.diff.removed,
            }),
            uncommitted: stands.as_ref().map(|it| it.uncommitted),
            is_merged: stands.as_ref().map(|it| it.is_merged),
            into: stands.and_then(|it| it.into),
            conflicts: branch.conflicts.into_iter().map(conflict_on_wire).collect(),
            processes: branch
                .processes
                .into_iter()
                .take(MOST_PROCESSES)
                .map(|process| BranchProcess { pid: process.pid, name: process.name })
                .collect(),
            checks: branch.checks.map(|end| BranchChecks {
                passed: end.passed,
                is_current: end.is_current,
                at_ms: end.at_ms,
            }),
            branch: branch.branch,
            disk_bytes: branch.disk_bytes,
            made_at_ms: branch.made_at_ms,
            trouble: branch.trouble,
        }
    }
}

fn conflict_on_wire(conflict: branches::Conflict) -> BranchConflict {
    let branches::Conflict { with, mut files } = conflict;
    files.truncate(MOST_FILES);
    BranchConflict { with, files }
}
