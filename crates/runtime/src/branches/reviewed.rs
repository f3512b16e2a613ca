//! Reviews of branches: what the runs in a worktree say of each hunk, and how a person's words get to the agent.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::anyhow;

use super::command::run;
use super::repository_of;
use crate::changes;
use crate::config::SharedConfig;
use crate::home::environment;
use crate::home::journals::journal_place;
use crate::journal::Store;
use crate::program::Failure;
use crate::review::{Hunk, HunkOrigin, Review, ReviewNotes, ReviewedFile, review};
use crate::runs::{RunState, all_runs};
use crate::tree::{Worktree, Worktrees};

/// Runs in one worktree whose journals are asked, the newest.
const MOST_RUNS: usize = 20;

/// Bytes of a file whose lines are looked up.
const LONGEST: u64 = 4 << 20;

/// A branch that is reviewed.
#[derive(Debug)]
pub struct Reviewed {
    pub tree: Worktree,
    pub review: Review,
    pub notes: ReviewNotes,
    /// The newest run in its worktree.
    pub last_run: Option<RunState>,
    trees: Worktrees,
}

/// Looks at a branch; None: the only one of a task that is there.
pub fn reviewed(
    folder: &Path,
    branch: Option<&str>,
    into: Option<&str>,
) -> Result<Reviewed, Failure> {
    let (repository, trees) = repository_of(folder)?;
    let all = trees.of(&repository);
    let around = trees.around(&folder.canonicalize().unwrap_or_else(|_| folder.to_owned()));
    let tree = match branch {
        Some(branch) => all.iter().find(|tree| tree.branch == branch).cloned(),
        None => around.or_else(|| all.first().filter(|_| all.len() == 1).cloned()),
    };
    let tree = tree.ok_or_else(|| {
        let known: Vec<_> = all.iter().map(|tree| tree.branch.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Failure::Usage(anyhow!("name the branch of a task; there are: {known}"))
    })?;
    let notes: ReviewNotes =
        trees.file_of(&tree, "review").read_json().ok().flatten().unwrap_or_default();
    let mut found = review(&tree, into, &notes).map_err(|error| Failure::Run(error.into()))?;
    let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
    let mut runs: Vec<_> = all_runs(&eisen_dir).unwrap_or_default();
    runs.reverse();
    let states = runs.iter().filter_map(|run| run.state().ok());
    let states: Vec<_> =
        states.filter(|state| state.workspace == tree.path).take(MOST_RUNS).collect();
    for file in &mut found.files {
        name_origins(file, &tree, &states, &eisen_dir);
    }
    Ok(Reviewed { tree, review: found, notes, last_run: states.into_iter().next(), trees })
}

impl Reviewed {
    /// Keeps what was said and seen.
    pub fn keep(&self) -> Result<(), Failure> {
        let text = serde_json::to_vec(&self.notes).map_err(|error| Failure::Run(error.into()))?;
        let file = self.trees.file_of(&self.tree, "review");
        file.replace(&text).map_err(|error| Failure::Run(error.into()))
    }

    /// Runs the checks in the worktree, as it is.
    pub async fn check(
        &self,
        shared: &SharedConfig,
        said: &mut (dyn FnMut(&str) + Send),
    ) -> Result<usize, Failure> {
        let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
        let log = eisen_dir.join("trees").join("checks").join(format!("{}.log", self.tree.name));
        for command in &shared.worktree.checks {
            said(&format!("$ {command}"));
            let done =
                run(command, &self.tree.path, self.tree.variables(), log.clone(), said).await;
            done.map_err(|error| Failure::Run(error.into()))?;
        }
        Ok(shared.worktree.checks.len())
    }
}

/// Names for each hunk of a file the turns that wrote its lines.
fn name_origins(file: &mut ReviewedFile, tree: &Worktree, runs: &[RunState], eisen_dir: &Path) {
    let place = tree.path.join(&file.path);
    let content = place
        .symlink_metadata()
        .ok()
        .filter(|found| found.is_file() && found.len() <= LONGEST)
        .and_then(|_| std::fs::read(&place).ok());
    for state in runs {
        let Ok(store) = Store::open(&journal_place(eisen_dir, &state.team)) else { continue };
        let path = Path::new(&file.path);
        let Ok(history) = changes::follow(&store, path) else { continue };
        let blame = changes::blame(path, &history, &store, content.clone());
        let Ok(blame) = blame else { continue };
        let Ok(names) = changes::provenance(&store, &blame) else { continue };
        for hunk in file.hunks.iter_mut().filter(|hunk| hunk.by.is_empty()) {
            let mut found = BTreeMap::new();
            for line in added_lines(hunk) {
                let Some(at) = blame.lines.get(line) else { continue };
                let name = &names[*at];
                if name.by == "agent" {
                    found.entry(*at).or_insert_with(|| HunkOrigin {
                        run: state.id.clone(),
                        agent: name.agent_id.clone().unwrap_or_default(),
                        turn: name.turn,
                        prompt: name.prompt.clone(),
                        call: name.title.clone(),
                    });
                }
            }
            hunk.by = found.into_values().collect();
        }
    }
}

/// The lines of the file, from 0, that a hunk added.
fn added_lines(hunk: &Hunk) -> Vec<usize> {
    let start = hunk.header.split('+').nth(1).and_then(|it| it.split([',', ' ']).next());
    let Some(start) = start.and_then(|it| it.parse::<usize>().ok()) else { return Vec::new() };
    let (mut line, mut added) = (start.saturating_sub(1), Vec::new());
    for text in &hunk.lines {
        match text.as_bytes().first() {
            Some(b'+') => {
                added.push(line);
                line += 1;
            }
            Some(b'-' | b'\\') => {}
            _ => line += 1,
        }
    }
    added
}
