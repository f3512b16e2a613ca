//! The git folder: where git finds it from the workspace, and which of its files may be read and
//! written.
//!
//! A process that can write hooks or config of a git folder runs commands as the user. The git
//! folder of the workspace's repository is therefore judged by [`GitAccess`] alone, and so are those
//! of its submodules in it; anything else below a `.git` in the workspace (another repository, one
//! that an agent made) also needs a pattern.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use memchr::memmem;
use nix::libc::O_NONBLOCK;
use nix::unistd::geteuid;

use super::GitAccess;
use super::patterns::Subtree;
use super::real::{PATH_MAX, real};
use crate::model::{Action, within};

/// Files of a git folder that decide which commands git runs.
const SEALED: [&str; 4] = ["hooks", "info", "config", "config.worktree"];

/// Files by which git recognizes a repository.
const PILLARS: [&str; 3] = ["HEAD", "objects", "refs"];

/// The folder of the git folders of submodules.
const MODULES: &str = "modules";

/// Folders that are looked at for submodules.
const MOST_MODULES: usize = 4096;

/// Files that make a folder among objects, refs or logs a repository of its own.
const NESTED: [&str; 3] = [".git", "objects", "commondir"];

/// Files in `objects/info` that make git read objects from elsewhere.
const ELSEWHERE: [&str; 2] = ["alternates", "http-alternates"];

#[derive(Debug)]
pub(super) struct Git {
    access: GitAccess,
    workspace: PathBuf,
    /// The repository's `.git`, and the folders that it leads to.
    own: Vec<PathBuf>,
    /// The git folders of submodules in these, each before the one around it.
    modules: Vec<PathBuf>,
    /// The real paths of sealed files that are links.
    sealed: Vec<PathBuf>,
    /// The branch of a worktree of a task, which writes its own part alone.
    branch: Option<String>,
}

/// A part of a repository, as a worktree of a task sees it.
enum RepositoryPart<'a> {
    /// Not divided: the workspace is no such worktree, or the path is of another repository in it.
    Whole,
    /// The worktree's own folder.
    Own,
    /// The folder that all worktrees share; this one's branch is named.
    Shared(&'a str),
    /// Submodules of the main worktree.
    Others,
}

/// The git rules' verdict on an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GitVerdict {
    /// The path is in no git folder.
    Nothing,
    /// Allowed without a pattern.
    Allowed,
    /// Allowed if the patterns do.
    Defer,
    Denied,
}

impl Git {
    /// Looks for the repository of a workspace, as git would. `workspace` must be a real path.
    pub(super) fn find(workspace: &Path, access: GitAccess, branch: Option<String>) -> Self {
        let own = repository(workspace).unwrap_or_default();
        let modules = submodules(&own);
        let folders = own.iter().chain(&modules);
        let named = folders.flat_map(|folder| SEALED.map(|name| folder.join(name)));
        let sealed = named.filter_map(|path| real(&path).filter(|real| *real != path)).collect();
        Self { access, workspace: workspace.to_owned(), own, modules, sealed, branch }
    }

    /// Judges a real path.
    pub(super) fn judge(&self, real: &Path, action: Action) -> GitVerdict {
        let writes = action == Action::Write;
        if writes && self.is_sealed(real) {
            return GitVerdict::Denied;
        }
        let Some((within, verdict)) = self.within(real) else { return GitVerdict::Nothing };
        if self.is_index_of_others(real) {
            return GitVerdict::Denied;
        }
        match self.access {
            GitAccess::None => GitVerdict::Denied,
            GitAccess::Read if writes => GitVerdict::Denied,
            GitAccess::Commit if writes && !self.is_record(real, within) => GitVerdict::Denied,
            GitAccess::Read | GitAccess::Commit => verdict,
        }
    }

    /// The result for all paths below a real folder in a git folder, and whether it needs a
    /// pattern.
    pub(super) fn below(&self, folder: &Path, action: Action) -> Option<(Subtree, GitVerdict)> {
        let (within, verdict) = self.within(folder)?;
        let writes = action == Action::Write;
        let leads_to_module = || self.modules.iter().any(|module| module.starts_with(folder));
        let subtree = match self.access {
            GitAccess::None => Subtree::None,
            GitAccess::Read if writes => Subtree::None,
            GitAccess::Commit if writes && leads_to_module() => Subtree::Mixed,
            GitAccess::Commit if writes => match self.part(folder) {
                RepositoryPart::Own if is_sequence(within) => Subtree::Mixed,
                RepositoryPart::Whole | RepositoryPart::Own => records_below(within),
                RepositoryPart::Shared(branch) => own_records_below(within, branch),
                RepositoryPart::Others => Subtree::None,
            },
            // Indices of other worktrees are closed.
            GitAccess::Read | GitAccess::Commit if self.leads_to_others(folder) => Subtree::Mixed,
            GitAccess::Read | GitAccess::Commit => Subtree::All,
        };
        Some((subtree, verdict))
    }

    /// The real paths that are judged differently from their surroundings.
    pub(super) fn places(&self) -> impl Iterator<Item = &Path> {
        self.own.iter().chain(&self.modules).chain(&self.sealed).map(PathBuf::as_path)
    }

    /// Whether a real place is, or is in, a git folder.
    pub(super) fn holds(&self, real: &Path) -> bool {
        self.within(real).is_some()
    }

    /// Whether a real place is, or is in, the repository's git folder.
    pub(super) fn is_own(&self, real: &Path) -> bool {
        self.within(real).is_some_and(|(_, verdict)| verdict == GitVerdict::Allowed)
    }

    /// Whether a real path is sealed: no permission to write covers it.
    pub(super) fn is_sealed(&self, real: &Path) -> bool {
        self.sealed.iter().any(|sealed| within(sealed, real).is_some())
    }

    /// Whether a real path is one of the files by which git recognizes a repository.
    pub(super) fn is_pillar(&self, real: &Path) -> bool {
        let Some((mut within, _)) = self.within(real) else { return false };
        while within.starts_with("worktrees") || within.starts_with("modules") {
            let mut names = within.iter();
            names.by_ref().take(2).for_each(drop);
            within = names.as_path();
        }
        PILLARS.iter().any(|pillar| within == Path::new(pillar))
    }

    /// The submodule in whose git folder a real path lies, by its name.
    pub(super) fn submodule(&self, real: &Path) -> Option<&Path> {
        let module = self.modules.iter().find(|module| within(module, real).is_some())?;
        self.own.iter().find_map(|own| within(&own.join(MODULES), module))
    }

    pub(super) fn access(&self) -> GitAccess {
        self.access
    }

    /// Whether a commit in this workspace writes a path, `within` its git folder.
    fn is_record(&self, real: &Path, within: &Path) -> bool {
        match self.part(real) {
            RepositoryPart::Whole => is_record(within),
            RepositoryPart::Own => is_record(within) || is_sequence(within),
            RepositoryPart::Shared(branch) => is_own_record(within, branch),
            RepositoryPart::Others => false,
        }
    }

    /// Whether a path is the index of another worktree: it names contents that no commit has.
    fn is_index_of_others(&self, real: &Path) -> bool {
        let Some((git, common)) = self.divided() else { return false };
        real.file_name().is_some_and(|name| name == "index")
            && real.parent().is_some_and(|folder| {
                folder != git
                    && (folder == common || folder.parent() == Some(&common.join("worktrees")))
            })
    }

    /// Whether a folder has, or leads to, the index of another worktree.
    fn leads_to_others(&self, folder: &Path) -> bool {
        let Some((git, common)) = self.divided() else { return false };
        let all = common.join("worktrees");
        folder == common || folder == all || folder != git && folder.parent() == Some(&all)
    }

    /// The worktree's own folder of git, and the one that all share, where a task has the worktree.
    fn divided(&self) -> Option<(&Path, &Path)> {
        match (&self.branch, &self.own[..]) {
            (Some(_), [_, git, common]) if git != common => Some((git, common)),
            _ => None,
        }
    }

    /// The part of a repository in which a path of a git folder lies.
    fn part(&self, real: &Path) -> RepositoryPart<'_> {
        let (Some(branch), [_, git, common]) = (&self.branch, &self.own[..]) else {
            return RepositoryPart::Whole;
        };
        if git == common {
            return RepositoryPart::Whole;
        }
        if within(git, real).is_some() {
            return RepositoryPart::Own;
        }
        match within(common, real) {
            Some(rest) if rest.starts_with(MODULES) => RepositoryPart::Others,
            Some(_) => RepositoryPart::Shared(branch),
            None => RepositoryPart::Whole,
        }
    }

    /// The path relative to its git folder, and the verdict if [`GitAccess`] allows it.
    fn within<'a>(&self, real: &'a Path) -> Option<(&'a Path, GitVerdict)> {
        let inside = within(&self.workspace, real);
        // A worktree may itself lie in the git folder: the workspace is no part of it.
        let around = |own: &Path| inside.is_some() && within(own, &self.workspace).is_some();
        let mut own = self.modules.iter().chain(&self.own).filter(|own| !around(own));
        match own.find_map(|own| within(own, real)) {
            Some(within) => Some((within, GitVerdict::Allowed)),
            None => Some((inside.and_then(nested)?, GitVerdict::Defer)),
        }
    }
}

/// Whether `git commit` writes a path, given relative to its git folder. A list of writable files,
/// since later versions of git may obey further ones.
fn is_record(within: &Path) -> bool {
    let Some(names) = within.iter().map(|name| name.to_str()).collect::<Option<Vec<_>>>() else {
        return false;
    };
    let mut names = names.as_slice();
    loop {
        match names {
            // A submodule that came after the start: its name may contain slashes, so the start of
            // its folder is unknown.
            ["worktrees" | "modules", _, behind @ ..] => {
                if behind.iter().any(|name| SEALED.contains(name)) {
                    return false;
                }
                names = behind;
            }
            ["objects", "info", name]
                if ELSEWHERE.contains(&name.strip_suffix(".lock").unwrap_or(name)) =>
            {
                return false;
            }
            ["objects" | "refs" | "logs", behind @ ..] if !behind.is_empty() => {
                return !behind.iter().any(|name| NESTED.contains(name));
            }
            // Made with the first commit of a repository or a worktree.
            ["refs" | "logs"] => return true,
            [name] => return is_record_file(name),
            _ => return false,
        }
    }
}

/// The state of a rebase, or of a row of picks, in a worktree's own folder.
const SEQUENCES: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];

/// Whether a path, within a worktree's own folder, is the state of a rebase. git goes on with it only when it is told to.
fn is_sequence(within: &Path) -> bool {
    let mut names = within.iter();
    names.next().is_some_and(|first| SEQUENCES.iter().any(|name| first == *name))
        && !names.any(|name| NESTED.iter().chain(&SEALED).any(|it| name == *it))
}

/// Files that hold something of all worktrees and that a commit locks, but does not replace.
const LOCKED: [&str; 2] = ["packed-refs.lock", "maintenance.lock"];

/// Folders that the first log of a repository makes.
const LOGS: [&str; 3] = ["logs", "logs/refs", "logs/refs/heads"];

/// Whether a commit in a worktree of a task writes a path of what all worktrees share: objects, and the worktree's
/// own branch with its log.
fn is_own_record(within: &Path, branch: &str) -> bool {
    if within.starts_with("objects") {
        return is_record(within);
    }
    let is_any = |names: &[&str]| names.iter().any(|name| within == Path::new(name));
    if is_any(&LOCKED) || is_any(&LOGS) {
        return true;
    }
    let heads = within.strip_prefix("logs").unwrap_or(within);
    let Some(name) = heads.strip_prefix("refs/heads").ok().and_then(Path::to_str) else {
        return false;
    };
    let own = name.strip_prefix(branch);
    let is_own =
        own.is_some_and(|rest| rest.is_empty() || rest == ".lock" || rest.starts_with('/'));
    // git removes folders that are empty, and makes them again.
    let is_above = branch.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
    (is_own || is_above && !name.is_empty()) && is_record(within)
}

/// Whether such a commit writes something below a folder.
fn own_records_below(within: &Path, branch: &str) -> Subtree {
    let heads = within.strip_prefix("logs").unwrap_or(within);
    let own = Path::new("refs/heads").join(branch);
    let leads_to_own = own.starts_with(heads) || heads.starts_with(&own);
    if within.as_os_str().is_empty() || within.starts_with("objects") || leads_to_own {
        records_below(within)
    } else {
        Subtree::None
    }
}

/// Whether `git commit` writes something below a folder, given relative to its git folder.
fn records_below(within: &Path) -> Subtree {
    let Some(names) = within.iter().map(|name| name.to_str()).collect::<Option<Vec<_>>>() else {
        return Subtree::None;
    };
    let mut names = names.as_slice();
    while let ["worktrees" | "modules", _, behind @ ..] = names {
        names = behind;
    }
    match names {
        [] | ["worktrees" | "modules"] => Subtree::Mixed,
        ["objects" | "refs" | "logs", behind @ ..]
            if !behind.iter().any(|name| NESTED.contains(name)) =>
        {
            Subtree::Mixed
        }
        _ => Subtree::None,
    }
}

fn is_record_file(name: &str) -> bool {
    let name = name.strip_suffix(".lock").unwrap_or(name);
    matches!(name, "HEAD" | "index" | "AUTO_MERGE" | "SQUASH_MSG" | "gc.pid" | "gc.log")
        || name.ends_with("_HEAD")
        || name.ends_with("_EDITMSG")
        || ["MERGE_", "packed-refs", "sharedindex.", "next-index-", "index.stash."]
            .iter()
            .any(|start| name.starts_with(start))
}

/// The rest of a path after its first `.git`.
fn nested(inside: &Path) -> Option<&Path> {
    memmem::find(inside.as_os_str().as_bytes(), b".git")?;
    let mut names = inside.iter();
    names.find(|name| *name == ".git")?;
    Some(names.as_path())
}

/// The `.git` that git finds from the workspace upwards, the git folder, and the one that it
/// shares with other worktrees.
///
/// Agents may read its target, so a pointer to a folder that is no repository, or one of another
/// user in a folder above, is not followed.
fn repository(workspace: &Path) -> Option<Vec<PathBuf>> {
    let owners = [fs::metadata(workspace).ok()?.uid(), geteuid().as_raw()];
    for folder in workspace.ancestors() {
        let entry = folder.join(".git");
        let Ok(found) = fs::metadata(&entry) else { continue };
        let git = if found.is_dir() {
            real(&entry)?
        } else {
            real(&folder.join(pointer(&entry, "gitdir: ")?))?
        };
        let common = match pointer(&git.join("commondir"), "") {
            Some(common) => real(&git.join(common))?,
            None => git.clone(),
        };
        let owner = fs::symlink_metadata(&entry).ok()?.uid();
        if is_repository(&git, &common) && owners.contains(&owner) {
            return Some(vec![entry, git, common]);
        }
        if !found.is_dir() {
            return None;
        }
    }
    None
}

/// The git folders of submodules below the folders of a repository, and of those in them, each before
/// the one around it. Follows no link.
fn submodules(own: &[PathBuf]) -> Vec<PathBuf> {
    let mut ahead: Vec<PathBuf> = own.iter().skip(1).map(|git| git.join(MODULES)).collect();
    let (mut modules, mut seen) = (Vec::new(), 0);
    while let Some(folder) = ahead.pop() {
        // Their names are folders of folders.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            seen += 1;
            if seen > MOST_MODULES {
                tracing::warn!(
                    folder = %folder.display(),
                    "too many folders of submodules: commits in some of them are denied"
                );
                return modules;
            }
            let path = entry.path();
            if is_repository(&path, &path) {
                ahead.push(path.join(MODULES));
                modules.push(path);
            } else {
                ahead.push(path);
            }
        }
    }
    modules.sort_unstable_by(|one, other| other.cmp(one));
    modules.dedup();
    modules
}

fn is_repository(git: &Path, common: &Path) -> bool {
    git.join("HEAD").symlink_metadata().is_ok()
        && common.join("objects").is_dir()
        && common.join("refs").is_dir()
}

/// The path in a file that points elsewhere.
fn pointer(file: &Path, key: &str) -> Option<String> {
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(file).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(2 * PATH_MAX as u64).read_to_string(&mut text).ok()?;
    Some(text.strip_prefix(key)?.trim_end_matches(['\n', '\r']).to_owned())
}
