//! The net effect of a set's own changes, file by file: the result of them alone, from the files
//! before the first of them.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use super::contents::ContentSource;
use super::entry::{ClashReason, EntrySource, FileEntry, three_way};
use super::event::FileChange;
use super::select::ChangeSet;
use super::state::{FileKind, FileState, same};

/// A file before and after changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetChange {
    /// The path before; the same as `to` if there was no file.
    pub from: PathBuf,
    /// The path after; the same as `from` if the file was not moved.
    pub to: PathBuf,
    /// The file before the changes of this part; None if there was none.
    pub before: Option<FileEntry>,
    /// The file that these changes alone lead to; None if they removed it.
    pub after: Option<FileEntry>,
    /// The worktree of an agent that it is in; None: it is in none.
    pub tree: Option<PathBuf>,
    /// git ignores it.
    pub ignored: bool,
    /// Other agents that wrote it at the same time.
    pub contested: Vec<String>,
    /// Whether the list has an earlier part of the same file.
    pub is_further: bool,
}

/// The net effect of the own changes.
#[derive(Default, Debug)]
pub struct Net {
    /// In the order of paths. If others changed the same lines in between, a file has several
    /// parts, each based on the file at that time.
    pub files: Vec<NetChange>,
    /// Files that changed in an unknown way, since a `denied` pattern matches them.
    pub denied: Vec<PathBuf>,
}

/// A file that is followed.
struct FollowedFile {
    done: Vec<NetChange>,
    part: NetChange,
}

/// Applies each own change to the result of the own ones before it, so that the changes of others
/// in between are left out.
pub fn net(changes: &ChangeSet, contents: &dyn ContentSource) -> Net {
    let mut files: Vec<FollowedFile> = Vec::new();
    // The files by their present names.
    let mut names: HashMap<PathBuf, usize> = HashMap::new();
    let mut denied: BTreeSet<PathBuf> = BTreeSet::new();
    for (index, change) in changes.all.iter().enumerate() {
        let own = changes.is_own(index);
        if change.denied {
            if own {
                denied.insert(change.path.clone());
            }
            continue;
        }
        let old = change.from.as_deref().unwrap_or(&change.path);
        let file = names.get(old).copied();
        if let (Some(file), Some(_)) = (file, &change.from) {
            names.remove(old);
            names.insert(change.path.clone(), file);
        }
        if !own {
            continue;
        }
        let file = file.unwrap_or_else(|| {
            files.push(FollowedFile { done: Vec::new(), part: NetChange::begin(change) });
            names.insert(change.path.clone(), files.len() - 1);
            files.len() - 1
        });
        files[file].add(change, contents);
    }
    let mut net = Net { files: Vec::new(), denied: denied.into_iter().collect() };
    for file in files {
        net.files.extend(file.done);
        net.files.push(file.part);
    }
    net.files.retain(NetChange::is_change);
    // The parts of a file stay in their order.
    net.files.sort_by(|one, other| one.to.cmp(&other.to));
    net
}

impl Net {
    /// Whether no file has changed, not even one that is denied.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.denied.is_empty()
    }

    /// Leaves out the files that git ignores; returns their number.
    pub fn leave_ignored_out(&mut self) -> usize {
        let all = self.files.len();
        self.files.retain(|file| !file.ignored);
        all - self.files.len()
    }

    /// The files with several parts.
    pub fn in_parts(&self) -> Vec<&Path> {
        let pairs = self.files.windows(2).filter(|pair| pair[1].is_further);
        let mut paths: Vec<_> = pairs.map(|pair| pair[1].to.as_path()).collect();
        paths.dedup();
        paths
    }
}

impl FollowedFile {
    fn add(&mut self, change: &FileChange, contents: &dyn ContentSource) {
        let part = &mut self.part;
        part.ignored = change.ignored;
        for agent in &change.contested {
            if !part.contested.contains(agent) {
                part.contested.push(agent.clone());
            }
        }
        let after = change.after.as_ref();
        let ours = part.after.clone();
        let is_as_before = same(ours.as_ref().map(|it| &it.state), change.before.as_ref());
        let merged = if is_as_before {
            // A content that is not stored is found out when it is shown.
            Ok(entry(after))
        } else {
            let none = &mut |_: &Path| Err(ClashReason::Changed);
            three_way(change.before.as_ref(), ours, after, contents, none)
        };
        let Ok(merged) = merged else {
            let mut next = NetChange::begin(change);
            next.after = entry(after);
            next.is_further = true;
            let done = std::mem::replace(part, next);
            self.done.push(done);
            return;
        };
        part.after = merged;
        if change.from.is_some() || part.before.is_none() {
            part.to.clone_from(&change.path);
        }
        if part.before.is_none() {
            part.from.clone_from(&part.to);
        }
    }
}

fn entry(state: Option<&FileState>) -> Option<FileEntry> {
    state.map(|state| FileEntry { state: state.clone(), source: EntrySource::Journal })
}

impl NetChange {
    /// The file before `change`, and nothing changed yet.
    fn begin(change: &FileChange) -> Self {
        let before = entry(change.before.as_ref());
        let from = change.from.clone().unwrap_or_else(|| change.path.clone());
        Self {
            to: change.path.clone(),
            from,
            after: before.clone(),
            before,
            tree: change.tree.clone(),
            ignored: change.ignored,
            contested: change.contested.clone(),
            is_further: false,
        }
    }

    /// Whether the file is moved, not only changed.
    pub fn is_rename(&self) -> bool {
        self.from != self.to && self.before.is_some() && self.after.is_some()
    }

    /// Whether it is or was a folder.
    pub fn is_folder(&self) -> bool {
        let is = |entry: &Option<FileEntry>| {
            entry.as_ref().is_some_and(|entry| entry.state.kind == FileKind::Folder)
        };
        is(&self.before) || is(&self.after)
    }

    fn is_change(&self) -> bool {
        let [before, after] = [&self.before, &self.after].map(|it| it.as_ref().map(|it| &it.state));
        self.is_rename() || !same(before, after)
    }
}
