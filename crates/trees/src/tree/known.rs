//! The knowledge of a worktree, and calls of git for it.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use serde::{Deserialize, Serialize};

use super::WorktreeError;
use crate::repository::{GitCall, GitError, GitRepository};

/// Copied files that git is told to leave out.
const MOST_EXCLUDED: usize = 500;

/// Bytes of a log of git, and commits of it, that are looked at.
const LONGEST_LOG: u64 = 4 << 20;
const MOST_LOGGED: usize = 64;

/// Files of git's folder that say what is under way.
const SEQUENCES: [(&str, &str); 5] = [
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
];

/// A worktree of a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Worktree {
    /// Its name among the worktrees of the repository, and that of its folder.
    pub name: String,
    pub branch: String,
    /// Where its files are.
    pub path: PathBuf,
    /// The repository's folder that all worktrees share.
    pub common: PathBuf,
    /// The main worktree; None: the repository is bare.
    pub main: Option<PathBuf>,
    /// Its own folder in `common`: HEAD, index, state of a rebase. Empty until git has made it.
    pub git_dir: PathBuf,
    /// The commit that it began at.
    pub base: String,
    /// The branch that it began at, which `merge` takes if none is named.
    pub base_branch: Option<String>,
    /// Whether the branch was made with it.
    pub made_branch: bool,
    pub state: WorktreeState,
    /// Whose it is: `run-ID`, or `TEAM/AGENT`.
    pub owner: String,
    /// The first task that was given in it.
    pub task: Option<String>,
    pub made_at_ms: u64,
    /// The first of the ports that its programs may use: no other worktree has them.
    #[serde(default)]
    pub port_base: u16,
    /// The files that git ignores and that were copied in, by their path: their content then.
    #[serde(default)]
    pub copied: BTreeMap<String, CopiedFile>,
    /// Links to files and folders of the main worktree.
    #[serde(default)]
    pub linked: Vec<String>,
    /// Folders that builds fill: no recovery has them.
    #[serde(default)]
    pub build: Vec<String>,
    /// Whether `setup` ended well; None: there is none, or it did not end.
    #[serde(default)]
    pub setup: Option<bool>,
    /// The full name of its last recovery's ref.
    #[serde(default)]
    pub recovery: Option<String>,
    #[serde(default)]
    pub is_sha1: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorktreeState {
    /// Not whole yet: nobody worked in it.
    Making,
    Ready,
    /// All of it is in a recovery, and its files are being removed.
    Cleaning,
    /// Its files are gone; its recovery is there.
    Gone,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CopiedFile {
    pub bytes: u64,
    /// BLAKE3 of the content, or of the place that a link names.
    pub hash: String,
}

/// The beginning of a plain file that an agent may have written: never through a link, and never waiting for a pipe.
pub fn read_plain(path: &Path, most: u64) -> Option<Vec<u8>> {
    let flags = O_NOFOLLOW | O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(most).read_to_end(&mut text).ok()?;
    Some(text)
}

/// Lets its owner remove what is below a folder, such as a package manager's cache that may not be written. Follows no link.
pub(crate) fn make_removable(top: &Path) {
    let mut ahead = vec![top.to_owned()];
    while let Some(folder) = ahead.pop() {
        let mode = folder.symlink_metadata().map_or(0o700, |found| found.mode() & 0o7777);
        if mode & 0o700 != 0o700 {
            let _ = fs::set_permissions(&folder, Permissions::from_mode(mode | 0o700));
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                ahead.push(entry.path());
            }
        }
    }
}

impl CopiedFile {
    /// The content of a file now.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let found = path.symlink_metadata()?;
        let hash = if found.is_symlink() {
            blake3::hash(fs::read_link(path)?.as_os_str().as_encoded_bytes())
        } else {
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(&mut File::open(path)?)?;
            hasher.finalize()
        };
        Ok(Self { bytes: found.len(), hash: hash.to_hex().to_string() })
    }
}

impl Worktree {
    pub fn repository(&self) -> GitRepository {
        GitRepository::known(self.common.clone(), self.main.clone(), self.is_sha1)
    }

    /// A call of git for this worktree.
    pub fn git(&self) -> GitCall {
        GitCall::of(&self.git_dir, Some(&self.path))
    }

    /// The folder that git keeps for the worktree, by the place of its files.
    pub(crate) fn find_git_dir(&self) -> Option<PathBuf> {
        let entry = self.path.join(".git");
        let all = fs::read_dir(self.common.join("worktrees")).ok()?.flatten();
        all.map(|it| it.path()).find(|admin| {
            let named = fs::read_to_string(admin.join("gitdir")).unwrap_or_default();
            let named = admin.join(named.trim_end());
            named == entry || named.canonicalize().is_ok_and(|named| named == entry)
        })
    }

    /// Takes a worktree whose files are gone out of git's list.
    pub(crate) fn prune(&self) -> Result<(), WorktreeError> {
        if !self.path.exists()
            && let Some(admin) = self.find_git_dir()
        {
            fs::remove_dir_all(&admin).map_err(WorktreeError::at(admin))?;
            // As git does where it was the last one.
            let _ = fs::remove_dir(self.common.join("worktrees"));
        }
        Ok(())
    }

    /// Completes git's folder of a worktree, which a killed process may have left without one of its files: git fails in
    /// the whole repository where one lacks `commondir`.
    pub(crate) fn complete_git_dir(&self) {
        let Some(admin) = self.find_git_dir() else { return self.remove_unnamed() };
        let head = format!("ref: {}\n", self.reference());
        for (name, text) in [("commondir", "../..\n"), ("HEAD", &*head)] {
            let file = admin.join(name);
            if file.symlink_metadata().map_or(0, |found| found.len()) == 0 {
                let _ = fs::write(file, text);
            }
        }
        let index = admin.join("index");
        let mut list = GitCall::of(&admin, None);
        if index.exists() && list.args(["ls-files", "-s"]).bytes().is_err() {
            // It is made again by the commit.
            let _ = fs::remove_file(index);
        }
    }

    /// Removes what a git left that was killed before it noted for which place its folder is.
    fn remove_unnamed(&self) {
        let Some(name) = self.path.file_name().and_then(|name| name.to_str()) else { return };
        for admin in fs::read_dir(self.common.join("worktrees")).into_iter().flatten().flatten() {
            // git adds a number where a name is taken.
            let is_number = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
            let named = admin.file_name();
            let is_its = named.to_str().and_then(|it| it.strip_prefix(name)).is_some_and(is_number);
            let place = admin.path().join("gitdir").symlink_metadata();
            if is_its && place.map_or(0, |found| found.len()) == 0 {
                let _ = fs::remove_dir_all(admin.path());
            }
        }
    }

    /// Whether its files are there, all of them; false: it was cleaned, or is half made or half cleaned. The error is for one that somebody moved or removed.
    pub fn is_there(&self) -> Result<bool, WorktreeError> {
        let is_folder = self.path.is_dir();
        if self.state == WorktreeState::Ready && !is_folder {
            let (branch, place) = (self.branch.clone(), self.path.clone());
            return Err(WorktreeError::Missing { branch, place });
        }
        Ok(self.state == WorktreeState::Ready && is_folder)
    }

    /// The last commit that its log of HEAD has; None: there is none any more.
    pub(crate) fn last_logged(&self) -> Option<String> {
        let text = read_plain(&self.git_dir.join("logs/HEAD"), LONGEST_LOG)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let named = text.lines().rev().filter_map(|line| line.split(' ').nth(1)).take(MOST_LOGGED);
        let named: Vec<_> = named.map(|name| format!("{name}^{{commit}}")).collect();
        self.repository().commits(&named).ok()?.into_iter().flatten().next()
    }

    /// The full name of its branch.
    pub fn reference(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }

    /// Commits all that is not committed, but for what was linked in; returns whether there was anything. `message`: None has
    /// that of the merge which is under way.
    pub fn commit_all(&self, message: Option<&str>) -> Result<bool, WorktreeError> {
        let mut add = self.git();
        add.args(["add", "--all", "--", "."]);
        add.args(self.brought_in()?).bytes()?;
        let mut list = self.git();
        list.args(["diff", "--cached", "--raw", "--no-renames", "-z", "HEAD", "--"]);
        let list = list.bytes()?;
        let mut fields = list.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        while let (Some(line), Some(path)) = (fields.next(), fields.next()) {
            if line.starts_with(":000000 160000") {
                self.git().args(["reset", "--quiet", "--"]).arg(&*path).bytes()?;
                return Err(WorktreeError::Nested(path.into_owned()));
            }
        }
        let mut is_same = self.git();
        is_same.args(["diff", "--cached", "--quiet", "HEAD", "--"]);
        // A merge may have one side's files.
        if !self.is_merging() && is_same.answer()? {
            return Ok(false);
        }
        let mut commit = self.git();
        commit.args(["commit", "--quiet", "--no-gpg-sign", "--cleanup=strip"]);
        match message {
            Some(message) => commit.args(["-F", "-"]).input(message),
            None => commit.arg("--no-edit"),
        };
        commit.bytes()?;
        Ok(true)
    }

    pub(crate) fn is_merging(&self) -> bool {
        self.git_dir.join("MERGE_HEAD").exists()
    }

    /// Arguments of git by which it leaves out what was linked and copied in. Paths that git ignores need none.
    pub(crate) fn brought_in(&self) -> Result<Vec<String>, GitError> {
        // git knows of no path behind a link.
        let is_there = |path: &&str| {
            let above = Path::new(path).ancestors().skip(1);
            let mut above = above.filter(|folder| !folder.as_os_str().is_empty());
            !above.any(|folder| self.path.join(folder).is_symlink())
        };
        let all = self.linked.iter().chain(self.copied.keys()).map(String::as_str);
        let all: Vec<_> = all.filter(is_there).collect();
        if all.is_empty() {
            return Ok(Vec::new());
        }
        let mut ask = self.git();
        // A name that begins with a colon is a name.
        let plain: Vec<_> = all.iter().map(|path| format!("./{path}")).collect();
        ask.args(["check-ignore", "-z", "--stdin"]).input(plain.join("\0"));
        let (_, ignored) = ask.code_and_bytes()?;
        let ignored: HashSet<_> =
            ignored.split(|byte| *byte == 0).filter_map(|path| path.strip_prefix(b"./")).collect();
        let seen = all.into_iter().filter(|path| !ignored.contains(path.as_bytes()));
        let seen = seen.take(MOST_EXCLUDED);
        Ok(seen.map(|path| format!(":(exclude,top,literal){path}")).collect())
    }

    /// Whether it is on its branch, and in the middle of nothing; the error says in what it is, and how it goes on.
    pub fn is_settled(&self) -> Result<(), String> {
        let place = self.path.display();
        for (file, what) in SEQUENCES {
            if self.git_dir.join(file).exists() {
                let branch = &self.branch;
                let how = if what == "merge" {
                    format!("settle it there, and `eisen-core merge {branch} --commit` ends it")
                } else {
                    "end it there".to_owned()
                };
                return Err(format!("{place} is in the middle of a {what}: {how}"));
            }
        }
        self.is_on_branch()
    }

    /// Says on what it is, where that is not its branch.
    pub fn is_on_branch(&self) -> Result<(), String> {
        let place = self.path.display();
        let on = self.git().args(["symbolic-ref", "--quiet", "HEAD"]).text().unwrap_or_default();
        if on == self.reference() {
            return Ok(());
        }
        let on = on.strip_prefix("refs/heads/").map_or("no branch", |branch| branch);
        let branch = &self.branch;
        Err(format!("{place} is on {on}, not on {branch}: `git -C {place} switch {branch}`"))
    }

    /// The variables of programs that work in it: ports and a name of its own, and git that packs nothing by itself.
    pub fn variables(&self) -> BTreeMap<String, String> {
        let named: String = format!("{}-{}", self.project(), self.name)
            .to_lowercase()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
            .collect();
        let mut all = BTreeMap::from([
            ("EISEN_PORT_BASE".to_owned(), self.port_base.to_string()),
            ("COMPOSE_PROJECT_NAME".to_owned(), named.trim_start_matches(['-', '_']).to_owned()),
        ]);
        let first = std::env::var("GIT_CONFIG_COUNT").ok().and_then(|it| it.parse().ok());
        let mut count: usize = first.unwrap_or_default();
        let hooks = self.hooks().map(|hooks| ("core.hooksPath", hooks.display().to_string()));
        let settings = [("gc.auto", "0".to_owned()), ("maintenance.auto", "false".to_owned())];
        for (key, value) in settings.into_iter().chain(hooks) {
            all.insert(format!("GIT_CONFIG_KEY_{count}"), key.to_owned());
            all.insert(format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
        all.insert("GIT_CONFIG_COUNT".to_owned(), count.to_string());
        all
    }

    /// The hooks of the main worktree, where a relative `core.hooksPath` names a folder that git does not have.
    pub fn hooks(&self) -> Option<PathBuf> {
        let mut ask = self.repository().git();
        let named = ask.args(["config", "--local", "--get", "core.hooksPath"]).text().ok()?;
        let path = Path::new(&named);
        if named.is_empty() || path.is_absolute() || self.path.join(path).exists() {
            return None;
        }
        Some(self.main.as_ref()?.join(path)).filter(|hooks| hooks.is_dir())
    }

    /// The places of the repository's other worktrees: closed to whoever works in this one.
    pub fn beside(&self) -> Vec<PathBuf> {
        let mut all: Vec<_> = self.main.iter().cloned().collect();
        all.extend(super::default_folder(&self.repository()));
        let admins = std::fs::read_dir(self.common.join("worktrees")).into_iter().flatten();
        for admin in admins.flatten() {
            let entry = std::fs::read_to_string(admin.path().join("gitdir")).unwrap_or_default();
            let place = Path::new(entry.trim_end()).parent().filter(|place| place.is_absolute());
            all.extend(place.filter(|place| *place != self.path).map(Path::to_owned));
        }
        all
    }

    /// The name of the repository's folder.
    fn project(&self) -> String {
        let top = self.main.as_deref().unwrap_or(&self.common);
        top.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Whether a path, relative to the worktree, lies in a folder that builds fill.
    pub(crate) fn is_of_build(&self, path: &Path) -> bool {
        self.build.iter().any(|folder| path.starts_with(folder))
            || path.iter().any(|name| self.build.iter().any(|it| name == it.as_str()))
    }

    /// Whether a path is, or lies in, what was linked in.
    pub(crate) fn is_linked(&self, path: &Path) -> bool {
        self.linked.iter().any(|link| path.starts_with(link))
    }
}
