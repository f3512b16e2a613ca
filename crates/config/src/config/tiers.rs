//! `[[tiers]]`: names for agents that can stand in for one another, in an order.

use std::collections::BTreeMap;

use toml::de::DeValue;

use super::agent_provider::check_name;
pub use super::candidate::TierCandidate;
use super::errors::{code, quoted};
use super::fault::Fault;
use super::near::nearest;
use super::profiles::Profiles;
use super::read::{Table, Text};
use super::value::{bad_name, is_name};
use super::{Agent, Provider};
use crate::model::{TakenCandidate, named};

/// Candidates of a tier.
const MOST_CANDIDATES: usize = 32;

/// Tiers of a file.
const MOST_TIERS: usize = 100;

/// Agents of which one is taken: the next one where that can't work now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentTier {
    pub name: String,
    /// Never empty; each is there once.
    pub candidates: Vec<TierCandidate>,
    pub pick: Pick,
}

named! {
    /// Which candidate is tried first.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Pick {
        /// The first in the order of the file.
        First = "first",
        /// The one behind the last that was taken.
        Rotate = "rotate",
        /// The one whose model has the lowest price.
        Cheapest = "cheapest",
    }
}

/// The profiles and providers that candidates can name.
type KnownTables<'a> = (&'a Profiles, &'a BTreeMap<String, Provider>);

impl Agent {
    /// Returns the candidate that the agent takes of its tier.
    pub fn taken_candidate(&self) -> Option<TakenCandidate> {
        let TierCandidate { profile, model, .. } = self.candidate.clone()?;
        Some(TakenCandidate { tier: self.tier.clone()?, profile, model })
    }
}

/// Reads `[[tiers]]`, over those of another file: a tier replaces the one of the same name.
pub(super) fn tiers(
    root: &Table<'_>,
    known: KnownTables<'_>,
    under: &[AgentTier],
) -> Vec<AgentTier> {
    let mut names: Vec<String> = Vec::new();
    let own = root.sections("tiers", |table| tier(table, known, &mut names));
    let mut all: BTreeMap<String, AgentTier> = BTreeMap::new();
    let mut order: Vec<String> = Vec::new();
    for tier in under.iter().cloned().chain(own.into_iter().flatten()) {
        if !all.contains_key(&tier.name) {
            order.push(tier.name.clone());
        }
        all.insert(tier.name.clone(), tier);
    }
    order.into_iter().filter_map(|name| all.remove(&name)).collect()
}

/// Reads an agent's `tier`: the candidate that it takes. None without the key, and for a mistake.
pub(super) fn of_agent(
    table: &Table<'_>,
    agent: Option<&str>,
    tiers: &[AgentTier],
) -> Option<TierCandidate> {
    let name = table.word("tier")?;
    for key in ["command", "profile", "model", "thinking", "provider"] {
        if let Some(place) = table.place_of(key) {
            let message = format!("`tier` and {} can't both be given", code(key));
            table.fault(
                Fault::new(place, message).help("keep one: the candidates of a tier say it"),
            );
        }
    }
    let Some(tier) = tiers.iter().find(|tier| tier.name == name.value) else {
        table.fault(unknown_tier(&name, tiers));
        return None;
    };
    let taken = agent.and_then(|agent| table.reader.surroundings.taken.get(agent));
    taken.filter(|taken| tier.candidates.contains(taken)).or(tier.candidates.first()).cloned()
}

/// The fault of a name that is no tier's.
fn unknown_tier(name: &Text, tiers: &[AgentTier]) -> Fault {
    let known: Vec<&str> = tiers.iter().map(|tier| tier.name.as_str()).collect();
    let fault = Fault::new(name.span.clone(), format!("there is no tier {}", quoted(&name.value)));
    match nearest(&name.value, &known) {
        Some(near) => fault.help(format!("did you mean \"{near}\"?")),
        None if known.is_empty() => {
            fault.help("write it as `[[tiers]]`, here or in $EISEN_DIR/config.toml")
        }
        None => fault.help(format!("there are {}", known.join(", "))),
    }
}

fn tier(table: &Table<'_>, known: KnownTables<'_>, names: &mut Vec<String>) -> Option<AgentTier> {
    let pick = table.choice("pick");
    let candidates = candidates(table, known);
    let name = table.text("name");
    if table.place_of("name").is_none() {
        table.lacks("this tier has no `name`", "give it one, such as `name = \"smart\"`");
    }
    let name = name?;
    if !is_name(&name.value) {
        table.fault(bad_name("`name`", &name));
        return None;
    }
    if names.contains(&name.value) {
        let message = format!("there is another tier with the name {}", quoted(&name.value));
        table.fault(Fault::new(name.span, message).help("give each its own"));
        return None;
    }
    names.push(name.value.clone());
    if names.len() > MOST_TIERS {
        let message = format!("there are more than {MOST_TIERS} tiers");
        table.fault(Fault::new(table.span.clone(), message).help("leave some out"));
        return None;
    }
    Some(AgentTier { name: name.value, candidates: candidates?, pick })
}

/// None if there is none to take, which is recorded.
fn candidates(table: &Table<'_>, known: KnownTables<'_>) -> Option<Vec<TierCandidate>> {
    const HELP: &str = "write `candidates = [{ profile = \"codex\" }, { profile = \"opencode\" }]`";
    let Some(item) = table.get("candidates") else {
        table.lacks("this tier has no `candidates`", HELP);
        return None;
    };
    let DeValue::Array(array) = item.get_ref() else {
        table.wrong("`candidates`", item, "an array of tables", HELP);
        return None;
    };
    if array.is_empty() || array.len() > MOST_CANDIDATES {
        let message = match array.len() {
            0 => "this tier is empty".to_owned(),
            _ => format!("this tier has more than {MOST_CANDIDATES} candidates"),
        };
        let help = if array.is_empty() { HELP } else { "leave some out" };
        table.fault(Fault::new(item.span(), message).help(help));
        return None;
    }
    let mut all: Vec<TierCandidate> = Vec::new();
    for item in array {
        if !item.get_ref().is_table() {
            let help = match item.get_ref() {
                DeValue::String(name) => format!("write `{{ profile = {} }}`", quoted(name)),
                _ => HELP.to_owned(),
            };
            table.wrong("each of `candidates`", item, "a table", &help);
            continue;
        }
        let read = table.entry(item, "tiers.candidates", |table| candidate(table, known));
        let Some(candidate) = read.flatten() else { continue };
        if all.contains(&candidate) {
            let message = format!("the candidate {} is there twice", code(&candidate.to_string()));
            table.fault(Fault::new(item.span(), message).help("each is tried once: keep one"));
            continue;
        }
        all.push(candidate);
    }
    (!all.is_empty()).then_some(all)
}

fn candidate(table: &Table<'_>, known: KnownTables<'_>) -> Option<TierCandidate> {
    let (profiles, providers) = known;
    let profile = table.word("profile");
    let word = |key| table.word(key).map(|text: Text| text.value);
    let (model, thinking) = (word("model"), word("thinking"));
    let provider = table.word("provider");
    if table.place_of("profile").is_none() {
        table.lacks("this candidate has no `profile`", "name one, such as `profile = \"codex\"`");
    }
    let profile = profile?;
    profiles.get(table, &profile)?;
    if let Some(name) = &provider {
        check_name(table, name, providers)?;
    }
    let provider = provider.map(|name| name.value);
    Some(TierCandidate { profile: profile.value, model, thinking, provider })
}
