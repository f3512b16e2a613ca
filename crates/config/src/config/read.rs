//! Typed reads of parsed TOML that record errors and continue.
//!
//! A table remembers the keys that were requested. So the code that reads the known keys is their
//! only list: every other key is unknown.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::errors::{MAX_SHOWN, code, printable, quoted};
use super::expand::expand;
use super::fault::Fault;
use super::key_owner::KeyOwner;
use super::near::{nearest, suggested_key};
use super::syntax::section_end;
use super::{Plugin, Surroundings};

/// The variable that holds the folder of the file in strings.
const CONFIG_DIR: &str = "EISEN_CONFIG_DIR";

/// Characters of a plugin's error that are shown.
const LONGEST_WHY: usize = 1000;

/// State that all tables of a file share.
pub(super) struct ConfigReader<'a> {
    /// The text as written.
    text: &'a str,
    /// Ranges that were not read because their syntax is broken; in order.
    gaps: &'a [Range<usize>],
    /// Folder of the file, absolute.
    dir: &'a Path,
    pub(super) surroundings: &'a Surroundings,
    /// The variables that have keys of providers, to which nothing else refers.
    keys: BTreeMap<String, KeyOwner>,
    log: RefCell<Log>,
}

#[derive(Default)]
struct Log {
    faults: Vec<Fault>,
    unknown: Vec<(&'static str, String, Range<usize>)>,
    /// Names of providers whose tables have mistakes: who names one makes none.
    faulty_providers: HashSet<String>,
    known: KnownKeys,
}

/// The keys of each table, in the order in which they were requested.
pub(super) type KnownKeys = BTreeMap<&'static str, Vec<&'static str>>;

/// One table of the file; an empty one stands for a missing table.
pub(super) struct Table<'a> {
    pub(super) reader: &'a ConfigReader<'a>,
    /// As in a header: `agents.zone`; empty for the top level.
    name: &'static str,
    pub(super) span: Range<usize>,
    entries: Option<&'a DeTable<'a>>,
    /// Any key is accepted.
    open: Cell<bool>,
}

/// A string and its place, quotes included.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) value: String,
    pub(super) span: Range<usize>,
}

impl<'a> ConfigReader<'a> {
    pub(super) fn new(
        text: &'a str,
        gaps: &'a [Range<usize>],
        dir: &'a Path,
        surroundings: &'a Surroundings,
    ) -> Self {
        let (keys, log) = (BTreeMap::new(), RefCell::default());
        Self { text, gaps, dir, surroundings, keys, log }
    }

    /// Keeps variables for the keys of providers.
    pub(super) fn with_keys(self, keys: BTreeMap<String, KeyOwner>) -> Self {
        Self { keys, ..self }
    }

    /// Returns the provider whose key a variable has.
    pub(super) fn key_owner(&self, variable: &str) -> Option<&KeyOwner> {
        self.keys.get(variable)
    }

    /// Reads the top level. Keys that `read` does not request are unknown.
    pub(super) fn read<T>(
        &'a self,
        root: &'a DeTable<'a>,
        read: impl FnOnce(&Table<'a>) -> T,
    ) -> T {
        Table::new(self, "", 0..0, Some(root)).closed(read)
    }

    pub(super) fn fault(&self, fault: Fault) {
        self.log.borrow_mut().faults.push(fault);
    }

    /// Notes a provider whose table has a mistake.
    pub(super) fn note_faulty_provider(&self, name: &str) {
        self.log.borrow_mut().faulty_providers.insert(name.to_owned());
    }

    /// Records that there is no provider of a name, unless its table has a mistake, which is recorded.
    pub(super) fn fault_of_provider(&self, name: &str, fault: Fault) {
        let mut log = self.log.borrow_mut();
        if !log.faulty_providers.contains(name) {
            log.faults.push(fault);
        }
    }

    /// Tries the plugin at `span`, and returns it with the result.
    pub(super) fn try_out(&self, plugin: Plugin, span: Range<usize>) -> Plugin {
        let gates = (self.surroundings.try_out)(&plugin).unwrap_or_else(|why| {
            let why = printable(&why, LONGEST_WHY);
            let message = format!("the plugin {} can't be used: {why}", quoted(&plugin.name));
            let file = printable(&plugin.path.to_string_lossy(), LONGEST_WHY);
            self.fault(Fault::new(span, message).help(format!("its library is {file}")));
            false
        });
        Plugin { gates, ..plugin }
    }

    /// Resolves a path relative to the file's folder.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        // Removes `./` from the middle, which would show in every message.
        self.dir.join(path).components().collect()
    }

    /// Returns all faults and all known keys.
    pub(super) fn finish(&self) -> (Vec<Fault>, KnownKeys) {
        let mut log = self.log.take();
        log.unknown.sort_by_key(|(_, _, span)| span.start);
        // What stands in a template is read once for each table that takes it.
        log.unknown.dedup();
        for (index, (table, key, span)) in log.unknown.iter().enumerate() {
            let message = format!("unknown key {} {}", code(key), place(table));
            let fault = Fault::new(span.clone(), message);
            // Comparing with all names is slow, and later faults are not shown.
            let shown = index < MAX_SHOWN;
            log.faults.push(if shown { fault.help(advice(&log.known, table, key)) } else { fault });
        }
        let mut seen = HashSet::new();
        log.faults.retain(|fault| seen.insert((fault.span.clone(), fault.message.clone())));
        (log.faults, log.known)
    }

    /// Expands the variables in the string at `span`.
    fn expand(&self, raw: &str, span: &Range<usize>) -> Option<String> {
        let refused = Cell::new(None);
        let lookup = |name: &str| match name {
            CONFIG_DIR => self.dir.to_str().map(str::to_owned),
            _ if self.key_owner(name).is_some() => {
                refused.set(self.key_owner(name).map(|owner| owner.refusal(name)));
                None
            }
            _ => (self.surroundings.variable)(name),
        };
        let expanded = expand(raw, lookup);
        if let Some(message) = refused.take() {
            let help =
                "leave it out: nothing but that `key` refers to it, so that no agent gets the key";
            self.fault(Fault::new(span.clone(), message).help(help));
            return None;
        }
        match expanded {
            Ok(expanded) if expanded.contains('\0') => {
                self.fault(
                    Fault::new(span.clone(), "a string can't contain a NUL character")
                        .help("leave it out: neither paths nor commands can carry one"),
                );
                None
            }
            Ok(expanded) => Some(expanded),
            Err(error) => {
                // If the piece has escapes, its place is not found; then the whole string is shown.
                let piece = &raw[error.at];
                let at = self.text[span.clone()].find(piece).map_or(span.clone(), |found| {
                    span.start + found..span.start + found + piece.len()
                });
                self.fault(Fault::new(at, error.message).help(error.help));
                None
            }
        }
    }
}

impl<'a> Table<'a> {
    /// Reads a subtable; an empty one if it is missing.
    pub(super) fn section<T>(
        &self,
        key: &'static str,
        name: &'static str,
        read: impl FnOnce(&Table<'a>) -> T,
    ) -> T {
        let (span, entries) = match self.get(key).map(|item| (item, item.get_ref())) {
            Some((item, DeValue::Table(table))) => (item.span(), Some(table)),
            Some((item, _)) => {
                let usual = || format!("write `[{name}]`, and its keys below");
                let help = suggested_key(name, key).map_or_else(usual, str::to_owned);
                self.wrong(&code(key), item, "a table", &help);
                (item.span(), None)
            }
            None => (self.span.clone(), None),
        };
        Table::new(self.reader, name, span, entries).closed(read)
    }

    /// Reads each table of an array of tables.
    pub(super) fn sections<T>(
        &self,
        key: &'static str,
        mut read: impl FnMut(&Table<'a>) -> T,
    ) -> Vec<T> {
        let help = format!("write `[[{key}]]`, and its keys below, once for each");
        let mut section = |item: &'a Spanned<DeValue<'a>>| {
            let DeValue::Table(table) = item.get_ref() else {
                self.wrong(&code(key), item, "an array of tables", &help);
                return None;
            };
            Some(Table::new(self.reader, key, item.span(), Some(table)).closed(&mut read))
        };
        match self.get(key).map(|item| (item, item.get_ref())) {
            Some((_, DeValue::Array(array))) => array.iter().filter_map(section).collect(),
            // Read it all the same, to record its own mistakes.
            Some((item, _)) => {
                self.wrong(&code(key), item, "an array of tables", &help);
                if item.get_ref().is_table() {
                    section(item);
                }
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// Returns every entry of a table with free keys, in the order of the file.
    pub(super) fn entries(&self) -> Vec<(Text, &'a Spanned<DeValue<'a>>)> {
        self.open.set(true);
        let mut entries: Vec<_> = self
            .entries
            .into_iter()
            .flatten()
            .map(|(key, value)| {
                (Text { value: key.get_ref().to_string(), span: key.span() }, value)
            })
            .collect();
        entries.sort_by_key(|(key, _)| key.span.start);
        entries
    }

    /// Reads a value of a table with free keys as a table.
    pub(super) fn entry<T>(
        &self,
        item: &'a Spanned<DeValue<'a>>,
        name: &'static str,
        read: impl FnOnce(&Table<'a>) -> T,
    ) -> Option<T> {
        let DeValue::Table(table) = item.get_ref() else {
            self.wrong(
                &code(name),
                item,
                "a table",
                &format!("write `[{name}]`, and its keys below"),
            );
            return None;
        };
        Some(Table::new(self.reader, name, item.span(), Some(table)).closed(read))
    }

    /// Returns the place of a key's value; None if the key is not set.
    pub(super) fn place_of(&self, key: &'static str) -> Option<Range<usize>> {
        self.get(key).map(Spanned::span)
    }

    /// Records that this table lacks a value, unless part of the table could not be read.
    pub(super) fn lacks(&self, message: impl Into<String>, help: impl Into<String>) {
        let section = self.span.start..section_end(self.reader.text, self.span.start);
        let before_end = self.reader.gaps.partition_point(|gap| gap.start < section.end);
        let last = self.reader.gaps[..before_end].last();
        if last.is_none_or(|gap| gap.end <= section.start) {
            self.fault(Fault::new(self.span.clone(), message).help(help));
        }
    }

    pub(super) fn fault(&self, fault: Fault) {
        self.reader.fault(fault);
    }

    /// Records a value of the wrong type; `what` names it.
    pub(super) fn wrong(&self, what: &str, item: &Spanned<DeValue<'_>>, wanted: &str, help: &str) {
        let found = match item.get_ref().type_str() {
            "integer" => "an integer",
            "array" => "an array",
            "float" => "a float",
            "datetime" => "a date",
            "string" => "a string",
            "boolean" => "a boolean",
            _ => "a table",
        };
        let message = format!("{what} must be {wanted}, not {found}");
        self.fault(Fault::new(item.span(), message).help(help));
    }

    /// Returns a raw value, and makes the key known.
    pub(super) fn get(&self, key: &'static str) -> Option<&'a Spanned<DeValue<'a>>> {
        let mut log = self.reader.log.borrow_mut();
        let known = log.known.entry(self.name).or_default();
        if !known.contains(&key) {
            known.push(key);
        }
        self.entries?.get(key)
    }

    /// Returns a string with its variables expanded.
    pub(super) fn expanded(&self, raw: &str, span: Range<usize>) -> Option<Text> {
        let value = self.reader.expand(raw, &span)?;
        Some(Text { value, span })
    }

    fn new(
        reader: &'a ConfigReader<'a>,
        name: &'static str,
        span: Range<usize>,
        entries: Option<&'a DeTable<'a>>,
    ) -> Self {
        Self { reader, name, span, entries, open: Cell::new(false) }
    }

    /// Lets `read` request the known keys, then records all others as unknown.
    fn closed<T>(self, read: impl FnOnce(&Self) -> T) -> T {
        let value = read(&self);
        if self.open.get() {
            return value;
        }
        let mut log = self.reader.log.borrow_mut();
        for (key, _) in self.entries.into_iter().flatten() {
            let name: &str = key.get_ref();
            if !log.known.get(self.name).is_some_and(|known| known.contains(&name)) {
                log.unknown.push((self.name, name.to_owned(), key.span()));
            }
        }
        value
    }
}

fn place(table: &str) -> String {
    match table {
        "" => "at the top level".to_owned(),
        "agents" | "notify" | "routing" | "streams" | "tasks" | "tiers" => {
            format!("in `[[{table}]]`")
        }
        "tiers.candidates" => "in a candidate of `[[tiers]]`".to_owned(),
        _ => format!("in `[{table}]`"),
    }
}

fn advice(known: &KnownKeys, table: &str, key: &str) -> String {
    let keys = known.get(table).map(Vec::as_slice).unwrap_or_default();
    if let Some(meant) = suggested_key(table, key) {
        return meant.to_owned();
    }
    // Nothing of an agent's is meant where a provider is described.
    let is_apart = table == "providers.NAME";
    let elsewhere = known.iter().filter(|(_, keys)| !is_apart && keys.contains(&key));
    let elsewhere = elsewhere.map(|(other, _)| *other);
    let elsewhere: Vec<&str> = elsewhere.collect();
    if let Some(first) = elsewhere.first() {
        let places: Vec<String> = elsewhere.iter().rev().map(|other| place(other)).collect();
        return match *first {
            "" => format!("{} is a table of its own, at the top level", code(key)),
            _ => format!("it belongs {}", places.join(" or ")),
        };
    }
    let all: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    match nearest(key, keys) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the keys here are {}", all.join(", ")),
    }
}

/// Returns the fault of an unknown enumerated value.
pub(super) fn unknown_value(key: &str, value: &Text, names: &[&str]) -> Fault {
    let fault =
        Fault::new(value.span.clone(), format!("{} can't be {}", code(key), quoted(&value.value)));
    let all: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    match nearest(&value.value, names) {
        Some(near) => fault.help(format!("did you mean \"{near}\"? It can be {}", all.join(", "))),
        None => fault.help(format!("it can be {}", all.join(", "))),
    }
}
