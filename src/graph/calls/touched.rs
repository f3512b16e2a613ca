//! Which files' calls may mean something else after a change.
//!
//! A file mentions names: what it calls, the segments of paths, what it imports and from where. What
//! a change touches are names too: of symbols that came or went, and of what holds them; of imports
//! that did; of files that did, as imports name them. Who mentions nothing touched need not be
//! redone, and of a file whose imports mention nothing touched, only the symbols that do. It may
//! say too much, never too little.

use super::common;
use super::index::{self, Call, Family, File, FileId, Import, Index, On};
use super::names::Name;

/// More folders than that are not told apart.
const MANY_FOLDERS: usize = 64;

#[derive(Default)]
pub(super) struct Touched {
    names: Set,
    /// Names that modules are found by.
    modules: Set,
    /// Those that changed themselves.
    files: Vec<FileId>,
    /// Folders, written with a `/` at the end: what the modules below them are part of, and what
    /// they see by that, is not told by a name.
    below: Vec<String>,
    /// It is less work to redo it than to find out.
    everything: bool,
}

#[derive(Default)]
struct Set {
    bits: Vec<u64>,
    is_changed: bool,
}

impl Touched {
    pub(super) fn file(&mut self, id: FileId) {
        self.files.push(id);
    }

    pub(super) fn name(&mut self, name: Name) {
        self.names.insert(name);
    }

    /// Notes that a file came or went, or that what it passes on as a whole did.
    pub(super) fn module(&mut self, index: &mut Index, path: &str) {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let base = file.split_once('.').map_or(file, |(base, _)| base);
        self.modules.insert(index.names.add(base));
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
            self.modules.insert(index.names.add(name));
        }
        if let Some(name) = index::crate_of(path) {
            self.modules.insert(index.names.add(&name));
        }
    }

    fn folder(&mut self, folder: &str) {
        if !self.everything && !self.is_below(&format!("{folder}/")) {
            self.below.push(if folder.is_empty() { String::new() } else { format!("{folder}/") });
            self.modules.is_changed = true;
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

    fn alias(&mut self, index: &mut Index, path: &str, import: &Import) {
        let Some(alias) = index.names.path(import.alias).last().copied() else { return };
        self.names.insert(alias);
        if index.names.text(alias) == "default" {
            self.module(index, path);
        }
    }

    /// Goes on from what is touched to what is so by another name.
    pub(super) fn spread(&mut self, index: &mut Index) {
        self.files.sort_unstable();
        while !self.everything && (self.names.take_change() | self.modules.take_change()) {
            for at in 0..index.files.len() {
                let Some(file) = index.files.get_mut(at).and_then(Option::take) else { continue };
                self.spread_by(index, &file);
                index.files[at] = Some(file);
            }
        }
    }

    fn spread_by(&mut self, index: &mut Index, file: &File) {
        let moved = self.is_below(&file.path);
        for import in &file.imports {
            let path = index.names.path(import.path);
            let moved = moved || path.iter().any(|name| self.modules.contains(*name));
            if moved && import.all {
                self.module(index, &file.path);
            }
            let renames =
                import.name.is_none() || index.names.path(import.alias) != import.name.as_slice();
            let touched = || index.names.path(import.path).iter().any(|name| self.has(*name));
            if moved || (renames && touched()) {
                self.alias(index, &file.path, import);
            }
        }
    }

    /// Returns whether some of a file's calls are to be redone.
    pub(super) fn concerns(&self, id: FileId, file: &File) -> bool {
        self.everything
            || self.files.binary_search(&id).is_ok()
            || file.mentions.iter().any(|name| self.has(*name))
            || self.is_below(&file.path)
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
        self.has(call.name)
            || match call.on {
                On::Named(path) => index.names.path(path).iter().any(|name| self.has(*name)),
                On::Own => holders.into_iter().any(|holder| self.has(holder.name)),
                On::Nothing | On::Value => false,
            }
    }

    fn has(&self, name: Name) -> bool {
        self.names.contains(name) || self.modules.contains(name)
    }
}

impl Set {
    fn insert(&mut self, Name(name): Name) {
        let (word, bit) = (name as usize / 64, 1 << (name % 64));
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        self.is_changed |= self.bits[word] & bit == 0;
        self.bits[word] |= bit;
    }

    fn contains(&self, Name(name): Name) -> bool {
        self.bits.get(name as usize / 64).is_some_and(|word| word & (1 << (name % 64)) != 0)
    }

    fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
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
