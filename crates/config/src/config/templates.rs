//! `[templates.NAME]`: tables that others take by `template = "NAME"`, and lay their own keys over. They
//! are merged before anything is read, so that each value keeps its place in the file.

mod built_in;
mod shown;

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use self::built_in::{built_in, placed};
pub use self::shown::Template;
use super::errors::{code, quoted};
use super::fault::Fault;
use super::near::nearest;
use super::read::Table;
use super::value::{bad_name, is_name};

/// The arrays of tables that may name a template.
const TAKERS: [&str; 2] = ["agents", "streams"];

/// The key that names a template.
const TEMPLATE: &str = "template";

/// Longer chains of templates are refused: each one costs stack.
const MAX_CHAIN: usize = 32;

/// Bytes that all tables together may take of templates, at most; a value counts for as many as it
/// takes in memory. Past that the file is refused: a short table may name a long template.
const MAX_TAKEN: usize = 8 * 1024 * 1024;

/// Bytes that a value takes in memory beside its text.
const VALUE_BYTES: usize = 128;

/// A key that takes the place of others of a template.
const REPLACES: [(&str, &[&str]); 7] = [
    ("command", &["profile", "tier", "url", "base_url", "headers"]),
    ("profile", &["command", "tier", "url", "base_url", "headers"]),
    (
        "tier",
        &["command", "profile", "url", "base_url", "headers", "model", "thinking", "provider"],
    ),
    ("url", &["command", "profile", "tier", "base_url"]),
    ("base_url", &["command", "profile", "tier", "url"]),
    ("prompt", &["prompt_file"]),
    ("prompt_file", &["prompt"]),
];

/// The templates that could not be taken.
#[derive(Default)]
pub(super) struct Untaken {
    pub(super) faults: Vec<Fault>,
    /// The places of the names: what the tables lack may be in the templates.
    pub(super) gaps: Vec<Range<usize>>,
}

/// Lays the tables of a file, and those that were added to it, over the templates that they name.
pub(super) fn take<'a>(document: &mut DeTable<'a>, added: &mut DeTable<'a>) -> Untaken {
    let own = own(document);
    let mut resolver = Resolver::new(&own);
    for name in own.keys() {
        resolver.resolve(name);
    }
    for root in [document, added] {
        for taker in TAKERS {
            let Some(DeValue::Array(array)) = root.get_mut(taker).map(Spanned::get_mut) else {
                continue;
            };
            for item in array.iter_mut() {
                let DeValue::Table(table) = item.get_mut() else { continue };
                let Some(name) = named(table) else { continue };
                if taker != "agents" {
                    // Who reads the others need not know of it.
                    table.remove(TEMPLATE);
                }
                let Some(template) = resolver.find(&name, None) else { continue };
                lay(table, &template);
            }
        }
    }
    resolver.untaken
}

/// Reads `[templates]`: each is a table, with a name. What is in it is read where it is taken.
pub(super) fn templates(root: &Table<'_>) {
    root.section("templates", "templates", |templates| {
        for (name, item) in templates.entries() {
            if !is_name(&name.value) {
                templates.fault(bad_name("a template's name", &name));
            }
            let DeValue::Table(table) = item.get_ref() else {
                templates.wrong(
                    &code(&name.value),
                    item,
                    "a table",
                    "write `[templates.NAME]`, and its keys below",
                );
                continue;
            };
            if let Some((id, _)) = table.get_key_value("id") {
                let fault = Fault::new(id.span(), "a template can't have an `id`");
                templates.fault(fault.help("each table that takes it has its own"));
            }
            let base = table.get(TEMPLATE).filter(|base| !base.get_ref().is_str());
            if let Some(base) = base {
                templates.wrong("`template`", base, "a string", "write it in quotes");
            }
        }
    });
}

/// The templates of a file.
fn own<'a>(document: &DeTable<'a>) -> BTreeMap<String, DeTable<'a>> {
    let templates = document.get("templates").and_then(|item| item.get_ref().as_table());
    let templates = templates.into_iter().flatten();
    templates
        .filter_map(|(name, item)| {
            Some((name.get_ref().to_string(), item.get_ref().as_table()?.clone()))
        })
        .collect()
}

/// The name of a template, and its place.
type TemplateName = (String, Range<usize>);

/// Returns the template that a table names.
fn named(table: &DeTable<'_>) -> Option<TemplateName> {
    let item = table.get(TEMPLATE)?;
    Some((item.get_ref().as_str()?.to_owned(), item.span()))
}

/// Resolves each template's own template.
struct Resolver<'o, 'a> {
    own: &'o BTreeMap<String, DeTable<'a>>,
    /// Templates under resolution, each taken by the previous one.
    path: Vec<String>,
    /// None for one that could not be resolved, whose fault is recorded.
    done: BTreeMap<String, Option<Rc<DeTable<'a>>>>,
    taken: usize,
    untaken: Untaken,
}

impl<'o, 'a> Resolver<'o, 'a> {
    fn new(own: &'o BTreeMap<String, DeTable<'a>>) -> Self {
        Self { own, path: Vec::new(), done: BTreeMap::new(), taken: 0, untaken: Untaken::default() }
    }

    /// Returns a template of the file with what it takes of others.
    fn resolve(&mut self, name: &str) -> Option<Rc<DeTable<'a>>> {
        if let Some(done) = self.done.get(name) {
            return done.clone();
        }
        let mut template = self.own.get(name)?.clone();
        self.path.push(name.to_owned());
        let resolved = match named(&template) {
            None => Some(template),
            Some(base) => self.find(&base, Some(name)).map(|base| {
                lay(&mut template, &base);
                template
            }),
        };
        let resolved = resolved.map(Rc::new);
        self.path.pop();
        self.done.insert(name.to_owned(), resolved.clone());
        resolved
    }

    /// Returns the template of a name in a table; `of` is the template whose table that is. One with
    /// the name of a built-in one can take that.
    fn find(&mut self, named: &TemplateName, of: Option<&str>) -> Option<Rc<DeTable<'a>>> {
        let (name, place) = named;
        let found = if of != Some(name) && self.own.contains_key(name) {
            match self.refusal(name) {
                Some(fault) => return self.refuse(place, fault),
                // Its own fault is recorded.
                None => match self.resolve(name) {
                    Some(found) => found,
                    None => return self.leave(place),
                },
            }
        } else if let Some(found) = built_in().get(name) {
            Rc::new(placed(found, place))
        } else {
            let fault = self.unknown(name, place);
            return self.refuse(place, fault);
        };
        self.taken = self.taken.saturating_add(weight(&found));
        if self.taken > MAX_TAKEN {
            let fault = Fault::new(place.clone(), "the templates add too much in all");
            return self.refuse(place, fault.help("use fewer or smaller templates"));
        }
        Some(found)
    }

    /// Why a template of the file can't be resolved where it is named.
    fn refusal(&self, name: &str) -> Option<Fault> {
        let circle = self.path.iter().position(|other| other == name);
        if circle.is_none() && self.path.len() < MAX_CHAIN {
            return None;
        }
        let message = match circle {
            Some(start) => {
                let mut names: Vec<&str> = self.path[start..].iter().map(String::as_str).collect();
                names.push(name);
                format!("templates take each other: {}", names.join(" → "))
            }
            None => format!("templates are nested deeper than {MAX_CHAIN}"),
        };
        Some(Fault::new(0..0, message).help("leave out one of these `template`s"))
    }

    fn unknown(&self, name: &str, place: &Range<usize>) -> Fault {
        let own = self.own.keys().map(String::as_str);
        let mut known: Vec<&str> = built_in().keys().map(String::as_str).chain(own).collect();
        known.sort_unstable();
        known.dedup();
        let fault = Fault::new(place.clone(), format!("there is no template {}", quoted(name)));
        match nearest(name, &known) {
            Some(near) => fault.help(format!("did you mean \"{near}\"?")),
            None => fault.help(format!("there are {}", known.join(", "))),
        }
    }

    fn refuse(&mut self, place: &Range<usize>, fault: Fault) -> Option<Rc<DeTable<'a>>> {
        self.untaken.faults.push(Fault { span: Some(place.clone()), ..fault });
        self.leave(place)
    }

    fn leave(&mut self, place: &Range<usize>) -> Option<Rc<DeTable<'a>>> {
        self.untaken.gaps.push(place.clone());
        None
    }
}

/// Lays a table over a template.
fn lay<'a>(over: &mut DeTable<'a>, template: &DeTable<'a>) {
    let replaced = REPLACES.iter().filter(|(key, _)| over.contains_key(*key));
    let replaced: Vec<&str> = replaced.flat_map(|(_, others)| *others).copied().collect();
    merge(over, template, &replaced);
}

/// Adds what `over` does not have, except for the keys `without`. Tables are merged key by key; all
/// else of `over` stays as it is.
fn merge<'a>(over: &mut DeTable<'a>, under: &DeTable<'a>, without: &[&str]) {
    for (key, value) in under {
        let name: &str = key.get_ref();
        match (over.get_mut(name).map(Spanned::get_mut), value.get_ref()) {
            (Some(DeValue::Table(over)), DeValue::Table(under)) => merge(over, under, &[]),
            (Some(_), _) => {}
            (None, _) if without.contains(&name) => {}
            (None, _) => drop(over.insert(key.clone(), value.clone())),
        }
    }
}

/// About how many bytes a table takes in memory.
fn weight(table: &DeTable<'_>) -> usize {
    let mut bytes = 0;
    for (key, item) in table {
        bytes += VALUE_BYTES + key.get_ref().len() + weight_of(item.get_ref());
    }
    bytes
}

fn weight_of(value: &DeValue<'_>) -> usize {
    VALUE_BYTES
        + match value {
            DeValue::String(text) => text.len(),
            DeValue::Array(array) => array.iter().map(|item| weight_of(item.get_ref())).sum(),
            DeValue::Table(table) => weight(table),
            _ => 0,
        }
}
