//! The settings outside the workspace that no agent writes, whatever its confinement, unless its
//! zone names them: programs of the user, and other agents, do what these files say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::unistd::geteuid;

use crate::config::confined::expand;
use crate::config::profiles::{self, Profile};
use crate::config::surroundings::Lookup;
use crate::config::{Agent, Config};

/// The settings in one environment.
struct Sealing<'a> {
    profiles: Vec<&'a Profile>,
    /// For every agent.
    all: BTreeSet<PathBuf>,
    /// For every agent but those of a profile, by that profile.
    own: BTreeMap<&'a str, BTreeSet<PathBuf>>,
}

impl Config {
    /// Seals the settings for all agents. What a variable names for one of them, or for the user, is
    /// sealed for each.
    pub(super) fn with_settings_sealed(mut self, lookup: &Lookup) -> Self {
        let known = profiles::built_in().values().chain(self.shared.profiles.values());
        let (profiles, own) = (known.collect(), BTreeMap::new());
        let mut sealing = Sealing { profiles, all: BTreeSet::new(), own };
        sealing.add(&|name| lookup(name));
        for agent in self.agents.iter().filter(|agent| !agent.env.is_empty()) {
            sealing.add(&|name| agent.env.get(name).cloned().or_else(|| lookup(name)));
        }
        let bases: Vec<BTreeSet<String>> =
            self.agents.iter().map(|agent| self.bases(agent)).collect();
        let mut sealed: BTreeMap<BTreeSet<String>, Arc<[PathBuf]>> = BTreeMap::new();
        for (agent, bases) in self.agents.iter_mut().zip(bases) {
            let known = sealed.entry(bases).or_insert_with_key(|bases| sealing.of(bases).into());
            agent.confined.sealed = Arc::clone(known);
        }
        self
    }
}

impl Config {
    /// Returns the profile of an agent; for one that another agent asked for, also those of all above it: it
    /// writes no settings that they may not.
    fn bases(&self, agent: &Agent) -> BTreeSet<String> {
        let mut bases = BTreeSet::from([agent.profile.base.clone()]);
        let mut child = agent;
        // Each step goes up, and circles are refused.
        for _ in 0..self.agents.len() {
            let parent = child.parent.as_ref().filter(|_| child.is_asked_for);
            let Some(parent) = parent.and_then(|id| self.agents.iter().find(|it| it.id == *id))
            else {
                break;
            };
            bases.insert(parent.profile.base.clone());
            child = parent;
        }
        bases
    }
}

impl Sealing<'_> {
    fn add(&mut self, variable: &dyn Fn(&str) -> Option<String>) {
        // The system's own are root's.
        let is_ours = |place: &&String| !place.starts_with('/') || geteuid().is_root();
        let sealed = profiles::sealed().keys().filter(is_ours);
        self.all.extend(sealed.flat_map(|place| expand(place, variable)));
        for profile in &self.profiles {
            self.all.extend(places(profile, &profile.settings, variable));
            let own = self.own.entry(&profile.base).or_default();
            own.extend(places(profile, &profile.own_settings, variable));
        }
    }

    /// Returns what is sealed for agents that are held to these profiles.
    fn of(&self, bases: &BTreeSet<String>) -> Vec<PathBuf> {
        let others = self.own.iter().filter(|(other, _)| bases.iter().any(|base| base != **other));
        let others: BTreeSet<_> = others.flat_map(|(_, places)| places).collect();
        self.all.iter().chain(others).cloned().collect()
    }
}

/// Expands settings of a profile: a relative one lies in each of its writable folders.
fn places(
    profile: &Profile,
    settings: &[String],
    variable: &dyn Fn(&str) -> Option<String>,
) -> Vec<PathBuf> {
    // A path with an extension is taken for a file.
    let is_folder =
        |place: &&String| place.starts_with('$') || Path::new(place).extension().is_none();
    let folders = profile.writable.iter().filter(is_folder);
    let folders: Vec<PathBuf> = folders.flat_map(|place| expand(place, variable)).collect();
    let mut places = Vec::new();
    for setting in settings {
        if setting.starts_with(['~', '$', '/']) {
            places.extend(expand(setting, variable));
        } else {
            places.extend(folders.iter().map(|folder| folder.join(setting)));
        }
    }
    places
}
