//! Which files' calls may mean something else after a change.
//!
//! A file mentions names: what it calls, the segments of paths, what it imports and from where. What
//! a change touches are names too: of symbols that came or went, and of what holds them; of imports
//! that did; of files that did, as imports name them. Who mentions nothing touched need not be
//! redone, and of a file whose imports mention nothing touched, only the symbols that do. What stands
//! in another symbol is found by that one's name, or as a method of some value. It may say too much,
//! never too little.

use rustc_hash::FxHashSet;

use super::common;
use super::index::{self, Call, Family, File, FileId, Import, Index, On};
use super::names::{Name, number};

/// More folders than that are not told apart.
const MANY_FOLDERS: usize = 64;

#[derive(Default)]
pub(super) struct Touched {
    names: Set,
    /// Those of symbols that hold something that came or went.
    holders: Set,
    /// Those of what they hold: who brings in all of a holder knows it by them.
    held: Vec<Name>,
    /// Names that a method has which a value may have or have had.
    methods: Set,
    /// Names that modules are found by.
    modules: Set,
    /// Those that changed themselves.
    files: Vec<FileId>,
    /// Folders, written with a `/` at the end: what the modules below them are part of, and what
    /// they see by that, is not told by a name.
    below: Vec<String>,
    /// What of that came since it was last looked where it leads.
    fresh: Fresh,
    /// It is less work to redo it than to find out.
    everything: bool,
}

#[derive(Default)]
struct Fresh {
    names: Vec<Name>,
    below: Vec<String>,
}

impl Fresh {
    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.below.is_empty()
    }

    /// Returns the files that mention one of the names, or are in one of the folders, in order.
    fn leads_to(self, index: &Index) -> Vec<FileId> {
        let mut ids: Vec<_> =
            self.names.into_iter().flat_map(|name| index.mentioned_by(name)).copied().collect();
        ids.extend(self.below.iter().flat_map(|folder| index.below(folder)));
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

type Set = FxHashSet<Name>;

impl Touched {
    pub(super) fn file(&mut self, id: FileId) {
        self.files.push(id);
    }

    pub(super) fn name(&mut self, name: Name) {
        if self.names.insert(name) {
            self.fresh.names.push(name);
        }
    }

    pub(super) fn held(&mut self, name: Name, holder: Name) {
        self.held.push(name);
        if self.holders.insert(holder) {
            self.fresh.names.push(holder);
        }
    }

    pub(super) fn method(&mut self, name: Name) {
        self.methods.insert(name);
    }

    fn module_name(&mut self, name: Name) {
        if self.modules.insert(name) {
            self.fresh.names.push(name);
        }
    }

    /// Notes that a file came or went, or that what it passes on as a whole did.
    pub(super) fn module(&mut self, index: &mut Index, path: &str) {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let base = file.split_once('.').map_or(file, |(base, _)| base);
        self.module_name(index.names.add(base));
        if !matches!(base, "index" | "mod" | "lib" | "main" | "__init__") {
            return self.folder(&path[..path.len() - file.len() + base.len()]);
        }
        let package = folder.strip_suffix("src");
        let package = package.filter(|rest| rest.is_empty() || rest.ends_with('/'));
        let entered = package.map_or(folder, |rest| rest.trim_end_matches('/'));
        self.folder(entered);
        // They are known by the folder's name.
        for folder in [folder, entered] {
            let name = folder.rsplit('/').next().unwrap_or_default();
            self.module_name(index.names.add(name));
        }
        if let Some(name) = index::crate_of(path) {
            self.module_name(index.names.add(&name));
        }
    }

    fn folder(&mut self, folder: &str) {
        if !self.everything && !self.is_below(&format!("{folder}/")) {
            let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
            self.fresh.below.push(folder.clone());
            self.below.push(folder);
            self.everything |= self.below.len() > MANY_FOLDERS;
        }
    }

    fn is_below(&self, path: &str) -> bool {
        self.below.iter().any(|folder| path.starts_with(&**folder))
    }

    /// Notes in what two lists of imports of a file differ.
    pub(super) fn imports(
        &mut self,
        index: &mut Index,
        path: &str,
        before: &[Import],
        now: &[Import],
    ) {
        if before == now {
            return;
        }
        for (list, other) in [(before, now), (now, before)] {
            for (at, import) in list.iter().enumerate() {
                let again = || list.iter().filter(|other| other.alias == import.alias).count() > 1;
                if other.get(at) == Some(import) || (other.contains(import) && !again()) {
                    continue;
                }
                if import.all {
                    self.module(index, path);
                }
                self.alias(index, path, import);
            }
        }
    }

    /// Notes that what an import brings into a file is another; `*` stands for whatever it has.
    fn alias(&mut self, index: &mut Index, path: &str, import: &Import) {
        let Some(alias) = index.names.path(import.alias).last().copied() else { return };
        self.name(alias);
        // What it holds is reached through it, too.
        if self.holders.insert(alias) {
            self.fresh.names.push(alias);
        }
        if index.names.text(alias) == "default" {
            self.module(index, path);
        }
    }

    /// Notes that there is nothing yet that could stay as it is.
    pub(super) fn everything(&mut self) {
        self.everything = true;
    }

    pub(super) fn is_everything(&self) -> bool {
        self.everything
    }

    /// Goes on from what is touched to what is so by another name.
    pub(super) fn spread(&mut self, index: &mut Index) {
        self.files.sort_unstable();
        while !self.everything && !self.fresh.is_empty() {
            let fresh = std::mem::take(&mut self.fresh);
            for id in fresh.leads_to(index) {
                let at = id.0 as usize;
                let Some(file) = index.files.get_mut(at).and_then(Option::take) else { continue };
                self.spread_by(index, &file);
                index.files[at] = Some(file);
            }
        }
    }

    /// Returns all files some of whose calls are to be redone, and such as are none anymore; in
    /// order.
    pub(super) fn concerned(&self, index: &Index) -> Vec<FileId> {
        if self.everything {
            return (0..number(index.files.len())).map(FileId).collect();
        }
        let names = [&self.names, &self.modules, &self.holders, &self.methods];
        let names = names.into_iter().flatten().copied().collect();
        let mut ids = Fresh { names, below: self.below.clone() }.leads_to(index);
        ids.extend(&self.files);
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    fn spread_by(&mut self, index: &mut Index, file: &File) {
        let moved = self.is_below(&file.path);
        for import in &file.imports {
            let path = index.names.path(import.path);
            let moved = moved || path.iter().any(|name| self.modules.contains(name));
            let renames =
                import.name.is_none() || index.names.path(import.alias) != import.name.as_slice();
            let above = path.iter().rev().skip(usize::from(!import.all));
            let within = above.into_iter().any(|name| self.holders.contains(name));
            let named = path.iter().any(|name| self.is_named(*name));
            let touched = named || path.iter().any(|name| self.holders.contains(name));
            if import.all {
                if moved {
                    self.module(index, &file.path);
                }
                if within {
                    for name in std::mem::take(&mut self.held) {
                        self.name(name);
                    }
                }
                if moved || named {
                    self.alias(index, &file.path, import);
                }
            } else if moved || (renames && touched) || within {
                self.alias(index, &file.path, import);
            }
        }
    }

    /// Returns whether all of a file's calls are to be redone.
    pub(super) fn concerns_all(&self, index: &Index, id: FileId, file: &File) -> bool {
        let by = |import: &Import| {
            let paths = [import.path, import.alias];
            paths.iter().any(|path| index.names.path(*path).iter().any(|name| self.has(*name)))
        };
        self.everything
            || self.files.binary_search(&id).is_ok()
            || self.is_below(&file.path)
            || file.imports.iter().any(by)
    }

    /// Returns whether a call is to be redone for what it mentions itself.
    pub(super) fn concerns_call(&self, index: &Index, file: &File, call: &Call) -> bool {
        let holders = std::iter::successors(file.symbols.get(call.within as usize), |symbol| {
            file.symbols.get(symbol.parent as usize)
        });
        let is_method = self.methods.contains(&call.name);
        match call.on {
            On::Nothing => self.has(call.name),
            On::Value => is_method,
            On::Own => is_method || holders.into_iter().any(|holder| self.has(holder.name)),
            On::Named(path) => {
                let mut names = index.names.path(path).iter().chain([&call.name]);
                is_method || names.any(|name| self.has(*name))
            }
        }
    }

    fn is_named(&self, name: Name) -> bool {
        self.names.contains(&name) || self.modules.contains(&name)
    }

    fn has(&self, name: Name) -> bool {
        self.is_named(name) || self.holders.contains(&name)
    }
}

/// Returns all names that what a file's calls mean depends on.
pub(super) fn mentions(index: &Index, file: &File) -> Box<[Name]> {
    let Some(family) = file.family else { return Box::default() };
    let mut names = Vec::new();
    for call in &file.calls {
        let text = index.names.text(call.name);
        let is_meant = match call.on {
            On::Named(path) => {
                let path = index.names.path(path);
                names.extend(path);
                let last = path.last().map_or("", |last| index.names.text(*last));
                // What a type holds is touched by the type's name.
                family != Family::Rust || !last.starts_with(char::is_uppercase)
            }
            On::Value => !common::is_common(family, text),
            On::Nothing | On::Own => true,
        };
        if is_meant {
            names.push(call.name);
        }
    }
    for import in &file.imports {
        names.extend(index.names.path(import.path));
        names.extend(index.names.path(import.alias));
    }
    if file.calls.iter().any(|call| call.on == On::Own) {
        names.extend(file.symbols.iter().map(|symbol| symbol.name));
    }
    names.sort_unstable();
    names.dedup();
    names.into()
}
