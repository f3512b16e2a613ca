//! Reviews of branches: what the runs in a worktree say of each hunk, and how a person's words get to the agent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::anyhow;

use super::command::run;
use super::repository_of;
use super::work::{BranchWork, WorkSource, told};
use crate::changes;
use crate::config::SharedConfig;
use crate::home::environment;
use crate::home::journals::journal_place;
use crate::journal::Store;
use crate::kept::PATIENCE;
use crate::model::now_ms;
use crate::program::Failure;
use crate::review::{
    ChecksEnd, Hunk, HunkOrigin, Review, ReviewNotes, ReviewedFile, revert, review,
};
use crate::runs::{RunState, all_runs};
use crate::tree::{Worktree, Worktrees, read_plain};

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
    sources: Vec<WorkSource>,
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
        Failure::Usage(match branch {
            Some(branch) => anyhow!("there is no task branch `{branch}`; there are: {known}"),
            None => anyhow!("name the branch of a task; there are: {known}"),
        })
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
    let place = |team: &str| journal_place(&eisen_dir, team);
    let of_runs = states.iter().map(|run| WorkSource {
        name: run.id.clone(),
        agent: None,
        journal: place(&run.team),
        above: PathBuf::new(),
    });
    // The journal of a team has the whole paths of files in worktrees of its agents.
    let of_team = tree.owner.split_once('/').map(|(team, agent)| WorkSource {
        name: tree.owner.clone(),
        agent: Some(agent.to_owned()),
        journal: place(team),
        above: tree.path.clone(),
    });
    let sources: Vec<_> = of_team.into_iter().chain(of_runs).collect();
    for file in &mut found.files {
        name_origins(file, &tree, &sources);
    }
    let last_run = states.into_iter().next();
    Ok(Reviewed { tree, review: found, notes, last_run, trees, sources })
}

impl Reviewed {
    /// Reads the work on the branch from the journals.
    pub fn work(&self) -> BranchWork {
        told(&self.tree, &self.sources)
    }

    /// Changes the notes and keeps them. What others kept since they were read stays.
    pub fn note<T>(
        &mut self,
        change: impl FnOnce(&mut ReviewNotes) -> Result<T, String>,
    ) -> Result<T, Failure> {
        let changed = change_notes(&self.trees, &self.tree, change)?;
        self.notes = changed.0;
        Ok(changed.1)
    }

    /// Runs the checks in the worktree, as it is.
    pub async fn check(
        &mut self,
        shared: &SharedConfig,
        said: &mut (dyn FnMut(&str) + Send),
    ) -> Result<usize, Failure> {
        let eisen_dir = environment::eisen_dir().map_err(Failure::Usage)?;
        let log = eisen_dir.join("trees").join("checks").join(format!("{}.log", self.tree.name));
        let mut failed = None;
        for command in &shared.worktree.checks {
            said(&format!("$ {command}"));
            let done =
                run(command, &self.tree.path, self.tree.variables(), log.clone(), said).await;
            failed = done.err();
            if failed.is_some() {
                break;
            }
        }
        if !shared.worktree.checks.is_empty() {
            let end = ChecksEnd {
                passed: failed.is_none(),
                commit: self.tree.repository().tip(&self.tree.branch).unwrap_or_default(),
                is_clean: self.review.uncommitted.is_empty(),
                at_ms: now_ms(),
            };
            // A person may have said something meanwhile.
            note_checks(&self.trees, &self.tree, end.clone());
            self.notes.checks = Some(end);
        }
        failed.map_or(Ok(()), |error| Err(Failure::Run(error.into())))?;
        Ok(shared.worktree.checks.len())
    }

    /// Marks a hunk as accepted, or all of a file.
    pub fn accept(&mut self, word: &str) -> Result<(), Failure> {
        let ids = self.ids_of(word)?;
        self.note(|notes| {
            notes.accepted.extend(ids);
            Ok(())
        })
    }

    /// Takes a hunk back in the worktree, or all of a file. Returns the places.
    pub fn revert(&self, word: &str) -> Result<Vec<PathBuf>, Failure> {
        let take_back = |id: String| {
            let place = revert(&self.tree, &self.review, &id);
            place.map_err(|error| Failure::Run(error.into()))
        };
        self.ids_of(word)?.into_iter().map(take_back).collect()
    }

    /// Keeps a sentence on a hunk.
    pub fn comment(&mut self, id: &str, text: &str) -> Result<(), Failure> {
        // Of a file the first one.
        let id = self.ids_of(id)?.swap_remove(0);
        let (file, hunk) = self.review.hunk(&id).map_err(|error| Failure::Usage(error.into()))?;
        let path = file.path.clone();
        let place = hunk.header.split("@@").nth(1).unwrap_or_default().trim().to_owned();
        self.note(|notes| notes.comment(&id, &path, &place, text))
    }

    /// Notes that a person has seen all of it.
    pub fn looked(&mut self) -> Result<(), Failure> {
        let seen = self.review.ids();
        self.note(|notes| {
            notes.look(seen);
            Ok(())
        })
    }

    /// The hunks that a word means: one by its id, or all of a file.
    fn ids_of(&self, word: &str) -> Result<Vec<String>, Failure> {
        let of_file = self.review.of_file(word);
        if !of_file.is_empty() {
            return Ok(of_file);
        }
        let hunk = self.review.hunk(word).map_err(|error| Failure::Usage(error.into()))?;
        Ok(vec![hunk.1.id.clone()])
    }
}

/// How the checks of a worktree's branch ended the last time.
pub(super) fn last_checks(trees: &Worktrees, tree: &Worktree) -> Option<ChecksEnd> {
    let notes = trees.file_of(tree, "review").read_json::<ReviewNotes>().ok().flatten();
    notes.and_then(|notes| notes.checks)
}

/// Notes how the checks of a worktree's branch ended.
pub(super) fn note_checks(trees: &Worktrees, tree: &Worktree, end: ChecksEnd) {
    let noted = change_notes(trees, tree, |notes| {
        notes.checks = Some(end);
        Ok(())
    });
    if let Err(failure) = noted {
        tracing::warn!(error = %failure.error(), "cannot keep how the checks ended");
    }
}

/// Changes the notes on a worktree's branch as they are on the disk, alone, and returns them.
fn change_notes<T>(
    trees: &Worktrees,
    tree: &Worktree,
    change: impl FnOnce(&mut ReviewNotes) -> Result<T, String>,
) -> Result<(ReviewNotes, T), Failure> {
    let failed = |error: std::io::Error| Failure::Run(error.into());
    let file = trees.file_of(tree, "review");
    let _alone = file.lock("review.lock", PATIENCE).map_err(failed)?;
    let mut notes: ReviewNotes = file.read_json().map_err(failed)?.unwrap_or_default();
    let changed = change(&mut notes).map_err(|why| Failure::Usage(anyhow!(why)))?;
    let text = serde_json::to_vec(&notes).map_err(|error| Failure::Run(error.into()))?;
    file.replace(&text).map_err(failed)?;
    Ok((notes, changed))
}

/// Names for each hunk of a file the turns that wrote its lines.
fn name_origins(file: &mut ReviewedFile, tree: &Worktree, sources: &[WorkSource]) {
    let place = tree.path.join(&file.path);
    let content = read_plain(&place, LONGEST + 1).filter(|text| text.len() as u64 <= LONGEST);
    for WorkSource { name, journal, above, .. } in sources {
        let Ok(store) = Store::open(journal) else { continue };
        let path = &above.join(&file.path);
        let Ok(history) = changes::follow(&store, path) else { continue };
        let blame = changes::blame(path, &history, &store, content.clone());
        let Ok(blame) = blame else { continue };
        let Ok(names) = changes::provenance(&store, &blame) else { continue };
        for hunk in file.hunks.iter_mut().filter(|hunk| hunk.by.is_empty()) {
            let mut found = BTreeMap::new();
            for line in added_lines(hunk) {
                let Some(at) = blame.lines.get(line) else { continue };
                let by = &names[*at];
                if by.by == "agent" {
                    found.entry(*at).or_insert_with(|| HunkOrigin {
                        run: name.clone(),
                        agent: by.agent_id.clone().unwrap_or_default(),
                        turn: by.turn,
                        prompt: by.prompt.clone(),
                        call: by.title.clone(),
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
