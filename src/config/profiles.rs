//! Launch profiles: those of `[profiles]` in the file, and the built-in ones they are based on.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;

use super::agents::{command, environment};
use super::errors::{Fault, code, quoted};
use super::near::nearest;
use super::read::{Table, Text};
use super::value::{bad_name, is_name};

/// Longer chains of bases are refused: nobody writes them, and each costs stack.
const MAX_BASES: usize = 32;

/// How to launch an agent.
#[derive(Clone, Default, Deserialize, Debug)]
pub(super) struct Profile {
    #[serde(default)]
    pub(super) command: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// Patterns of the files that tell the agent how to behave in a workspace.
    #[serde(default)]
    rule_files: Vec<String>,
    #[serde(flatten)]
    pub(super) needs: Needs,
    /// What turns the agent's own sandbox off.
    #[serde(default)]
    pub(super) confined_args: Vec<String>,
    #[serde(default)]
    pub(super) confined_env: BTreeMap<String, String>,
}

/// Places outside the workspace, as the profiles spell them.
#[derive(Clone, Default, Deserialize, Debug)]
pub(super) struct Needs {
    #[serde(default)]
    pub(super) readable: Vec<String>,
    #[serde(default)]
    pub(super) writable: Vec<String>,
}

#[derive(Deserialize)]
struct BuiltIn {
    /// Patterns of what tools read to find their way, whatever the agent.
    base: Vec<String>,
    sockets: Vec<String>,
    /// Whatever the agent.
    needs: Needs,
    profiles: BTreeMap<String, Profile>,
}

#[expect(clippy::expect_used, reason = "the text is part of the program, and a test reads it")]
static BUILT_IN: LazyLock<BuiltIn> = LazyLock::new(|| {
    toml::from_str(include_str!("../../config/profiles.toml")).expect("profiles.toml is valid")
});

/// What every zoned agent may read when `[zones] base` is on: each pattern once.
pub fn base_patterns() -> Vec<&'static str> {
    let rule_files = BUILT_IN.profiles.values().flat_map(|profile| &profile.rule_files);
    let mut patterns: Vec<&str> = Vec::new();
    for pattern in BUILT_IN.base.iter().chain(rule_files) {
        if !patterns.contains(&pattern.as_str()) {
            patterns.push(pattern);
        }
    }
    patterns
}

/// Patterns of the sockets outside that every confined agent may connect to.
pub(super) fn base_sockets() -> &'static [String] {
    &BUILT_IN.sockets
}

/// What every confined agent needs outside, whatever its profile.
pub(super) fn base_needs() -> &'static Needs {
    &BUILT_IN.needs
}

/// The built-in profile of an agent that is run by its own command.
pub(super) fn of_program(program: &str) -> Option<&'static Profile> {
    let name = Path::new(program).file_name()?.to_str()?;
    let mut profiles = BUILT_IN.profiles.values();
    profiles.find(|profile| profile.command.first().is_some_and(|command| command == name))
}

/// All profiles that agents can name.
pub(super) struct Profiles {
    /// Of the file; None for one that can't be used, whose fault is told already.
    own: BTreeMap<String, Option<Profile>>,
}

impl Profiles {
    /// The profile that an agent names.
    pub(super) fn get(&self, agent: &Table<'_>, name: &Text) -> Option<Profile> {
        if let Some(own) = self.own.get(&name.value) {
            return own.clone();
        }
        if let Some(built_in) = BUILT_IN.profiles.get(&name.value) {
            return Some(built_in.clone());
        }
        agent.fault(unknown(name, self.own.keys().map(String::as_str)));
        None
    }
}

pub(super) fn profiles(profiles: &Table<'_>) -> Profiles {
    let mut layers = BTreeMap::new();
    for (name, item) in profiles.entries() {
        if !is_name(&name.value) {
            profiles.fault(bad_name("a profile's name", &name));
            continue;
        }
        let layer = profiles.entry(item, "profiles.NAME", |profile| Layer {
            base: profile.word("base"),
            has_command: profile.place_of("command").is_some(),
            command: command(profile),
            args: profile.texts("args").unwrap_or_default(),
            env: environment(profile),
            name: name.span.clone(),
        });
        layers.insert(name.value, layer);
    }
    let mut resolver =
        Resolver { table: profiles, layers: &layers, path: Vec::new(), done: BTreeMap::new() };
    for name in layers.keys() {
        resolver.resolve(name);
    }
    Profiles { own: resolver.done }
}

/// What a profile of the file lays upon its base.
struct Layer {
    base: Option<Text>,
    has_command: bool,
    command: Option<Vec<String>>,
    args: Vec<Text>,
    env: BTreeMap<String, String>,
    /// Where its name stands.
    name: Range<usize>,
}

/// Looks up each profile's base.
struct Resolver<'a> {
    table: &'a Table<'a>,
    layers: &'a BTreeMap<String, Option<Layer>>,
    /// Those that are being looked up, each the base of the one before.
    path: Vec<String>,
    done: BTreeMap<String, Option<Profile>>,
}

impl Resolver<'_> {
    fn resolve(&mut self, name: &str) -> Option<Profile> {
        if let Some(done) = self.done.get(name) {
            return done.clone();
        }
        self.path.push(name.to_owned());
        let profile = self.layers.get(name)?.as_ref().and_then(|layer| self.apply(name, layer));
        self.path.pop();
        self.done.insert(name.to_owned(), profile.clone());
        profile
    }

    fn apply(&mut self, name: &str, layer: &Layer) -> Option<Profile> {
        let mut profile = match &layer.base {
            Some(base) => self.base(name, base)?,
            None if layer.has_command => Profile::default(),
            None => {
                let message = format!("the profile {} runs nothing", code(name));
                self.table.fault(
                    Fault::new(layer.name.clone(), message).help("give it a `base` or a `command`"),
                );
                return None;
            }
        };
        if layer.has_command {
            profile.command = layer.command.clone()?;
        }
        profile.command.extend(layer.args.iter().map(|arg| arg.value.clone()));
        profile.env.extend(layer.env.clone());
        Some(profile)
    }

    fn base(&mut self, name: &str, base: &Text) -> Option<Profile> {
        // A profile that bears the name of a built-in one can be based on it.
        if base.value == name || !self.layers.contains_key(&base.value) {
            let built_in = BUILT_IN.profiles.get(&base.value).cloned();
            if built_in.is_none() {
                self.table.fault(unknown(base, self.layers.keys().map(String::as_str)));
            }
            return built_in;
        }
        let circle = self.path.iter().position(|other| *other == base.value);
        if circle.is_none() && self.path.len() < MAX_BASES {
            return self.resolve(&base.value);
        }
        let message = match circle {
            Some(start) => {
                let mut names = self.path[start..].to_vec();
                names.push(base.value.clone());
                format!("profiles are based on each other: {}", names.join(" → "))
            }
            None => format!("more than {MAX_BASES} profiles are based on one another"),
        };
        self.table.fault(
            Fault::new(base.span.clone(), message)
                .help("base one of them on a built-in profile, or give it a `command`"),
        );
        None
    }
}

fn unknown<'a>(name: &Text, own: impl Iterator<Item = &'a str>) -> Fault {
    let mut known: Vec<&str> = BUILT_IN.profiles.keys().map(String::as_str).collect();
    known.extend(own.filter(|own| !BUILT_IN.profiles.contains_key(*own)));
    let fault =
        Fault::new(name.span.clone(), format!("there is no profile {}", quoted(&name.value)));
    match nearest(&name.value, &known) {
        Some(near) => fault.help(format!("did you mean \"{near}\"?")),
        None => fault.help(format!("there are {}", known.join(", "))),
    }
}
