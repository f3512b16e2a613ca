//! The files below `$EISEN_DIR/trees`: one for each worktree, and a lock of each.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use super::names::{default_folder, folder_name};
use super::{Worktree, WorktreeError, WorktreeState};
use crate::kept::{self, Durable, HeldLock, KeptFile, LockAt};
use crate::model::{KeptFiles, KeptForm};
use crate::repository::GitRepository;

/// Bytes of what is known of a worktree: a copied file has some 150.
const LONGEST: u64 = 16 << 20;

/// The files that this room keeps.
pub const KEPT: [KeptFiles; 1] = [KeptFiles::new("worktrees", KeptForm::Fixed, &["trees/**"])];

/// How the name of a worktree's file ends.
const ENDING: &str = ".tree.json";

/// Ports of worktrees, and how many each has.
const FIRST_PORT: u16 = 20_000;
const LAST_PORT: u16 = 29_980;
const PORTS: usize = 20;

/// How long is waited for another process that makes or cleans a worktree of the same repository.
const PATIENCE: Duration = Duration::from_secs(60);

/// All worktrees that the user's tasks have.
#[derive(Clone, Debug)]
pub struct Worktrees {
    folder: PathBuf,
}

/// A worktree that no other process makes or cleans while this lives.
#[derive(Debug)]
pub struct HeldWorktree {
    pub tree: Worktree,
    file: KeptFile<Durable>,
    lock: HeldLock,
}

/// Whether the programs that this process starts from now on hold a lock with it: it is free when the last of them has
/// ended. A git whose caller is killed goes on.
pub(crate) fn share(lock: &HeldLock, is_shared: bool) {
    let flags = if is_shared { FdFlag::empty() } else { FdFlag::FD_CLOEXEC };
    if let Err(error) = fcntl(&**lock, FcntlArg::F_SETFD(flags)) {
        tracing::debug!(%error, "a lock is not shared");
    }
}

impl HeldWorktree {
    /// Shares its lock with the calls of git that follow, or not any more.
    pub(crate) fn share(&self, is_shared: bool) {
        share(&self.lock, is_shared);
    }

    /// Writes down what is known of it now.
    pub fn keep(&self) -> Result<(), WorktreeError> {
        let text = serde_json::to_vec_pretty(&self.tree).map_err(std::io::Error::other);
        let path = self.file.path();
        text.and_then(|text| self.file.replace(&text)).map_err(WorktreeError::at(path))
    }

    /// The log of a command that ran for it, such as `setup`.
    pub fn log(&self, eisen_dir: &Path, what: &str) -> PathBuf {
        let folder = self.file.path().parent().unwrap_or(eisen_dir);
        folder.join(format!("{}-{what}.log", self.tree.name))
    }

    /// Removes a worktree that only this program wrote in, with all that is in it. A branch that was made with it goes
    /// too, if it has not moved.
    pub fn discard(self) -> Result<(), WorktreeError> {
        let tree = &self.tree;
        super::make_removable(&tree.path);
        match fs::remove_dir_all(&tree.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(WorktreeError::File(tree.path.clone(), error));
            }
            _ => {}
        }
        tree.prune()?;
        if tree.made_branch {
            let mut delete = tree.repository().git();
            let _ = delete.args(["update-ref", "-d", &tree.reference(), &tree.base]).bytes();
        }
        self.let_go().map(drop)
    }

    /// Forgets a worktree that is not there any more; None: nothing is known of it now. One that has a recovery is known
    /// as cleaned.
    pub(crate) fn let_go(mut self) -> Result<Option<Self>, WorktreeError> {
        if self.tree.recovery.is_none() {
            return self.forget().map(|()| None);
        }
        self.tree.state = WorktreeState::Gone;
        self.keep()?;
        Ok(Some(self))
    }

    /// Forgets it.
    pub fn forget(self) -> Result<(), WorktreeError> {
        let path = self.file.path().to_owned();
        let _ = fs::remove_file(notes_of(&path, &self.tree));
        self.file.remove().map_err(WorktreeError::at(path))
    }
}

/// The notes of a review, beside what is known of a worktree.
fn notes_of(file: &Path, tree: &Worktree) -> PathBuf {
    file.with_file_name(format!("{}.review.json", tree.name))
}

impl Worktrees {
    pub fn new(eisen_dir: &Path) -> Self {
        Self { folder: eisen_dir.join("trees") }
    }

    /// All worktrees of a repository that are known, by their branches. What can't be read is left out.
    pub fn of(&self, repository: &GitRepository) -> Vec<Worktree> {
        let mut trees: Vec<_> = self.all_of(repository).into_iter().map(|(_, tree)| tree).collect();
        trees.sort_by(|one, other| one.branch.cmp(&other.branch));
        trees
    }

    /// The worktree of a branch that is known.
    pub fn of_branch(&self, repository: &GitRepository, branch: &str) -> Option<Worktree> {
        self.of(repository).into_iter().find(|tree| tree.branch == branch)
    }

    /// The worktree that a folder lies in.
    pub fn around(&self, folder: &Path) -> Option<Worktree> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let all = files.flat_map(|entry| read_all(&entry.path()));
        all.map(|(_, tree)| tree)
            .find(|tree| tree.state == WorktreeState::Ready && folder.starts_with(&tree.path))
    }

    /// The places of tasks' worktrees, for a folder of the main worktree: closed to whoever works in there.
    pub fn beside(&self, folder: &Path) -> Vec<PathBuf> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let all = files.flat_map(|entry| read_all(&entry.path())).map(|(_, tree)| tree);
        let is_there = |tree: &Worktree| {
            let is_of = tree.main.as_ref().is_some_and(|main| folder.starts_with(main));
            is_of && tree.state != WorktreeState::Gone
        };
        let places: BTreeSet<_> = all
            .filter(is_there)
            .flat_map(|tree| default_folder(&tree.repository()).into_iter().chain([tree.path]))
            .collect();
        places.into_iter().collect()
    }

    /// Holds the worktree of a branch; None: none is known.
    pub fn hold(
        &self,
        repository: &GitRepository,
        branch: &str,
    ) -> Result<Option<HeldWorktree>, WorktreeError> {
        self.hold_within(repository, branch, Duration::ZERO)
    }

    /// As [`Worktrees::hold`], but waits so long for another process.
    pub(crate) fn hold_within(
        &self,
        repository: &GitRepository,
        branch: &str,
        patience: Duration,
    ) -> Result<Option<HeldWorktree>, WorktreeError> {
        let folder = self.folder_of(repository);
        if !folder.is_dir() {
            return Ok(None);
        }
        let lock = self.lock(repository, branch, patience)?;
        let known = self.all_of(repository);
        let Some((path, tree)) = known.into_iter().find(|(_, tree)| tree.branch == branch) else {
            return Ok(None);
        };
        Ok(Some(HeldWorktree { tree, file: KeptFile::new(path, LONGEST), lock }))
    }

    /// Keeps a new worktree, which is held. It takes the place of one of the same branch that was cleaned.
    pub(crate) fn add(
        &self,
        repository: &GitRepository,
        mut tree: Worktree,
    ) -> Result<HeldWorktree, WorktreeError> {
        let folder = self.folder_of(repository);
        kept::make_folder(&folder).map_err(WorktreeError::at(&folder))?;
        let lock = self.lock(repository, &tree.branch, Duration::ZERO)?;
        let known = self.all_of(repository);
        let is_before = |it: &Worktree| it.branch == tree.branch && it.state == WorktreeState::Gone;
        let is_taken = |it: &Worktree| it.branch == tree.branch || it.name == tree.name;
        if known.iter().any(|(_, it)| is_taken(it) && !is_before(it)) {
            return Err(WorktreeError::Busy(tree.branch));
        }
        let before: Vec<_> = known.iter().filter(|(_, it)| is_before(it)).collect();
        let _list = self.lock_list()?;
        tree.port_base = free_of(&self.taken_ports(&tree.path));
        let path = folder.join(format!("{}{ENDING}", tree.name));
        let held = HeldWorktree { tree, file: KeptFile::new(&path, LONGEST), lock };
        held.keep()?;
        for (file, tree) in before {
            let _ = fs::remove_file(notes_of(file, tree));
            if *file != path {
                fs::remove_file(file).map_err(WorktreeError::at(file))?;
            }
        }
        Ok(held)
    }

    /// Gives a worktree that comes back other ports, where another one has got its own meanwhile, and keeps it.
    pub(crate) fn renew_ports(&self, held: &mut HeldWorktree) -> Result<(), WorktreeError> {
        let _list = self.lock_list()?;
        let taken = self.taken_ports(&held.tree.path);
        if taken.contains(&held.tree.port_base) {
            held.tree.port_base = free_of(&taken);
        }
        held.keep()
    }

    /// The first ports of all worktrees that are there, but for one.
    fn taken_ports(&self, but_for: &Path) -> Vec<u16> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let all = files.flat_map(|entry| read_all(&entry.path())).map(|(_, tree)| tree);
        let there = all.filter(|it| it.state != WorktreeState::Gone && it.path != but_for);
        there.map(|it| it.port_base).collect()
    }

    /// A name for the worktree of a branch that no other one has.
    pub fn name_for(&self, repository: &GitRepository, branch: &str) -> String {
        let (known, first) = (self.of(repository), folder_name(branch));
        let (mut name, mut number) = (first.clone(), 2);
        while known.iter().any(|other| other.name == name && other.branch != branch) {
            name = format!("{first}-{number}");
            number += 1;
        }
        name
    }

    /// Holds the worktree that a folder is the top of; None: it is none of a task.
    pub fn hold_at(&self, folder: &Path) -> Result<Option<HeldWorktree>, WorktreeError> {
        match self.around(folder).filter(|tree| tree.path == folder) {
            Some(tree) => self.hold(&tree.repository(), &tree.branch),
            None => Ok(None),
        }
    }

    /// A further file of a worktree, which `what` names: JSON.
    pub fn file_of(&self, tree: &Worktree, what: &str) -> KeptFile<Durable> {
        let folder = self.folder_of(&tree.repository());
        KeptFile::new(folder.join(format!("{}.{what}.json", tree.name)), LONGEST)
    }

    /// Lets no other process add a worktree, of any repository.
    pub(crate) fn lock_list(&self) -> Result<HeldLock, WorktreeError> {
        let path = self.folder.join("list.lock");
        kept::lock(LockAt::File(&path), PATIENCE).map_err(WorktreeError::at(path))
    }

    fn lock(
        &self,
        repository: &GitRepository,
        branch: &str,
        patience: Duration,
    ) -> Result<HeldLock, WorktreeError> {
        // No name of a branch is that of another lock, and no two of them are alike.
        let name = &blake3::hash(branch.as_bytes()).to_hex()[..16];
        let path = self.folder_of(repository).join(format!("branch-{name}.lock"));
        kept::lock(LockAt::File(&path), patience).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => WorktreeError::Busy(branch.to_owned()),
            _ => WorktreeError::File(path, error),
        })
    }

    fn all_of(&self, repository: &GitRepository) -> Vec<(PathBuf, Worktree)> {
        let mut known = read_all(&self.folder_of(repository));
        known.retain(|(_, tree)| tree.common == repository.common());
        known
    }

    /// A folder for each repository, by the place of what its worktrees share.
    pub(crate) fn folder_of(&self, repository: &GitRepository) -> PathBuf {
        let place = repository.common().as_os_str().as_encoded_bytes();
        self.folder.join(&blake3::hash(place).to_hex()[..16])
    }
}

/// The first of the ports that the fewest worktrees have: none, as long as there are such.
fn free_of(taken: &[u16]) -> u16 {
    let count = |base: &u16| taken.iter().filter(|it| *it == base).count();
    (FIRST_PORT..=LAST_PORT).step_by(PORTS).min_by_key(count).unwrap_or(FIRST_PORT)
}

fn read_all(folder: &Path) -> Vec<(PathBuf, Worktree)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if !path.as_os_str().as_encoded_bytes().ends_with(ENDING.as_bytes()) {
            continue;
        }
        match KeptFile::<Durable>::new(&path, LONGEST).read_json() {
            Ok(Some(tree)) => all.push((path, tree)),
            Ok(None) => {}
            Err(error) => tracing::warn!(file = %path.display(), %error, "it is left alone"),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_those_of_the_fewest_worktrees() {
        assert_eq!(free_of(&[]), 20_000);
        assert_eq!(free_of(&[20_000, 20_040]), 20_020);
        let mut all: Vec<u16> = (FIRST_PORT..=LAST_PORT).step_by(PORTS).collect();
        all.extend([20_000, 20_020]);
        assert_eq!(free_of(&all), 20_040);
    }
}
