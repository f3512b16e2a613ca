//! Owns the ignore files of git and ripgrep: reads them safely, even if an agent replaced them, and
//! finds the paths that they name.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use ignore::gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path};
use ignore::{DirEntry, Match};
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

/// Ignore files of one folder; those of the first name override those of the second.
const NAMES: [&str; 2] = [".ignore", ".gitignore"];

/// Bytes of the largest ignore file; larger ones are not read.
const LARGEST: u64 = 1 << 20;

/// The ignore files that count beside those of the folders that are walked.
#[derive(Clone, Copy, Debug)]
pub struct Further {
    /// Whether the ignore files of the folders above count.
    pub above: bool,
    /// The user's, for all repositories.
    pub of_user: bool,
}

/// The rules of the ignore files for one walk. Reads those of each folder once.
#[derive(Debug)]
pub struct Ignored {
    /// As it is walked.
    root: PathBuf,
    real: PathBuf,
    hides: bool,
    top: Arc<FolderRules>,
    /// The rules of the repository, and of the user.
    last: Vec<Gitignore>,
    folders: RwLock<HashMap<PathBuf, Arc<FolderRules>>>,
}

/// The rules of a folder's ignore files, and of those above it.
#[derive(Debug)]
struct FolderRules {
    own: [Gitignore; 2],
    above: Option<Arc<Self>>,
}

impl Ignored {
    /// For a walk from `root`.
    pub fn new(root: &Path, further: Further) -> Self {
        let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let above: Vec<&Path> = real.ancestors().skip(1).filter(|_| further.above).collect();
        let top = above
            .into_iter()
            .rev()
            .fold(FolderRules::none(), |top, folder| FolderRules::of(folder, top));
        let top = FolderRules::of(&real, top);
        let repositories = real.ancestors().take(if further.above { usize::MAX } else { 1 });
        let excluded = repositories.map(|folder| (folder, folder.join(".git/info/exclude")));
        let of_user = gitconfig_excludes_path().filter(|_| further.of_user);
        let last = excluded.chain(of_user.map(|file| (&*real, file)));
        let last = last.map(|(folder, file)| rules(folder, [(&*file, Links::Followed)])).collect();
        let folders = RwLock::default();
        Self { root: root.to_owned(), real, hides: false, top, last, folders }
    }

    /// Hidden files count as ignored, unless an ignore file says otherwise.
    #[must_use]
    pub fn with_hidden(self) -> Self {
        Self { hides: true, ..self }
    }

    /// Whether an entry of the walk is ignored. An entry below an ignored one is not asked about.
    pub fn has(&self, entry: &DirEntry) -> bool {
        let Ok(inside) = entry.path().strip_prefix(&self.root) else { return false };
        let Some(name) = inside.file_name() else { return false };
        let path = self.real.join(inside);
        let rules = self.rules(path.parent().unwrap_or(&self.real));
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let found = rules.matched(&path, is_folder);
        let found = found.or_else(|| matched(self.last.iter(), &path, is_folder));
        found.unwrap_or(self.hides && name.as_bytes().starts_with(b"."))
    }

    fn rules(&self, folder: &Path) -> Arc<FolderRules> {
        if folder == self.real || !folder.starts_with(&self.real) {
            return Arc::clone(&self.top);
        }
        let known = self.folders.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(folder) {
            return Arc::clone(known);
        }
        drop(known);
        let above = self.rules(folder.parent().unwrap_or(&self.real));
        let rules = FolderRules::of(folder, above);
        let mut known = self.folders.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(folder.to_owned()).or_insert(rules))
    }
}

impl FolderRules {
    fn none() -> Arc<Self> {
        Arc::new(Self { own: [Gitignore::empty(), Gitignore::empty()], above: None })
    }

    /// The rules of a folder; those above if it has none.
    fn of(folder: &Path, above: Arc<Self>) -> Arc<Self> {
        let own = NAMES.map(|name| rules(folder, [(&*folder.join(name), Links::Refused)]));
        if own.iter().all(Gitignore::is_empty) {
            return above;
        }
        Arc::new(Self { own, above: Some(above) })
    }

    /// Whether the path is ignored; None if no rule names it.
    fn matched(&self, path: &Path, is_folder: bool) -> Option<bool> {
        let chain = || std::iter::successors(Some(self), |rules| rules.above.as_deref());
        (0..NAMES.len()).find_map(|at| matched(chain().map(|it| &it.own[at]), path, is_folder))
    }
}

/// The verdict of the first rules that name the path.
fn matched<'a>(
    rules: impl IntoIterator<Item = &'a Gitignore>,
    path: &Path,
    is_folder: bool,
) -> Option<bool> {
    rules.into_iter().find_map(|rules| match rules.matched(path, is_folder) {
        Match::None => None,
        found => Some(found.is_ignore()),
    })
}

/// Whether an ignore file may be a symbolic link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Links {
    /// As in git: a link could lead to a device, or to a file that never ends.
    Refused,
    /// For files that are the user's own.
    Followed,
}

/// The rules of ignore files for paths in `folder`; later ones override earlier ones. Invalid lines
/// are skipped, as in git.
pub fn rules<'a>(folder: &Path, files: impl IntoIterator<Item = (&'a Path, Links)>) -> Gitignore {
    let mut builder = GitignoreBuilder::new(folder);
    let mut is_empty = true;
    for (file, links) in files {
        let Some(text) = read(file, links) else { continue };
        for line in text.trim_start_matches('\u{feff}').lines() {
            is_empty = false;
            let _ = builder.add_line(Some(file.to_owned()), line);
        }
    }
    if is_empty {
        return Gitignore::empty();
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// The text of a regular file within the bounds. Never waits.
fn read(file: &Path, links: Links) -> Option<String> {
    let refused = if links == Links::Refused { OFlag::O_NOFOLLOW } else { OFlag::empty() };
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let file = File::from(open(file, flags | refused, Mode::empty()).ok()?);
    file.metadata().ok().filter(Metadata::is_file)?;
    let mut bytes = Vec::new();
    // The kernel does not know the length of all files.
    file.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= LARGEST).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
