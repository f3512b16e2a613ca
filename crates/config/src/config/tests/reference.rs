//! Holds `config/full.toml` and `docs/configuration.md` to the code that reads the keys.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::surroundings;
use crate::config::Config;
use crate::config::diff::{self, Takes};

const FULL: &str = include_str!("../../../../../config/full.toml");
const DOCS: &str = include_str!("../../../../../docs/configuration.md");

fn full_path() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/full.toml"))
}

/// Every key that the reader asks for, with its table.
pub(super) fn known() -> BTreeSet<String> {
    let text = "agents = [{}]\nplugins = [{}]\nnotify = [{}]\nstreams = [{}]\nrouting = [{}]\ntiers = [{ candidates = [{}] }]\nprofiles.x.providers.openai = {}\n\
                providers.x = {}\nprices.x = {}";
    let (_, known) = Config::compile(full_path(), text.to_owned(), &surroundings());
    let tables: Vec<&str> = known.keys().copied().collect();
    known
        .into_iter()
        .filter(|(table, _)| !table.is_empty())
        .flat_map(|(table, keys)| keys.into_iter().map(move |key| format!("{table}.{key}")))
        .filter(|key| {
            let is_below = |rest: &str| rest.is_empty() || rest.starts_with('.');
            !tables.iter().any(|table| table.strip_prefix(key.as_str()).is_some_and(is_below))
        })
        .collect()
}

/// The keys of full.toml with the text of their values; those behind a `#` without.
fn written() -> BTreeMap<String, Option<String>> {
    let mut keys = BTreeMap::new();
    let mut table = String::new();
    for line in
        FULL.lines().filter(|line| !line.is_empty() && !line.starts_with("# ") && *line != "#")
    {
        let (line, set) = line.strip_prefix('#').map_or((line, true), |line| (line, false));
        if line.starts_with('[') {
            table = line.trim_matches(['[', ']']).replace("profiles.mine", "profiles.NAME");
            table = table.replace("prices.mine", "prices.MODEL");
            table = table.replace("providers.main", "providers.NAME");
            table = table.replace("providers.openai", "providers.KIND");
        } else {
            let (key, value) = line.split_once(" = ").unwrap();
            let old = keys.insert(format!("{table}.{key}"), set.then(|| value.to_owned()));
            assert_eq!(old, None, "{table}.{key} is there twice");
        }
    }
    keys
}

#[test]
fn full_toml_has_every_key() {
    assert_eq!(written().into_keys().collect::<BTreeSet<_>>(), known());
}

#[test]
fn full_toml_is_valid_also_with_every_key_set() {
    let alternatives = [
        "#profile =",
        "#tier =",
        "#parent =",
        "#prompt_file =",
        "#url =",
        "#base_url =",
        "#secret =",
        "#headers =",
        "#batch =",
        "#subject =",
        "#jetstream =",
        "#token =",
        "#chat_id =",
        "#contents =",
        "#credentials =",
        "#timeout_s =",
        "#key_command =",
    ];
    let mut is_candidate = false;
    let all = |line: &str| match line.strip_prefix('#') {
        Some(rest) if !rest.is_empty() && !rest.starts_with(' ') => {
            is_candidate = rest == "[[tiers.candidates]]" || is_candidate && !rest.starts_with('[');
            let other = alternatives.iter().any(|other| line.starts_with(other));
            if other && !is_candidate { String::new() } else { rest.to_owned() }
        }
        _ => line.to_owned(),
    };
    let text: Vec<String> = FULL.lines().map(all).collect();
    let config = Config::compile(full_path(), text.join("\n"), &surroundings()).0;
    let config = config.unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(config.agents[0].memory_mb, Some(2048));
}

#[test]
fn full_toml_has_the_defaults() {
    let least = "agents = [{ id = \"ui\", command = [\"opencode\", \"acp\"], zone = {} }]";
    let compile = |text: &str| {
        let config = Config::compile(full_path(), text.to_owned(), &surroundings()).0;
        let config = config.unwrap_or_else(|errors| panic!("{errors}"));
        format!("{config:#?}")
    };
    assert_eq!(compile(FULL), compile(least));
}

/// In the reference each table of the file has a heading and a table of its keys, with the
/// defaults in the third column.
#[test]
fn the_reference_has_every_key_with_its_default() {
    let mut table = String::new();
    let mut documented = BTreeMap::new();
    for line in DOCS.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            table = heading.trim_matches(['`', '[', ']']).to_owned();
        } else if line.starts_with("| `") {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let [key, _type, default, _meaning] = cells[..] else { panic!("{line}") };
            let default = default.strip_prefix('`').and_then(|default| default.strip_suffix('`'));
            let key = format!("{table}.{}", key.trim_matches('`'));
            documented.insert(key, default.map(str::to_owned));
        }
    }
    let mut written = written();
    for given in ["agents.id", "agents.command"] {
        written.insert(given.to_owned(), None);
    }
    assert_eq!(documented, written);
}

#[test]
fn the_document_names_each_key_that_a_running_team_takes_at_once() {
    let (_, section) = DOCS.split_once("## Changes while a team runs").unwrap();
    let (at_once, _) = section.split_once("- **At the agent's next start**").unwrap();
    let at_once_of = |(key, takes): (&'static str, Takes)| (takes == Takes::AtOnce).then_some(key);
    let team = diff::TEAM.iter().filter_map(|(key, takes, _)| at_once_of((key, *takes)));
    let agent = diff::AGENT.iter().filter_map(|(key, takes, _)| at_once_of((key, *takes)));
    let is_named = |key: &str, table: &str| {
        let (of, name) = key.rsplit_once('.').unwrap_or(("", key));
        let tables = [format!("`[{table}{of}]`"), format!("`[[{key}]]`"), format!("`{name}`")];
        tables.iter().any(|name| at_once.contains(name.as_str()))
    };
    let missing: Vec<_> = team
        .filter(|key| !is_named(key, ""))
        .chain(agent.filter(|key| !is_named(key, "agents.")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
