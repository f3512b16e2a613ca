//! Takes changes back, from the latest to the earliest: merges each in reverse into the present
//! file, so that others may have changed it in between and since. Only plans the writes: it changes
//! nothing.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use super::contents::ContentSource;
use super::entry::{ClashReason, EntrySource, FileEntry, in_journal, three_way};
use super::event::FileChange;
use super::select::ChangeSet;
use super::state::{FileState, same};

/// The files as they are now.
pub trait Tree {
    /// The state of the file at `path`; its `stored` is ignored.
    fn state(&mut self, path: &Path) -> io::Result<Option<FileState>>;

    /// The content of the file, or the target of the symlink, at `path`.
    fn content(&mut self, path: &Path) -> io::Result<Vec<u8>>;
}

/// A file to change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Restored {
    /// Relative to the workspace; absolute outside it.
    pub path: PathBuf,
    /// The present state.
    pub before: Option<FileState>,
    /// The planned state; None to remove the file.
    pub after: Option<FileEntry>,
}

/// A file that can't be set back cleanly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clash {
    /// The path after the change, relative to the workspace; absolute outside it.
    pub path: PathBuf,
    /// The latest change that can't be taken back.
    pub event_id: String,
    /// The obstacle. A content that is missing to force the file comes before any other.
    pub why: ClashReason,
    /// Whether it was forced: it gets the state from before the change.
    pub forced: bool,
}

/// The plan for the files.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Reverted {
    /// The planned writes, in the order of paths. Not usable while a clash is not forced.
    pub files: Vec<Restored>,
    /// One for each path.
    pub clashes: Vec<Clash>,
}

impl Reverted {
    /// Whether all changes can be taken back.
    pub fn is_possible(&self) -> bool {
        self.clashes.iter().all(|clash| clash.forced)
    }
}

/// Takes back the own changes of `changes`. With `force` a file that clashes gets the state from
/// before the first of its changes, if that is known.
pub fn revert(
    changes: &ChangeSet,
    tree: &mut dyn Tree,
    contents: &dyn ContentSource,
    force: bool,
) -> Reverted {
    let mut work = Reverting {
        tree,
        contents,
        force,
        found: BTreeMap::new(),
        now: HashMap::new(),
        clashes: Vec::new(),
        clashed: HashSet::new(),
    };
    let mut by_path: HashMap<&Path, Vec<usize>> = HashMap::new();
    for (index, change) in changes.all.iter().enumerate() {
        by_path.entry(&change.path).or_default().push(index);
        if let Some(from) = &change.from {
            by_path.entry(from).or_default().push(index);
        }
    }
    let mut done: HashSet<usize> = HashSet::new();
    for index in (0..changes.all.len()).rev().filter(|index| changes.is_own(*index)) {
        if !done.insert(index) {
            continue;
        }
        let change = &changes.all[index];
        if change.from.is_some() {
            work.take_back_rename(change);
            continue;
        }
        let run = run(changes, index, &by_path);
        done.extend(&run);
        let run: Vec<&FileChange> = run.into_iter().map(|index| &changes.all[index]).collect();
        work.take_back_run(&run);
    }
    work.finish()
}

/// The own change at `index` and the own ones right before it, the latest first.
fn run(changes: &ChangeSet, index: usize, by_path: &HashMap<&Path, Vec<usize>>) -> Vec<usize> {
    let mut run = vec![index];
    let mut latest = &changes.all[index];
    let of_path = by_path.get(latest.path.as_path()).map_or(&[][..], Vec::as_slice);
    for at in of_path.iter().rev().skip_while(|at| **at >= index) {
        let earlier = &changes.all[*at];
        let follows = changes.is_own(*at) && earlier.from.is_none() && !earlier.denied;
        if !follows || !same(earlier.after.as_ref(), latest.before.as_ref()) {
            break;
        }
        run.push(*at);
        latest = earlier;
    }
    run
}

struct Reverting<'a> {
    tree: &'a mut dyn Tree,
    contents: &'a dyn ContentSource,
    force: bool,
    /// The present states of the files.
    found: BTreeMap<PathBuf, Option<FileState>>,
    /// The planned states of the files.
    now: HashMap<PathBuf, Option<FileEntry>>,
    clashes: Vec<Clash>,
    clashed: HashSet<PathBuf>,
}

impl Reverting<'_> {
    /// Takes back successive changes of one path, the latest first: as one change, or else one by
    /// one, which may be clean if a part was taken back already.
    fn take_back_run(&mut self, run: &[&FileChange]) {
        let (Some(latest), Some(earliest)) = (run.first(), run.last()) else { return };
        let path = &latest.path;
        if self.clashed.contains(path) && !self.force {
            return;
        }
        let before = earliest.before.as_ref();
        if let Ok(entry) = self.merged(path, latest, before) {
            self.now.insert(path.clone(), entry);
            return;
        }
        let kept = self.now.get(path).cloned();
        for change in run {
            match self.merged(path, change, change.before.as_ref()) {
                Ok(entry) => {
                    self.now.insert(path.clone(), entry);
                }
                Err(why) => {
                    self.now.extend(kept.map(|entry| (path.clone(), entry)));
                    return self.clash(latest, why, before, path);
                }
            }
        }
    }

    /// Moves the file back to its old name, and takes back the change of its content by the same
    /// event.
    fn take_back_rename(&mut self, change: &FileChange) {
        let Some(from) = &change.from else { return };
        if self.clashed.contains(&change.path) && !self.force {
            self.clashed.insert(from.clone());
            return;
        }
        let moved = self.moved(change, from);
        match moved {
            Ok(entry) => {
                self.now.insert(from.clone(), entry);
                self.now.insert(change.path.clone(), None);
            }
            Err(why) => {
                self.clash(change, why, change.before.as_ref(), from);
                if self.force && self.now.get(from).is_some_and(Option::is_some) {
                    self.now.insert(change.path.clone(), None);
                }
                self.clashed.insert(from.clone());
            }
        }
    }

    fn moved(
        &mut self,
        change: &FileChange,
        from: &Path,
    ) -> Result<Option<FileEntry>, ClashReason> {
        if change.denied {
            return Err(ClashReason::Denied);
        }
        let target = self.entry(&change.path)?;
        let old = self.entry(from)?;
        // It was moved back already.
        if target.is_none() && same(old.as_ref().map(|it| &it.state), change.before.as_ref()) {
            return Ok(old);
        }
        if target.is_none() {
            return Err(ClashReason::Removed);
        }
        if old.is_some() {
            return Err(ClashReason::Occupied);
        }
        self.merged(&change.path, change, change.before.as_ref())
    }

    /// The file at `path` once the change from `before` to `change.after` is taken back.
    fn merged(
        &mut self,
        path: &Path,
        change: &FileChange,
        before: Option<&FileState>,
    ) -> Result<Option<FileEntry>, ClashReason> {
        if change.denied {
            return Err(ClashReason::Denied);
        }
        let entry = self.entry(path)?;
        let tree = &mut self.tree;
        let read = &mut |path: &Path| tree.content(path).map_err(|error| unreadable(&error));
        three_way(change.after.as_ref(), entry, before, self.contents, read)
    }

    /// An entry with its content in the journal.
    fn stored(&self, state: Option<&FileState>) -> Result<Option<FileEntry>, ClashReason> {
        in_journal(self.contents, state)
    }

    /// The planned file at `path`.
    fn entry(&mut self, path: &Path) -> Result<Option<FileEntry>, ClashReason> {
        if let Some(entry) = self.now.get(path) {
            return Ok(entry.clone());
        }
        let state = self.tree.state(path).map_err(|error| unreadable(&error))?;
        let source = EntrySource::Tree(path.to_owned());
        let entry = state.clone().map(|state| FileEntry { state, source });
        self.found.insert(path.to_owned(), state);
        self.now.insert(path.to_owned(), entry.clone());
        Ok(entry)
    }

    /// Notes that `change` can't be taken back, and with force sets `place` to `before`.
    fn clash(
        &mut self,
        change: &FileChange,
        why: ClashReason,
        before: Option<&FileState>,
        place: &Path,
    ) {
        let can_be_forced =
            self.force && !change.denied && !matches!(why, ClashReason::Unreadable(_));
        let forced = can_be_forced.then(|| self.stored(before).ok()).flatten();
        let is_forced = forced.is_some();
        if let Some(entry) = forced {
            self.now.insert(place.to_owned(), entry);
        }
        let why = match self.stored(before) {
            Err(missing) if !is_forced => missing,
            _ => why,
        };
        let is_new = self.clashed.insert(change.path.clone());
        if is_new {
            let (path, event_id) = (change.path.clone(), change.event_id.clone());
            self.clashes.push(Clash { path, event_id, why, forced: is_forced });
        } else if !is_forced
            && let Some(clash) = self.clashes.iter_mut().find(|it| it.path == change.path)
        {
            clash.forced = false;
        }
    }

    fn finish(mut self) -> Reverted {
        let mut files = Vec::new();
        for (path, before) in self.found {
            let after = self.now.remove(&path).flatten();
            if !same(before.as_ref(), after.as_ref().map(|entry| &entry.state)) {
                files.push(Restored { path, before, after });
            }
        }
        Reverted { files, clashes: self.clashes }
    }
}

fn unreadable(error: &io::Error) -> ClashReason {
    ClashReason::Unreadable(error.to_string())
}
