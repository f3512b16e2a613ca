//! A zone as the kernel enforces it: judged by real paths alone, together with the accesses that a
//! process has to the rest of the machine.
//!
//! How a real path is judged, for any caller:
//!
//! 1. The private TMPDIR is the process's own.
//! 2. `$EISEN_DIR` is denied, a journal outside it too, and so is every other path to their
//!    contents, those of the workspace and of the git folder, where those are mounted a second
//!    time. The team's own files (its configuration) are not written.
//! 3. In the workspace the zone decides.
//! 4. `/proc` and `/sys` may be read, as far as the kernel itself shows them to the process;
//!    nothing there may be written. Of `/dev`, the devices that [`Confine`] allows may be used,
//!    never a disk or the machine's memory.
//! 5. Settings that programs of others obey ([`Reach::sealed`]) are not written, unless a pattern of
//!    the zone allows it.
//! 6. Of other worktrees of the repository ([`ZoneSpec::beside`]) only what a pattern allows is open.
//! 7. The rest is as [`Confine`] says. Denied patterns win, and the repository's git folder is
//!    judged as in the workspace where it lies outside.

mod found;
mod held;
mod mounts;
mod place;
mod system;
mod tree;
mod wall;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use self::held::HELD_ALONE;
pub use self::place::{GrantedPlace, MovedPlace, common};
use self::system::Devices;
#[cfg(doc)]
use super::ZoneSpec;
use super::git::GitVerdict;
use super::patterns::{Patterns, Subtree, Trails, WirePatterns};
use super::real::{names, real};
use super::{Denied, Verdict, Zone};
use crate::model::{Action, fold, named, within};

/// The paths that a confined process may access beside its zone.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The access outside the workspace.
    pub confine: Confine,
    /// Its private TMPDIR, granted whole.
    pub private: PathBuf,
    /// The folder that contains it and those of other agents, each of which is private.
    pub privates: Option<PathBuf>,
    /// The places that its launch profile needs. Used by [`Confine::Strict`] only. Names that lead into the
    /// workspace or through it grant nothing.
    pub readable: Vec<GrantedPlace>,
    /// Like `readable`, and may also be written.
    pub writable: Vec<GrantedPlace>,
    /// Sealed folders below these that are made before it starts, with any [`Confine`]. They are granted nothing.
    pub made: Vec<GrantedPlace>,
    /// Patterns, as those of zones, of what its agent tries by itself and does not miss. They grant nothing.
    pub harmless: Vec<String>,
    /// Absolute patterns of the sockets outside the workspace to which it may connect.
    pub sockets: Vec<String>,
    /// Absolute paths outside the workspace that it may not write, each with everything below it,
    /// unless its zone allows it.
    pub sealed: Arc<[PathBuf]>,
}

impl Reach {
    /// Nothing beside what `confine` says, and the private folder.
    pub fn new(confine: Confine, private: impl Into<PathBuf>) -> Self {
        Self {
            confine,
            private: private.into(),
            privates: None,
            readable: Vec::new(),
            writable: Vec::new(),
            made: Vec::new(),
            harmless: Vec::new(),
            sockets: Vec::new(),
            sealed: Arc::default(),
        }
    }
}

named! {
    /// Access outside the workspace.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Confine {
        /// As for the user, except `$EISEN_DIR` and denied paths.
        Workspace = "workspace",
        /// Reading the system's folders, the profile's needs, and paths that the zone names.
        Strict = "strict",
    }
}

/// A zone with its reach.
#[derive(Debug)]
pub struct Bounds {
    zone: Arc<Zone>,
    reach: Reach,
    /// The real place of [`Reach::private`].
    private: PathBuf,
    /// Always denied.
    barred: Vec<PathBuf>,
    sockets: Patterns,
    harmless: WirePatterns,
    devices: Devices,
    /// Real paths outside that [`Confine::Strict`] lets be read and written.
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    /// The real paths of [`Reach::sealed`], and of all links that lead there.
    settings: Vec<PathBuf>,
    denied: Trails,
    /// The zone's patterns for writing and for reading.
    allowed: [Trails; 2],
}

/// The path rules of a zone, and how well they enforce it.
#[derive(Clone, Debug)]
pub struct Wall {
    /// At most one for each path, in the order of paths.
    pub rules: Vec<Rule>,
    /// One for each pattern of the zone, list by list.
    pub patterns: Vec<PatternCoverage>,
}

/// Grants a path, and everything below it if it is a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Real.
    pub path: PathBuf,
    /// The access that is granted.
    pub grant: Grant,
}

/// The access that a rule grants. Each contains those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Grant {
    /// Folders may be listed.
    List,
    /// Files may be read and executed, folders listed.
    Read,
    /// Existing files may also be written and truncated, and sockets created. Creating, moving and
    /// removing names is left to the doorbell.
    Write,
    /// Everything that the kernel can grant.
    Whole,
}

/// How well path rules enforce one pattern of a zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatternCoverage {
    /// `allowed`, `shared`, `denied`, `asked` or `readable`.
    pub list: &'static str,
    /// The pattern as the zone spells it.
    pub pattern: String,
    /// The part that path rules have in its enforcement.
    pub how: Coverage,
}

/// The parts that rules and doorbell have in enforcing a pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Coverage {
    /// The rules grant exactly what the pattern says.
    Exact,
    /// The rules grant less than the pattern; the text names the loss.
    Narrowed(String),
    /// Only the doorbell enforces it for what is made later; the text says why.
    Doorbell(String),
    /// Only the doorbell enforces it, for what is there too.
    Alone,
}

impl Bounds {
    /// Compiles the patterns, and finds devices and resolves links on the disk.
    pub fn new(zone: Arc<Zone>, mut reach: Reach) -> Result<Self, globset::Error> {
        let (workspace, spec) = (&zone.workspace, &zone.spec);
        let writable = [&spec.allowed[..], &spec.shared].concat();
        let readable = [&writable[..], &spec.readable].concat();
        for places in [&mut reach.readable, &mut reach.writable, &mut reach.made] {
            places.retain(|place| !place.passes(&workspace.real));
        }
        let real_places = |places: &[GrantedPlace]| {
            system::outermost(places.iter().map(|place| place.real.clone()))
        };
        let strict = reach.confine == Confine::Strict;
        let mut system = if strict { system::readable() } else { Vec::new() };
        system.extend(real_places(&reach.readable));
        let mounts = mounts::mounts();
        let own = [workspace.real.as_path()].into_iter().chain(zone.git.places());
        let held = own.chain(zone.closed().map(PathBuf::as_path));
        let aliases = held.flat_map(|place| mounts::aliases(place, &mounts));
        let watching = mounts::watching(&mounts);
        let others = reach.privates.as_deref().and_then(real);
        let barred = zone.closed().cloned().chain(aliases).chain(watching).chain(others);
        let barred = barred.collect();
        let settings = reach.sealed.iter().flat_map(|place| names(place));
        // There the zone alone decides.
        let settings = settings.filter(|place| within(&workspace.real, place).is_none());
        Ok(Self {
            settings: system::outermost(settings),
            barred,
            private: real(&reach.private).unwrap_or_else(|| fold(&reach.private)),
            sockets: Patterns::granting(workspace, &reach.sockets)?,
            harmless: WirePatterns::compile(&reach.harmless, false)?,
            devices: if strict { Devices::basic() } else { Devices::all() },
            readable: system::outermost(system.into_iter()),
            writable: real_places(&reach.writable),
            denied: Trails::denying(workspace, &spec.closed())?,
            allowed: [
                Trails::granting(workspace, &writable)?,
                Trails::granting(workspace, &readable)?,
            ],
            zone,
            reach,
        })
    }

    /// The zone, which decides in the workspace.
    pub fn zone(&self) -> &Arc<Zone> {
        &self.zone
    }

    /// The bounds of the zone as it is written, of an agent that is only observed.
    pub fn written(&self) -> Option<Result<Self, globset::Error>> {
        Some(Self::new(Arc::clone(self.zone.written()?), self.reach.clone()))
    }

    /// The paths beside the zone. Places that lead into the workspace are left out.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Whether its agent tries a path by itself, and does not miss it. `path` is as the wire shows it.
    pub fn is_harmless(&self, path: &str) -> bool {
        self.harmless.matches(path)
    }

    /// Judges an access to a real path: absolute, free of links, `.` and `..`. Does not ask the
    /// disk.
    pub fn judge(&self, real: &Path, action: Action) -> Result<(), Denied> {
        let grantable = match self.verdict(real, action) {
            Verdict::Allowed => return Ok(()),
            Verdict::Denied => true,
            Verdict::Never => false,
        };
        Err(Denied { path: self.zone.wire(real), action, grantable })
    }

    /// Whether a real path lies in the workspace (or is it).
    pub fn is_inside(&self, real: &Path) -> bool {
        within(self.zone.workspace(), real).is_some()
    }

    /// Whether a real path is a folder above a path in the workspace that the zone allows: it may
    /// be created for that.
    pub fn is_above(&self, real: &Path) -> bool {
        self.zone.is_above(real, &self.zone.place(real))
    }

    /// Whether a real path is a folder above a setting that is sealed. Only a folder may stand there:
    /// a link would lead to settings of the agent's own.
    pub fn is_above_setting(&self, real: &Path) -> bool {
        self.settings.iter().any(|setting| is_below(real, setting))
    }

    /// Whether a real path is, or is in, a git folder, whose contents git obeys with its user's
    /// rights.
    pub fn is_git(&self, real: &Path) -> bool {
        self.zone.git.holds(real)
    }

    /// Whether a denied pattern, or `$EISEN_DIR`, denies a real path, even if a pattern allows it.
    pub fn is_denied(&self, real: &Path) -> bool {
        self.is_barred(real) || self.denies(real)
    }

    /// Whether a socket at this real path may be connected to, whoever serves it: in the private
    /// folder any, elsewhere one that is listed.
    pub fn may_connect(&self, real: &Path) -> bool {
        if self.is_private(real) {
            return true;
        }
        if self.is_barred(real) {
            return false;
        }
        let place = self.zone.place(real);
        !self.zone.denied.matches(&place) && self.sockets.matches(&place)
    }

    /// Compiles the path rules: for every file that exists now they allow nothing that
    /// [`Bounds::judge`] denies. Reads the disk.
    pub fn wall(&self) -> Wall {
        wall::compile(self)
    }

    /// The rules of [`Bounds::wall`], without the coverage of patterns.
    pub fn rules(&self) -> Vec<Rule> {
        wall::compile_rules(self)
    }

    /// Names the denied patterns that neither path rules nor the doorbell's own hand hold, and says
    /// what that means.
    pub fn held_alone(&self) -> Option<String> {
        let closed = self.zone.spec.closed();
        let denied = closed.iter().enumerate();
        let alone: Vec<_> = denied
            .filter(|(at, _)| held::is_alone(self, *at))
            .map(|(_, pattern)| format!("`{pattern}`"))
            .collect();
        (!alone.is_empty()).then(|| format!("of `denied` {} is {HELD_ALONE}", alone.join(", ")))
    }

    fn verdict(&self, real: &Path, action: Action) -> Verdict {
        if self.is_private(real) {
            return Verdict::Allowed;
        }
        if self.is_barred(real) {
            return Verdict::Never;
        }
        if action == Action::Write && self.zone.is_sealed(real) {
            return Verdict::Never;
        }
        if self.is_inside(real) {
            return self.verdict_inside(real, action);
        }
        if action == Action::Write && self.is_setting(real) && !self.allows(real, action) {
            return Verdict::Denied;
        }
        if let Some(may) = system::may(action, real) {
            return if may { self.unless_denied(real) } else { Verdict::Never };
        }
        if within(Path::new(system::DEV), real).is_some_and(|device| !device.as_os_str().is_empty())
        {
            return if self.devices.hold(real) { self.unless_denied(real) } else { Verdict::Never };
        }
        match (self.zone.git.judge(real, action), self.reach.confine) {
            (GitVerdict::Denied, _) => Verdict::Denied,
            (GitVerdict::Allowed, _) => self.unless_denied(real),
            (_, Confine::Workspace) if !self.zone.is_beside(real) => self.unless_denied(real),
            _ if self.zone.is_beside(real) => self.verdict_beside(real, action),
            _ => self.verdict_strict(real, action),
        }
    }

    fn verdict_inside(&self, real: &Path, action: Action) -> Verdict {
        let place = self.zone.place(real);
        if place.is_text() {
            return self.zone.judge(real, &place, action);
        }
        // A name that is not UTF-8 cannot be shown to a decider.
        let allowed = match self.zone.git.judge(real, action) {
            GitVerdict::Denied => false,
            GitVerdict::Allowed => true,
            GitVerdict::Defer | GitVerdict::Nothing => self.allows(real, action),
        };
        if allowed && !self.denies(real) { Verdict::Allowed } else { Verdict::Never }
    }

    fn verdict_strict(&self, real: &Path, action: Action) -> Verdict {
        let below = |places: &[PathBuf]| places.iter().any(|place| within(place, real).is_some());
        let needed = below(&self.writable) || action == Action::Read && below(&self.readable);
        if needed || self.allows(real, action) { self.unless_denied(real) } else { Verdict::Denied }
    }

    /// Another worktree of the repository: only what a pattern allows.
    fn verdict_beside(&self, real: &Path, action: Action) -> Verdict {
        if self.allows(real, action) { self.unless_denied(real) } else { Verdict::Denied }
    }

    fn unless_denied(&self, real: &Path) -> Verdict {
        if !self.zone.denied.reach_outside() {
            return Verdict::Allowed;
        }
        let place = self.zone.place(real);
        let denied =
            if place.is_text() { self.zone.denied.matches(&place) } else { self.denies(real) };
        if denied { Verdict::Denied } else { Verdict::Allowed }
    }

    /// Whether the zone's patterns allow a path, which may be no UTF-8.
    fn allows(&self, real: &Path, action: Action) -> bool {
        let trails = &self.allowed[usize::from(action == Action::Read)];
        trails.matched(&trails.to(real))
    }

    /// Whether a denied pattern matches, or may match, a path, which may be no UTF-8.
    fn denies(&self, real: &Path) -> bool {
        self.denied.matched(&self.denied.to(real))
    }

    /// Whether a real path is, or is in, a setting that is sealed.
    fn is_setting(&self, real: &Path) -> bool {
        self.settings.iter().any(|setting| within(setting, real).is_some())
    }

    /// Whether a real path lies in the private folder, where all is allowed.
    pub fn is_private(&self, real: &Path) -> bool {
        within(&self.private, real).is_some()
            && !(self.is_barred(real)
                && self.zone.eisen.iter().any(|eisen| eisen.starts_with(&self.private)))
    }

    fn is_barred(&self, real: &Path) -> bool {
        self.barred.iter().any(|barred| within(barred, real).is_some())
            || self.zone.is_of_journal(real)
    }
}

/// Whether a real path lies below a folder.
fn is_below(folder: &Path, path: &Path) -> bool {
    within(folder, path).is_some_and(|rest| !rest.as_os_str().is_empty())
}
