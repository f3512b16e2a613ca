//! Which paths an agent may access: resolves real paths, matches compiled globs, and opens exactly
//! the judged file. Knows no agents, no transport and no clock.
//!
//! How a path is judged:
//!
//! 1. It is made real twice: as the kernel reads it, and with `..` folded by name first, as
//!    editors do. Where the two differ, both must be allowed. What can't be resolved is denied.
//! 2. [`ZoneSpec::eisen_dir`] and everything in it is denied, whatever else is said, and so are
//!    [`ZoneSpec::journals`], and writes to [`ZoneSpec::sealed`] paths.
//! 3. `denied` wins. It denies what it matches and everything below: `denied = ["secret"]` is as
//!    good as `secret/**`. Where a denied pattern names a link, the link's target when the zone was
//!    compiled is denied as well.
//! 4. Git folders are judged as [`GitAccess`] says, not by the patterns that allow.
//! 5. The rest must match `allowed` or `shared`, to be read also `readable`. These match what they
//!    say and no more: `ui` is that one path, `ui/**` is also the folder `ui`, and `ui/` means
//!    `ui/**`.
//!
//! Patterns are globs with literal separators, case sensitive; `*` and `**` match dotfiles, `\`
//! escapes. A relative one is relative to the workspace; `./` in front changes nothing, and `..`
//! that leaves the workspace allows nothing (in `denied` it denies what it names). Absolute ones
//! are matched against absolute real paths, and may spell the workspace as the configuration does.
//! A blank pattern matches nothing.

mod bounds;
mod drafts;
mod git;
mod observed;
mod open;
mod patterns;
mod real;
mod search;
mod spec;
mod why;
mod widening;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use self::bounds::{
    Bounds, Confine, Coverage, Grant, GrantedPlace, HELD_ALONE, MovedPlace, PatternCoverage, Reach,
    Rule, Wall, common,
};
pub use self::drafts::{DRAFTS, KEPT, remove_recorded};
use self::git::{Git, GitVerdict};
use self::open::Root;
pub use self::open::{FOLDER, open_beneath};
use self::patterns::{PatternPath, Patterns, Workspace};
pub use self::patterns::{Subtree, WirePatterns, compile_glob, cut, pattern_of, uncovered};
use self::real::{PATH_MAX, real};
use self::search::Below;
pub use self::spec::{GitAccess, ZoneSpec};
pub use self::why::{Reason, Why};
pub use self::widening::{GrantPattern, LONGEST_PATTERN};
use crate::model::{Action, fold, goes_up, wire_path, wire_real, within};

/// A compiled zone. Holds the workspace's folder open.
#[derive(Debug)]
pub struct Zone {
    spec: ZoneSpec,
    workspace: Workspace,
    root: Arc<Root>,
    eisen: Vec<PathBuf>,
    /// Real paths of [`ZoneSpec::journals`].
    journals: Vec<PathBuf>,
    /// Real paths of [`ZoneSpec::sealed`], and of links to them.
    sealed: Vec<PathBuf>,
    /// Real paths of other worktrees of the repository.
    beside: Vec<PathBuf>,
    /// The patterns of `denied` and `asked`.
    denied: Patterns,
    asked: Patterns,
    /// Each pattern of `denied`, compiled separately.
    denials: Vec<(Arc<str>, Patterns)>,
    own: Patterns,
    shared: Patterns,
    readable: Patterns,
    /// Matches the folders above the paths that the previous three allow.
    above: Patterns,
    below: Below,
    git: Git,
    terminals: bool,
    /// As it is written, where its agent is only observed: what that denies is counted, and let pass.
    written: Option<Arc<Self>>,
}

/// An access that was allowed: the token that opens exactly the judged file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Permit {
    /// The real path: absolute, free of symbolic links when it was judged.
    pub real: PathBuf,
    /// The access that was judged; the permit is for no other one.
    pub action: Action,
    root: Arc<Root>,
}

/// An access outside the zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denied {
    /// As the wire shows it: relative to the workspace, absolute if outside.
    pub path: Arc<str>,
    /// The access that was asked for.
    pub action: Action,
    /// Whether a grant could allow it: never in `$EISEN_DIR`, nor for a journal or a path that
    /// cannot be resolved.
    pub grantable: bool,
}

/// The class of a path in a zone, by its text alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// May be written and read.
    Write,
    /// May only be read.
    Read,
    /// May neither be written nor read.
    Outside,
}

enum Verdict {
    Allowed,
    Denied,
    /// Denied, and no grant changes that.
    Never,
}

impl Zone {
    /// Compiles the patterns, and resolves the workspace, the git folder, and links that `denied`
    /// names on the disk. An error quotes the pattern as `spec` spells it.
    pub fn compile(spec: &ZoneSpec) -> Result<Self, globset::Error> {
        let spelled = fold(&spec.workspace);
        let root = real(&spec.workspace).unwrap_or_else(|| spelled.clone());
        let workspace = Workspace { real: root, spelled };
        let eisen = workspace.real.join(&spec.eisen_dir);
        let places = |path: &Path| real(path).into_iter().chain([fold(path)]);
        let sealed = spec.sealed.iter().flat_map(|path| places(&workspace.real.join(path)));
        let journals = spec.journals.iter().flat_map(|path| places(&workspace.real.join(path)));
        let beside = spec.beside.iter().flat_map(|path| places(path));
        let writable = [&spec.allowed[..], &spec.shared].concat();
        let readable = [&writable[..], &spec.readable].concat();
        let closed = spec.closed();
        Ok(Self {
            root: Arc::new(Root::open(&workspace.real)),
            eisen: places(&eisen).collect(),
            sealed: sealed.collect(),
            journals: journals.collect(),
            denied: Patterns::denying(&workspace, &closed)?,
            asked: Patterns::denying(&workspace, &spec.asked)?,
            denials: denials(&workspace, &spec.denied)?,
            own: Patterns::granting(&workspace, &spec.allowed)?,
            shared: Patterns::granting(&workspace, &spec.shared)?,
            readable: Patterns::granting(&workspace, &spec.readable)?,
            above: Patterns::above(&workspace, &writable, &spec.readable)?,
            below: Below::new(&workspace, &readable, &closed)?,
            git: Git::find(&workspace.real, spec.git, spec.branch.clone()),
            beside: beside.collect(),
            terminals: spec.terminals,
            written: None,
            workspace,
            spec: spec.clone(),
        })
    }

    /// Judges one access. A relative path starts from the workspace. Reads the disk.
    pub fn check(&self, path: &Path, action: Action) -> Result<Permit, Denied> {
        self.check_granted(path, action, &|_| false)
    }

    /// Like [`Zone::check`], but allows an access that `granted` accepts. `granted` gets exactly
    /// the denial; it is not called for `$EISEN_DIR` and unresolvable paths, which are never
    /// granted.
    pub fn check_granted(
        &self,
        path: &Path,
        action: Action,
        granted: &dyn Fn(&Denied) -> bool,
    ) -> Result<Permit, Denied> {
        self.check_readings(path, action, granted, |real, place| self.judge(real, place, action))
    }

    /// Judges a terminal's working directory: inside the zone, or above an allowed path within
    /// the workspace. Reads the disk.
    pub fn check_cwd(&self, path: &Path) -> Result<Permit, Denied> {
        self.check_cwd_granted(path, &|_| false)
    }

    /// Like [`Zone::check_cwd`], but allows what was granted, as [`Zone::check_granted`].
    pub fn check_cwd_granted(
        &self,
        path: &Path,
        granted: &dyn Fn(&Denied) -> bool,
    ) -> Result<Permit, Denied> {
        self.check_readings(path, Action::Read, granted, |real, place| {
            match self.judge(real, place, Action::Read) {
                Verdict::Denied if self.is_above(real, place) => Verdict::Allowed,
                verdict => verdict,
            }
        })
    }

    /// Whether the agent's own `allowed` contains the path, shared patterns aside. `path` is as
    /// the wire shows it. Does not ask the disk.
    pub fn owns(&self, path: &str) -> bool {
        let zone = self.written.as_deref().unwrap_or(self);
        let place = zone.place(&zone.named(path));
        zone.own.matches(&place) && !zone.denied.matches(&place)
    }

    /// The class of a path. `path` is in the wire's form, and assumed to be real. Does not read the
    /// disk.
    pub fn class(&self, path: &str) -> Class {
        let real = self.named(path);
        let place = self.place(&real);
        let allowed = |action| matches!(self.judge(&real, &place, action), Verdict::Allowed);
        match (allowed(Action::Write), allowed(Action::Read)) {
            (true, _) => Class::Write,
            (false, true) => Class::Read,
            (false, false) => Class::Outside,
        }
    }

    /// Whether it allows an access to a real path. Does not ask the disk.
    pub fn covers(&self, real: &Path, action: Action) -> bool {
        matches!(self.judge(real, &self.place(real), action), Verdict::Allowed)
    }

    /// The pattern of `denied` that matches a path, or a folder above it. `path` is as the wire
    /// shows it, and taken for a real one. Does not ask the disk.
    pub fn denied_by(&self, path: &str) -> Option<Arc<str>> {
        self.denial(&self.place(&self.named(path)))
    }

    /// Whether somebody is to be asked before a path is touched, by whatever. `path` is as the wire shows
    /// it, and taken for a real one. Does not ask the disk.
    pub fn asks(&self, path: &str) -> bool {
        let place = self.place(&self.named(path));
        self.asked.matches(&place) && self.denial(&place).is_none()
    }

    /// The submodule of the workspace in whose git folder a real path lies, by its name.
    pub fn submodule(&self, real: &Path) -> Option<&Path> {
        self.git.submodule(real)
    }

    /// A line that says what to do in place of an access to what all worktrees of a repository share. None: the path is no
    /// such part, or there is nothing to say.
    pub fn advice(&self, real: &Path, action: Action) -> Option<String> {
        (action == Action::Write).then(|| self.git.advice(real)).flatten()
    }

    /// The patterns of the agent's own zone, as they were given.
    pub fn own_patterns(&self) -> &[String] {
        &self.spec.allowed
    }

    /// The workspace's real path.
    pub fn workspace(&self) -> &Path {
        &self.workspace.real
    }

    /// Whether terminals are offered at all.
    pub fn terminals(&self) -> bool {
        self.terminals
    }

    fn check_readings(
        &self,
        path: &Path,
        action: Action,
        granted: &dyn Fn(&Denied) -> bool,
        judge: impl Fn(&Path, &PatternPath) -> Verdict,
    ) -> Result<Permit, Denied> {
        let (kernels, by_name) =
            self.readings(path).ok_or_else(|| self.unresolved(path, action))?;
        for real in [&kernels].into_iter().chain(&by_name) {
            let denied = |grantable| Denied { path: self.wire(real), action, grantable };
            match judge(real, &self.place(real)) {
                Verdict::Allowed => {}
                Verdict::Denied if granted(&denied(true)) => {}
                Verdict::Denied => return Err(denied(true)),
                Verdict::Never => return Err(denied(false)),
            }
        }
        Ok(Permit { real: kernels, action, root: Arc::clone(&self.root) })
    }

    /// The kernel's reading of a path, and that of programs that fold `..` by name, if different.
    fn readings(&self, path: &Path) -> Option<(PathBuf, Option<PathBuf>)> {
        let bytes = path.as_os_str().as_bytes();
        if bytes.is_empty() || bytes.len() >= PATH_MAX || bytes.contains(&0) {
            return None;
        }
        let path = self.workspace.real.join(path);
        let kernels = real(&path)?;
        if !goes_up(&path) {
            return Some((kernels, None));
        }
        let by_name = real(&fold(&path))?;
        let differs = by_name != kernels;
        Some((kernels, differs.then_some(by_name)))
    }

    fn judge(&self, real: &Path, place: &PatternPath, action: Action) -> Verdict {
        if !place.is_text() || self.is_closed(real) {
            return Verdict::Never;
        }
        if action == Action::Write && self.is_sealed(real) {
            return Verdict::Never;
        }
        let allowed = match self.git.judge(real, action) {
            GitVerdict::Denied => false,
            GitVerdict::Allowed => true,
            GitVerdict::Defer | GitVerdict::Nothing => {
                self.own.matches(place)
                    || self.shared.matches(place)
                    || action == Action::Read && self.readable.matches(place)
            }
        };
        let is_closed =
            || self.denied.matches(place) && !self.is_open_as_written(real, place, action);
        if allowed && !is_closed() { Verdict::Allowed } else { Verdict::Denied }
    }

    /// Whether a folder of the workspace contains something that the zone allows.
    fn is_above(&self, real: &Path, place: &PatternPath) -> bool {
        let allowing = [&self.own, &self.shared, &self.readable];
        let holds_any = place.is_workspace() && allowing.iter().any(|some| some.reach_inside());
        place.is_inside()
            && (holds_any || self.above.matches(place))
            && !self.denied.matches(place)
            && self.git.judge(real, Action::Read) == GitVerdict::Nothing
    }

    fn denial(&self, place: &PatternPath) -> Option<Arc<str>> {
        if !self.denied.matches(place) {
            return None;
        }
        let matching = self.denials.iter().find(|(_, patterns)| patterns.matches(place));
        matching.map(|(pattern, _)| Arc::clone(pattern))
    }

    /// Whether a real path lies in `$EISEN_DIR`, or is a journal's.
    fn is_closed(&self, real: &Path) -> bool {
        self.eisen.iter().any(|eisen| within(eisen, real).is_some()) || self.is_of_journal(real)
    }

    fn is_of_journal(&self, real: &Path) -> bool {
        let real = real.as_os_str().as_bytes();
        self.journals.iter().any(|journal| real.starts_with(journal.as_os_str().as_bytes()))
    }

    /// Whether a real path lies in another worktree of the repository.
    fn is_beside(&self, real: &Path) -> bool {
        within(&self.workspace.real, real).is_none()
            && self.beside.iter().any(|place| within(place, real).is_some())
    }

    /// The real paths for [`Zone::is_closed`].
    fn closed(&self) -> impl Iterator<Item = &PathBuf> {
        self.eisen.iter().chain(&self.journals)
    }

    /// Whether a real path is one of [`ZoneSpec::sealed`].
    fn is_sealed(&self, real: &Path) -> bool {
        self.sealed.iter().any(|sealed| sealed == real)
    }

    /// The absolute path of a path in the wire's form.
    fn named(&self, path: &str) -> PathBuf {
        fold(&self.workspace.real.join(path))
    }

    fn place(&self, real: &Path) -> PatternPath {
        PatternPath::new(&self.workspace, real)
    }

    fn wire(&self, real: &Path) -> Arc<str> {
        wire_real(&self.workspace.real, real).into()
    }

    /// The denial of an unresolvable path, which is shown by name, shortened if too long.
    fn unresolved(&self, path: &Path, action: Action) -> Denied {
        let bytes = path.as_os_str().as_bytes();
        let path = match bytes.len() {
            0 => Arc::from(""),
            1..PATH_MAX => wire_path(&self.workspace.real, &self.workspace.real, path).into(),
            _ => {
                let start = String::from_utf8_lossy(&bytes[..PATH_MAX]).into_owned();
                format!("{start}…").into()
            }
        };
        Denied { path, action, grantable: false }
    }
}

fn denials(
    workspace: &Workspace,
    denied: &[String],
) -> Result<Vec<(Arc<str>, Patterns)>, globset::Error> {
    let alone = |pattern: &String| {
        let patterns = Patterns::denying(workspace, std::slice::from_ref(pattern))?;
        Ok((Arc::from(pattern.as_str()), patterns))
    };
    denied.iter().map(alone).collect()
}

#[cfg(test)]
mod tests;
