//! Finds what two worktrees of a team both change, as soon as it is written and before anything is merged: symbols of the
//! code, else lines. Both agents get to know it by their next prompts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use eisen_base::task;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::TeamTrees;
use crate::bus::{Bus, Received};
use crate::changes::{Merge, merge3};
use crate::conflicts::Conflicts;
use crate::graph::changed_symbols;
use crate::journal::user_text;
use crate::model::{
    AgentId, Event, FileCause, Record, SessionId, SessionKey, Topic, one_line, quoted,
};
use crate::routing::RoutingHandle;
use crate::tree::{Worktree, read_plain};

/// How long files settle before they are compared.
const SETTLES: Duration = Duration::from_millis(300);

/// Files that wait to be compared, and files that are known to be changed. Past that, what is shared is found by the merge
/// alone, which is said.
const MOST_WAITING: usize = 10_000;
const MOST_CHANGED: usize = 50_000;

/// Files that are compared at a time.
const MOST_AT_ONCE: usize = 200;

/// Bytes of a file that is compared.
const LONGEST: u64 = 1 << 20;

/// Symbols of a file that two branches share and that are told apart; those that a message names, and their letters.
const MOST_SHARED: usize = 100;
const MOST_NAMED: usize = 3;
const LONGEST_NAME: usize = 80;

/// Sentences of a batch that go into a prompt.
const MOST_TOLD: usize = 5;

/// Follows the changes of files until `cancel`.
pub(crate) async fn follow(
    bus: Bus,
    trees: TeamTrees,
    conflicts: Conflicts,
    routing: RoutingHandle,
    cancel: CancellationToken,
) {
    if cancel.run_until_cancelled(trees.begun()).await.is_none() {
        return;
    }
    let mut events = bus.subscribe();
    events.want(Topic::Record);
    let mut waiting: BTreeMap<(PathBuf, Arc<str>), SessionKey> = BTreeMap::new();
    // None while a batch is compared.
    let mut changed = Some(ChangedFiles::default());
    let mut comparing: Comparing = None;
    let mut due = Instant::now();
    let mut is_behind = false;
    loop {
        let received = tokio::select! {
            () = cancel.cancelled() => return,
            received = events.recv() => match received {
                Some(received) => received,
                None => return,
            },
            compared = next_of(&mut comparing) => {
                let Ok((known, found)) = compared else { return };
                (changed, comparing) = (Some(known), None);
                tell(found, &conflicts, &routing).await;
                continue;
            }
            () = sleep_until(due), if !waiting.is_empty() && changed.is_some() => {
                let Some(mut known) = changed.take() else { continue };
                let mut batch = Vec::new();
                while batch.len() < MOST_AT_ONCE && let Some(next) = waiting.pop_first() {
                    batch.push(next);
                }
                let (all, ends) = (trees.all(), cancel.clone());
                comparing = Some(task::spawn_blocking(move || {
                    let found = known.compare(&all, batch, &ends);
                    (known, found)
                }));
                continue;
            }
        };
        let Received::Event(_, event) = received else {
            tracing::warn!("changes of branches may be missed: the team was too fast");
            continue;
        };
        let Event::Record { key, record, .. } = &**event else { continue };
        let change = match record {
            Record::FileChanged(change) => change,
            Record::Prompt(blocks) => {
                if let Some(task) = user_text(blocks) {
                    let (trees, agent) = (trees.clone(), key.agent.clone());
                    task::spawn_blocking(move || trees.note_task(&agent, &task));
                }
                continue;
            }
            _ => continue,
        };
        let Some(tree) = &change.tree else { continue };
        if change.ignored || change.denied || change.cause != FileCause::Agent {
            continue;
        }
        if waiting.len() >= MOST_WAITING {
            if !std::mem::replace(&mut is_behind, true) {
                tracing::warn!(
                    "changes of branches come faster than they are compared; what two of them share may be found by the merge alone"
                );
            }
            continue;
        }
        if waiting.is_empty() {
            (due, is_behind) = (Instant::now() + SETTLES, false);
        }
        let names = [Some(&change.path), change.from.as_ref()].into_iter().flatten();
        waiting
            .extend(names.map(|name| ((tree.to_path_buf(), Arc::clone(&name.text)), key.clone())));
    }
}

type Comparing = Option<JoinHandle<(ChangedFiles, Vec<SharedPart>)>>;

/// Waits for the end of a comparison; where none is under way, for ever.
async fn next_of(comparing: &mut Comparing) -> Result<(ChangedFiles, Vec<SharedPart>), JoinError> {
    match comparing {
        Some(comparing) => comparing.await,
        None => std::future::pending().await,
    }
}

/// Reports what branches share; both agents hear of it by their next prompts.
async fn tell(found: Vec<SharedPart>, conflicts: &Conflicts, routing: &RoutingHandle) {
    let mut told: BTreeMap<AgentId, usize> = BTreeMap::new();
    for SharedPart { path, by, other, message } in found {
        let conflict = conflicts.met(&by, other.agent.clone(), &path, message);
        for agent in [by.agent, other.agent] {
            let told = told.entry(agent.clone()).or_default();
            *told += 1;
            let line = format!("- conflict {}: {}", conflict.id, conflict.message);
            if *told <= MOST_TOLD {
                routing.note(agent, line).await;
            }
        }
    }
    for (agent, told) in told.into_iter().filter(|(_, told)| *told > MOST_TOLD) {
        let more = told - MOST_TOLD;
        routing.note(agent, format!("- {more} more conflicts with other branches")).await;
    }
}

/// A part of a file that two worktrees changed.
struct SharedPart {
    path: Arc<str>,
    /// The session that changed it last.
    by: SessionKey,
    other: SessionKey,
    message: String,
}

/// The files that worktrees have changed, and what was reported of them.
#[derive(Default)]
struct ChangedFiles {
    /// By their paths in the repository, the branches that changed each, and who did last.
    files: HashMap<PathBuf, BTreeMap<String, SessionKey>>,
    /// The parts that two branches share, which were reported, by the path and both branches.
    reported: HashMap<(PathBuf, String, String), BTreeSet<String>>,
    /// The branches whose changes before this run are known.
    begun: HashSet<String>,
    is_full: bool,
}

impl ChangedFiles {
    fn compare(
        &mut self,
        all: &[(AgentId, Worktree)],
        batch: Vec<((PathBuf, Arc<str>), SessionKey)>,
        cancel: &CancellationToken,
    ) -> Vec<SharedPart> {
        let mut bases = HashMap::new();
        let mut found = Vec::new();
        for (agent, tree) in all {
            if self.begun.insert(tree.branch.clone()) {
                let base = bases.entry(tree.branch.clone()).or_insert_with(|| base_of(tree));
                self.begin(agent, tree, base);
            }
        }
        let trees: Vec<_> = all.iter().map(|(_, tree)| tree).collect();
        for ((root, shown), by) in batch {
            let Some(tree) = trees.iter().find(|tree| root.starts_with(&tree.path)) else {
                continue;
            };
            let inside = root.strip_prefix(&tree.path).unwrap_or(Path::new(""));
            let path = inside.join(&*shown);
            if self.files.len() >= MOST_CHANGED && !self.files.contains_key(&path) {
                if !std::mem::replace(&mut self.is_full, true) {
                    tracing::warn!(
                        "more files are changed in worktrees than are compared with one another"
                    );
                }
                continue;
            }
            let known = self.files.entry(path.clone()).or_default();
            known.insert(tree.branch.clone(), by.clone());
            // What one branch alone has changed needs no look.
            if known.len() == 1 || cancel.is_cancelled() {
                continue;
            }
            let known = known.clone();
            let base = bases.entry(tree.branch.clone()).or_insert_with(|| base_of(tree));
            let Some(own) = Versions::of(tree, base, &path) else { continue };
            if own.base == own.now {
                self.ended(&path, &tree.branch);
                continue;
            }
            for (branch, other) in known {
                let of_branch = |tree: &&&Worktree| tree.branch == branch;
                let Some(beside) =
                    trees.iter().find(of_branch).filter(|it| it.branch != tree.branch)
                else {
                    continue;
                };
                let base = bases.entry(branch.clone()).or_insert_with(|| base_of(beside));
                let Some(theirs) = Versions::of(beside, base, &path) else { continue };
                let parts = own.shared_with(&theirs, &path);
                let news = self.report(pair(&path, &tree.branch, &branch), parts);
                if news.is_empty() || by.agent == other.agent {
                    continue;
                }
                let message = message(&news, &shown, (&by, tree), (&other, beside));
                found.push(SharedPart { path: Arc::clone(&shown), by: by.clone(), other, message });
            }
        }
        found
    }

    /// Notes the files that a branch had changed before this run.
    fn begin(&mut self, agent: &AgentId, tree: &Worktree, base: &str) {
        let (mut diff, mut list) = (tree.git(), tree.git());
        let changed = diff
            .args(["diff", "--name-only", "--no-renames", "--ignore-submodules=all", "-z", base])
            .bytes();
        let untracked = list.args(["ls-files", "-z", "--others", "--exclude-standard"]).bytes();
        let names = [changed, untracked].into_iter().flatten().collect::<Vec<_>>().concat();
        let by = SessionKey::new(agent.clone(), SessionId::new(""));
        let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        for name in names.take(MOST_CHANGED.saturating_sub(self.files.len())) {
            let known = self.files.entry(Path::new(OsStr::from_bytes(name)).to_owned());
            known.or_default().entry(tree.branch.clone()).or_insert_with(|| by.clone());
        }
    }

    /// Notes which parts two branches share; returns those that were not reported yet.
    fn report(&mut self, pair: (PathBuf, String, String), parts: BTreeSet<String>) -> Vec<String> {
        if parts.is_empty() {
            self.reported.remove(&pair);
            return Vec::new();
        }
        let reported = self.reported.entry(pair).or_default();
        let news = parts.difference(reported).cloned().collect();
        *reported = parts;
        news
    }

    /// Forgets a branch that has a file as it was.
    fn ended(&mut self, path: &Path, branch: &str) {
        if let Some(known) = self.files.get_mut(path) {
            known.remove(branch);
        }
        self.reported
            .retain(|(of, one, other), _| of != path || (one != branch && other != branch));
    }
}

fn pair(path: &Path, one: &str, other: &str) -> (PathBuf, String, String) {
    let (first, second) = if one < other { (one, other) } else { (other, one) };
    (path.to_owned(), first.to_owned(), second.to_owned())
}

/// The commit that a worktree's changes are compared with: where it left its base.
fn base_of(tree: &Worktree) -> String {
    let Some(base) = &tree.base_branch else { return tree.base.clone() };
    let mut ask = tree.git();
    let found = ask.args(["merge-base", "HEAD", &format!("refs/heads/{base}")]).text();
    found.unwrap_or_else(|_| tree.base.clone())
}

/// A file of a worktree as it was at its base, and as it is. One that is not there is empty.
struct Versions {
    base: Vec<u8>,
    now: Vec<u8>,
}

impl Versions {
    /// None: it is too large, or no plain file.
    fn of(tree: &Worktree, base: &str, path: &Path) -> Option<Self> {
        let file = tree.path.join(path);
        let now = match file.symlink_metadata() {
            Ok(found) if found.is_file() && found.len() <= LONGEST => read_plain(&file, LONGEST)?,
            Ok(_) => return None,
            Err(_) => Vec::new(),
        };
        let name = format!("{base}:{}", path.to_str()?);
        let mut size = tree.git();
        let size = size.args(["cat-file", "-s", &name]).text().ok();
        let base = match size.and_then(|size| size.parse::<u64>().ok()) {
            None => Vec::new(),
            Some(size) if size > LONGEST => return None,
            Some(_) => tree.git().args(["cat-file", "blob", &name]).bytes().ok()?,
        };
        Some(Self { base, now })
    }

    /// The parts that both changed in different ways: names of symbols, or nothing but the lines, which is empty.
    fn shared_with(&self, other: &Self, path: &Path) -> BTreeSet<String> {
        if self.now == other.now {
            return BTreeSet::new();
        }
        let changed = changed_symbols(path, &self.base, &self.now);
        let theirs = changed_symbols(path, &other.base, &other.now);
        let differ = changed_symbols(path, &self.now, &other.now);
        let shared = changed.intersection(&theirs).filter(|name| differ.contains(*name));
        let mut shared: BTreeSet<_> = shared.take(MOST_SHARED).cloned().collect();
        // Removed by one, and changed by the other.
        let is_gone = !self.base.is_empty() && self.now.is_empty() != other.now.is_empty();
        let conflict = || merge3(&self.base, &self.now, &other.now) == Merge::Conflict;
        if shared.is_empty() && (is_gone || conflict()) {
            shared.insert(String::new());
        }
        shared
    }
}

/// The beginning of a symbol's name, in which an agent may have written anything.
fn cut(name: &str) -> String {
    one_line(&name.chars().take(LONGEST_NAME).collect::<String>())
}

fn message(
    parts: &[String],
    path: &str,
    (by, own): (&SessionKey, &Worktree),
    (other, beside): (&SessionKey, &Worktree),
) -> String {
    let named: Vec<_> = parts.iter().filter(|part| !part.is_empty()).collect();
    let what = match &named[..] {
        [] => "the same lines".to_owned(),
        all => {
            let shown: Vec<_> =
                all.iter().take(MOST_NAMED).map(|name| format!("`{}`", cut(name))).collect();
            let more = all.len().saturating_sub(MOST_NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            shown.join(", ") + &more
        }
    };
    let mut both = [(&by.agent, &own.branch), (&other.agent, &beside.branch)];
    // Which of two is compared last is chance.
    both.sort();
    let [(one, branch), (another, beside)] = both;
    let path = quoted(path);
    format!(
        "`{one}` and `{another}` both changed {what} in {path}, on the branches {branch} and {beside}"
    )
}
