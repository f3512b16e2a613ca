//! Compiles bounds to path rules. Rules only add: a grant for a folder covers everything below it,
//! now and later. So a folder gets a rule only if nothing below it may be accessed less.
//!
//! In the zone a folder is walked as deep as a path below could be denied. A folder that is granted
//! whole gets one rule; otherwise its granted contents get their own. Symbolic links get none and
//! are not followed: their targets get rules where they really are.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use super::found::{Granted, WallRules};
use super::tree::{Here, MAX_DEPTH, MAX_ENTRIES};
use super::{Bounds, Confine, Grant, Rule, Subtree, Verdict, Wall, held, system};
use crate::model::{Action, KERNEL_FOLDERS};
use crate::zone::GitAccess;
use crate::zone::patterns::Trail;

/// Single files that get rules; beyond this the doorbell opens them.
const MAX_FILES: usize = 10_000;

/// Entries outside the workspace after which a walk ends; the doorbell opens what lies further.
const MAX_SEARCHED: usize = 2_000_000;

pub(super) fn compile(bounds: &Bounds) -> Wall {
    let found = find(bounds);
    let patterns = held::held(bounds, &found);
    Wall { rules: rules(found), patterns }
}

/// The rules alone.
pub(super) fn compile_rules(bounds: &Bounds) -> Vec<Rule> {
    rules(find(bounds))
}

fn find(bounds: &Bounds) -> WallRules {
    let mut builder = Builder::new(bounds);
    builder.build();
    builder.found
}

fn rules(found: WallRules) -> Vec<Rule> {
    let rules = found.rules.into_iter();
    rules.map(|(path, Granted { grant, .. })| Rule { path, grant }).collect()
}

struct Builder<'a> {
    bounds: &'a Bounds,
    found: WallRules,
    listed: Walked,
}

/// How far a walk got.
struct Walked {
    entries: usize,
    most: usize,
    /// Single files with rules.
    files: usize,
    /// The walk reached a limit.
    cut: bool,
}

/// The access that rules may grant to a path with everything below it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Full {
    write: bool,
    read: bool,
}

impl Walked {
    fn up_to(most: usize) -> Self {
        Self { entries: 0, most, files: 0, cut: false }
    }
}

impl Full {
    const NOTHING: Self = Self { write: false, read: false };

    fn grant(self) -> Option<Grant> {
        match self {
            Self { write: true, .. } => Some(Grant::Write),
            Self { read: true, .. } => Some(Grant::Read),
            Self::NOTHING => None,
        }
    }
}

impl<'a> Builder<'a> {
    fn new(bounds: &'a Bounds) -> Self {
        Self { bounds, found: WallRules::default(), listed: Walked::up_to(MAX_SEARCHED) }
    }

    fn build(&mut self) {
        let bounds = self.bounds;
        let root = Path::new("/");
        self.rule(root, Grant::List, true);
        // Files moved there are checked: sockets from elsewhere are refused.
        self.rule(&bounds.private, Grant::Write, true);
        match bounds.reach.confine {
            Confine::Workspace => self.start_outside(root, Grant::Whole),
            Confine::Strict => self.strict(),
        }
        self.found.unsearched = self.listed.cut;
    }

    fn strict(&mut self) {
        let bounds = self.bounds;
        for place in &bounds.readable {
            self.start_outside(place, Grant::Read);
        }
        for place in &bounds.writable {
            self.start_outside(place, Grant::Whole);
        }
        for place in KERNEL_FOLDERS.iter().chain([&system::DEV]) {
            self.start_outside(Path::new(place), Grant::Whole);
        }
        let outside = |path: &&Path| !bounds.is_inside(path);
        let git: Vec<_> = bounds.zone.git.places().filter(outside).collect();
        let [_, reads] = &bounds.allowed;
        let named: Vec<_> = reads.starts().filter(|start| !start.searches).collect();
        let named = named.iter().map(|start| &*start.path).filter(outside);
        let mut starts: BTreeSet<&Path> = git.iter().copied().chain(named).collect();
        starts.insert(bounds.zone.workspace());
        for start in starts {
            self.start(start);
        }
    }

    fn start_outside(&mut self, place: &Path, grant: Grant) {
        let Ok(found) = fs::symlink_metadata(place) else { return };
        let denied = self.bounds.denied.to(place);
        if let Some(grant) = self.outside(place, grant, &denied, found.is_dir(), 0) {
            self.grant(place, grant, found.is_dir().then_some(&denied));
        }
    }

    /// Walks a path of the zone, and adds its rules.
    fn start(&mut self, place: &Path) {
        let bounds = self.bounds;
        let Ok(found) = fs::symlink_metadata(place) else { return };
        let here = bounds.here(place);
        if found.is_symlink() || bounds.is_barred(place) || bounds.denied.matched(&here.denied) {
            return;
        }
        let outside = std::mem::replace(&mut self.listed, Walked::up_to(MAX_ENTRIES));
        let full = if found.is_dir() { self.walk(place, &here, 0) } else { self.judge(place) };
        self.found.cut |= std::mem::replace(&mut self.listed, outside).cut;
        if let Some(grant) = full.grant() {
            self.grant(place, grant, found.is_dir().then_some(&here.denied));
        }
    }

    /// Walks a path outside the workspace. Returns what one rule may grant to it with everything
    /// below; if there is none, its contents got rules of their own.
    ///
    /// Where a denied pattern may match at any depth, a folder without a match gets a rule, since
    /// its programs could not be executed otherwise. This rule lets no name be moved: the doorbell
    /// does that, and looks for matches in what is moved.
    fn outside(
        &mut self,
        path: &Path,
        grant: Grant,
        denied: &Trail,
        is_folder: bool,
        depth: usize,
    ) -> Option<Grant> {
        let bounds = self.bounds;
        if bounds.is_barred(path) || bounds.denied.matched(denied) || *path == *bounds.private {
            return None;
        }
        let is_zones = path == bounds.zone.workspace() || bounds.zone.git.is_own(path);
        if is_zones || bounds.zone.is_beside(path) {
            self.start(path);
            return None;
        }
        if path == Path::new(system::DEV) {
            self.devices(denied);
            return None;
        }
        let is_kernels = KERNEL_FOLDERS.iter().any(|folder| path == Path::new(folder));
        let sealed = bounds.zone.git.is_sealed(path)
            || bounds.zone.is_sealed(path)
            || bounds.is_setting(path);
        let grant = if sealed || is_kernels { grant.min(Grant::Read) } else { grant };
        // What is there changes with each process.
        let nothing = Trail::default();
        let denied = if is_kernels { &nothing } else { denied };
        if !is_folder || bounds.is_quiet(path, denied) {
            return Some(grant);
        }
        let above = bounds.is_above_place(path);
        let mut is_clean = !above && bounds.denied.is_deep(denied);
        let mut children = Vec::new();
        for (name, is_folder) in self.list(path, depth)? {
            // Most names are judged alike.
            if !is_folder && !above && !bounds.denied.hits(denied, &name) {
                children.push((name, Some(grant), None));
                continue;
            }
            let below = bounds.denied.step(denied, &name);
            let child = self.outside(&path.join(&name), grant, &below, is_folder, depth + 1);
            is_clean &= child.is_some();
            children.push((name, child, is_folder.then_some(below)));
        }
        if is_clean {
            return Some(grant.min(Grant::Write));
        }
        for (name, child, denied) in children {
            if let Some(grant) = child {
                self.grant(&path.join(name), grant, denied.as_ref());
            }
        }
        None
    }

    fn devices(&mut self, denied: &Trail) {
        let dev = Path::new(system::DEV);
        for path in self.bounds.devices.paths() {
            let Ok(found) = fs::symlink_metadata(path) else { continue };
            let names = path.strip_prefix(dev).into_iter().flatten();
            let denied =
                names.fold(denied.clone(), |trail, name| self.bounds.denied.step(&trail, name));
            if found.is_symlink() {
                continue;
            }
            if let Some(grant) = self.outside(path, Grant::Whole, &denied, found.is_dir(), 0) {
                self.grant(path, grant, found.is_dir().then_some(&denied));
            }
        }
    }

    /// Returns the access that rules may grant to a folder of the zone; if partial, its contents
    /// get rules of their own.
    fn walk(&mut self, folder: &Path, here: &Here, depth: usize) -> Full {
        let bounds = self.bounds;
        let below = |action| bounds.granted_below(folder, here, action);
        let (write, read) = (self.writes_below(folder, here), below(Action::Read));
        let above = bounds.is_above_place(folder);
        if read == Subtree::None && write == Subtree::None && !above {
            return Full::NOTHING;
        }
        let quiet = bounds.is_quiet(folder, &here.denied);
        let settled = |subtree, action| match subtree {
            Subtree::All => quiet && !bounds.heeds_git(folder, action),
            Subtree::None => !above,
            Subtree::Mixed => false,
        };
        let granted = Full { write: write == Subtree::All, read: read == Subtree::All };
        if settled(write, Action::Write) && settled(read, Action::Read) {
            return granted;
        }
        let Some(entries) = self.list(folder, depth) else { return Full::NOTHING };
        let mut full = granted;
        let mut children = Vec::new();
        for (name, is_folder) in entries {
            // Most names are judged alike.
            if !is_folder && granted == (Full { write: true, read: true }) && name != ".git" {
                let special = bounds.denied.hits(&here.denied, &name)
                    || above && bounds.is_place(&folder.join(&name));
                if !special {
                    children.push((name, granted, None));
                    continue;
                }
            }
            let path = folder.join(&name);
            let child = if is_folder {
                let here = bounds.step(here, &name);
                if bounds.is_barred(&path) || bounds.denied.matched(&here.denied) {
                    (name, Full::NOTHING, Some(here.denied))
                } else {
                    let full = self.walk(&path, &here, depth + 1);
                    (name, full, Some(here.denied))
                }
            } else {
                let full = self.judge(&path);
                (name, full, None)
            };
            full.write &= child.1.write;
            full.read &= child.1.read;
            children.push(child);
        }
        if full != granted {
            self.found.broken.push(folder.to_owned());
        }
        for (name, mut own, denied) in children {
            own.write &= !full.write;
            own.read &= !full.read;
            if let Some(grant) = own.grant() {
                self.grant(&folder.join(name), grant, denied.as_ref());
            }
        }
        full
    }

    /// The write access below a folder. Git never writes to existing objects, so those get no rule
    /// for writing.
    fn writes_below(&self, folder: &Path, here: &Here) -> Subtree {
        let git = &self.bounds.zone.git;
        let is_git = git.below(folder, Action::Write).is_some();
        if is_git && (git.access() != GitAccess::Commit || folder.ends_with("objects")) {
            return Subtree::None;
        }
        self.bounds.granted_below(folder, here, Action::Write)
    }

    fn judge(&self, path: &Path) -> Full {
        let allowed = |action| matches!(self.bounds.verdict(path, action), Verdict::Allowed);
        let read = allowed(Action::Read);
        Full { read, write: read && allowed(Action::Write) }
    }

    /// Adds a rule. `denied` is the trail of a folder; a single file has none.
    fn grant(&mut self, path: &Path, grant: Grant, denied: Option<&Trail>) {
        match denied {
            Some(denied) => self.found.open.extend(self.bounds.denied.live(denied)),
            None if self.listed.files >= MAX_FILES => {
                self.listed.cut = true;
                return;
            }
            None => self.listed.files += 1,
        }
        self.rule(path, grant, denied.is_some());
    }

    fn rule(&mut self, path: &Path, grant: Grant, is_folder: bool) {
        let rule = self.found.rules.entry(path.to_owned()).or_insert(Granted { grant, is_folder });
        rule.grant = rule.grant.max(grant);
    }

    /// The entries of a folder without links, each with whether it is a folder. `None` if they
    /// cannot all be listed.
    fn list(&mut self, folder: &Path, depth: usize) -> Option<Vec<(OsString, bool)>> {
        if depth > MAX_DEPTH {
            self.listed.cut = true;
            return None;
        }
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder).ok()? {
            self.listed.entries += 1;
            if self.listed.entries > self.listed.most {
                self.listed.cut = true;
                return None;
            }
            let entry = entry.ok()?;
            let kind = entry.file_type().ok()?;
            if !kind.is_symlink() {
                entries.push((entry.file_name(), kind.is_dir()));
            }
        }
        Some(entries)
    }
}
