//! The git folder: where git finds it from the workspace, and which of its files may be read and
//! written.
//!
//! A process that can write hooks or config of a git folder runs commands as the user. The git
//! folder of the workspace's repository is therefore judged by [`GitAccess`] alone, and so are those
//! of its submodules in it; anything else below a `.git` in the workspace (another repository, one
//! that an agent made) also needs a pattern.

mod records;
mod repository;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use memchr::memmem;

use self::records::{is_own_record, is_record, is_sequence, own_records_below, records_below};
use self::repository::{repository, submodules};
use super::GitAccess;
use super::patterns::Subtree;
use super::real::real;
use crate::model::{Action, within};

/// Files of a git folder that decide which commands git runs.
const SEALED: [&str; 4] = ["hooks", "info", "config", "config.worktree"];

/// Files by which git recognizes a repository.
const PILLARS: [&str; 3] = ["HEAD", "objects", "refs"];

/// The folder of the git folders of submodules.
const MODULES: &str = "modules";

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

    /// Says what to do in place of a write of a real path that all worktrees share, where a command of git writes it.
    pub(super) fn advice(&self, real: &Path) -> Option<String> {
        let [_, _, common] = &self.own[..] else { return None };
        let RepositoryPart::Shared(branch) = self.part(real) else { return None };
        let name = within(common, real)?.to_str()?;
        let name = name.strip_suffix(".lock").unwrap_or(name);
        let name = name.strip_prefix("logs/").unwrap_or(name);
        let rest = match name {
            "refs/stash" => "its stash: `git commit -m wip` keeps work on the branch".to_owned(),
            "gc.pid" => "its objects: a person packs them".to_owned(),
            "config" => "its configuration: `git -c KEY=VALUE` sets one for a command".to_owned(),
            _ if name.starts_with("refs/") || name.starts_with("packed-refs") => {
                format!("its refs: a task writes its own branch `{branch}` alone")
            }
            _ => return None,
        };
        Some(format!("eisen-core: all worktrees of the repository share {rest}\n"))
    }

    /// The place that git means by a path below the `.git` of a worktree, which is a file.
    pub(super) fn meant(&self, path: &Path) -> Option<PathBuf> {
        let [file, git, common] = &self.own[..] else { return None };
        let rest = self.workspace.join(path).strip_prefix(file).ok()?.to_owned();
        if git == common || rest.as_os_str().is_empty() {
            return None;
        }
        let own = git.join(&rest);
        Some(if own.symlink_metadata().is_ok() { own } else { common.join(rest) })
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

/// The rest of a path after its first `.git`.
fn nested(inside: &Path) -> Option<&Path> {
    memmem::find(inside.as_os_str().as_bytes(), b".git")?;
    let mut names = inside.iter();
    names.find(|name| *name == ".git")?;
    Some(names.as_path())
}
