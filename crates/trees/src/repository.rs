//! Owns a repository of git: where it is, and how git is called for it.
//!
//! git runs with the rights of the person. So it is never told by a worktree's own files which repository it is, and it
//! calls no hook and no monitor of files.

mod call;
mod index;

use std::path::{Path, PathBuf};

pub use self::call::{GitCall, GitError};
pub(crate) use self::index::{Index, IndexEntry, Stat, TREE_LINK};

/// The oldest git that can merge in memory.
const MERGES: (u32, u32) = (2, 38);

/// A repository of git.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GitRepository {
    /// The folder that all worktrees share: objects, refs, configuration. A real path.
    common: PathBuf,
    /// The main worktree; None: the repository is bare.
    main: Option<PathBuf>,
    /// Whether its objects have names of SHA-1.
    is_sha1: bool,
}

/// Why a folder's repository can't be used.
#[derive(Debug, thiserror::Error)]
pub enum NoRepository {
    #[error("{} is in no git repository: run it in one, or make one by `git init`", .0.display())]
    None(PathBuf),
    #[error("{} is not what git says of it: {why}", .0.display(), why = .1)]
    Strange(PathBuf, String),
    #[error("{0}")]
    Git(#[from] GitError),
}

impl GitRepository {
    /// The repository that a folder lies in, as git finds it.
    pub fn find(folder: &Path) -> Result<Self, NoRepository> {
        let mut ask = GitCall::anywhere();
        ask.arg("-C").arg(folder).args(["rev-parse", "--path-format=absolute"]);
        ask.args(["--git-common-dir", "--show-object-format", "--is-bare-repository"]);
        let answer = ask.text().map_err(|error| match error {
            GitError::Failed { .. } => NoRepository::None(folder.to_owned()),
            error @ GitError::Start(_) => NoRepository::Git(error),
        })?;
        let mut lines = answer.lines();
        let mut next = || lines.next().unwrap_or_default().to_owned();
        let (common, format, bare) = (PathBuf::from(next()), next(), next());
        let strange = |why: &dyn ToString| NoRepository::Strange(common.clone(), why.to_string());
        let common = common.canonicalize().map_err(|error| strange(&error))?;
        let is_sha1 = format == "sha1";
        let mut repository = Self { common, main: None, is_sha1 };
        // In a linked worktree of a bare repository the answer is about that worktree.
        let list = repository.git().args(["worktree", "list", "--porcelain", "-z"]).bytes();
        // It fails where a killed git left a worktree's folder without a part; the main one is known without it.
        let list = list.or_else(|error| repository.first_listed().ok_or(error))?;
        let first = list.split(|byte| *byte == 0).take_while(|line| !line.is_empty());
        let first: Vec<_> = first.map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        let is_bare = first.iter().any(|line| line == "bare") || bare == "true";
        if !is_bare {
            let path = first.first().and_then(|line| line.strip_prefix("worktree "));
            let path = path.ok_or_else(|| strange(&"it lists no worktree"))?;
            repository.main = Path::new(path).canonicalize().ok();
        }
        Ok(repository)
    }

    /// The main worktree, or the bare repository, in the form in which git lists it.
    fn first_listed(&self) -> Option<Vec<u8>> {
        let mut ask = self.git();
        let is_bare = ask.args(["config", "--type=bool", "--get", "core.bare"]).text();
        let is_bare = is_bare.is_ok_and(|bare| bare == "true");
        let place = if is_bare { &self.common } else { self.common.parent()? };
        let mut line = b"worktree ".to_vec();
        line.extend(place.as_os_str().as_encoded_bytes());
        line.extend(if is_bare { &b"\0bare\0"[..] } else { &b"\0"[..] });
        Some(line)
    }

    /// A repository whose folder is known. Nothing is looked at.
    pub(crate) fn known(common: PathBuf, main: Option<PathBuf>, is_sha1: bool) -> Self {
        Self { common, main, is_sha1 }
    }

    /// The folder that all its worktrees share.
    pub fn common(&self) -> &Path {
        &self.common
    }

    /// The main worktree; None: the repository is bare.
    pub fn main(&self) -> Option<&Path> {
        self.main.as_deref()
    }

    pub(crate) fn is_sha1(&self) -> bool {
        self.is_sha1
    }

    /// A call of git for what all worktrees share.
    pub fn git(&self) -> GitCall {
        GitCall::of(&self.common, None)
    }

    /// A call of git for the main worktree.
    pub fn git_in_main(&self) -> GitCall {
        GitCall::of(&self.common, self.main.as_deref())
    }

    /// The commits that names mean, in order; None where there is none.
    pub(crate) fn commits(&self, names: &[String]) -> Result<Vec<Option<String>>, GitError> {
        let mut ask = self.git();
        ask.args(["cat-file", "--batch-check=%(objectname) %(objecttype)"]);
        let answer = ask.input(names.join("\n") + "\n").text()?;
        let commit = |line: &str| line.strip_suffix(" commit").map(str::to_owned);
        Ok(answer.lines().map(commit).collect())
    }

    /// The commit of a branch; None without it.
    pub fn tip(&self, branch: &str) -> Option<String> {
        self.reference(&format!("refs/heads/{branch}"))
    }

    /// The object of a full name of a ref; None without it.
    pub fn reference(&self, name: &str) -> Option<String> {
        let mut ask = self.git();
        ask.args(["rev-parse", "--verify", "--quiet", "--end-of-options", name]);
        ask.text().ok()
    }

    /// The branch that the main worktree, or a bare repository, has checked out; None: no branch.
    pub fn main_branch(&self) -> Option<String> {
        let head = std::fs::read_to_string(self.common.join("HEAD")).ok()?;
        head.trim_end().strip_prefix("ref: refs/heads/").map(str::to_owned)
    }

    /// The worktrees that have a branch checked out, the main one too.
    pub fn checkouts(&self, branch: &str) -> Result<Vec<PathBuf>, GitError> {
        let list = self.git().args(["worktree", "list", "--porcelain", "-z"]).bytes()?;
        let wanted = format!("branch refs/heads/{branch}");
        let (mut found, mut path) = (Vec::new(), None);
        for line in list.split(|byte| *byte == 0) {
            let line = String::from_utf8_lossy(line);
            if let Some(place) = line.strip_prefix("worktree ") {
                path = Some(PathBuf::from(place));
            } else if line == wanted {
                // One that was removed by hand is listed until git prunes it.
                found.extend(path.take().filter(|path| path.is_dir()));
            }
        }
        Ok(found)
    }

    /// Whether this git merges in memory; the error is a sentence with its version.
    pub fn merges_in_memory(&self) -> Result<(), String> {
        let version = self.git().arg("version").text().map_err(|error| error.to_string())?;
        let number = version.split(' ').nth(2).unwrap_or_default();
        let mut parts = number.split('.').map(|part| part.parse::<u32>().unwrap_or_default());
        let found = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if found >= MERGES {
            return Ok(());
        }
        let (major, minor) = MERGES;
        Err(format!("git {number} cannot merge in memory: git {major}.{minor} or newer does"))
    }
}
