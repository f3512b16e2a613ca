//! The needs of an agent outside the workspace in the kernel tier.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Agent;
use super::TrustedPlaces;
use super::launch::find_program;
use super::profiles::{self, Profile};
use super::surroundings::Lookup;
use super::trusted::Homes;
use crate::model::fold;
use crate::zone::{Bounds, GrantedPlace, Reach, Zone};

/// The places that an agent needs with `confine = "strict"`, and those that are sealed.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Confined {
    pub readable: Vec<GrantedPlace>,
    pub writable: Vec<GrantedPlace>,
    /// Sealed folders that it makes at each start: made for it where they are missing.
    pub made: Vec<GrantedPlace>,
    /// Patterns of what it tries by itself, and does not miss.
    pub harmless: Vec<String>,
    /// Folders of programs, with the libraries beside them, which may be read.
    pub programs: Vec<GrantedPlace>,
    /// With any `confine`: settings that it may not write unless its zone allows it.
    pub sealed: Arc<[PathBuf]>,
}

impl Agent {
    /// Returns the paths that the agent may reach beside its zone. `private` is its TMPDIR,
    /// `privates` the folder with the TMPDIRs of all agents.
    pub fn reach(&self, private: &Path, privates: Option<&Path>) -> Reach {
        Reach {
            confine: self.zone.confine,
            private: private.to_owned(),
            privates: privates.map(Path::to_owned),
            readable: [&self.confined.readable[..], &self.confined.programs].concat(),
            writable: self.confined.writable.clone(),
            made: self.confined.made.clone(),
            harmless: self.confined.harmless.clone(),
            sockets: [profiles::base_sockets(), &self.zone.sockets].concat(),
            sealed: Arc::clone(&self.confined.sealed),
        }
    }

    /// Returns its bounds as far as they are known before its start; None for an invalid zone.
    pub(super) fn bounds(&self) -> Option<Bounds> {
        // A path that no system has, in place of the TMPDIR that it gets at its start.
        let reach = self.reach(Path::new("/nonexistent"), None);
        Bounds::new(Arc::new(Zone::compile(&self.zone.spec).ok()?), reach).ok()
    }
}

impl Confined {
    pub(super) fn places(&self) -> impl Iterator<Item = &GrantedPlace> {
        self.readable.iter().chain(&self.writable).chain(&self.programs)
    }

    /// Collects the needs of an agent with this command and environment.
    pub(super) fn new(
        profile: &Profile,
        command: &[String],
        env: &BTreeMap<String, String>,
        lookup: &Lookup,
        trusted: &TrustedPlaces,
    ) -> Self {
        let variable = |name: &str| env.get(name).cloned().or_else(|| lookup(name));
        let base = profiles::base_needs();
        let all = |of_profile: &[String], base: &[String]| {
            let places = base.iter().chain(of_profile);
            places.flat_map(|place| expand(place, &variable)).collect()
        };
        let readable: Vec<PathBuf> = all(&profile.readable, &base.readable);
        let writable: Vec<PathBuf> = all(&profile.writable, &base.writable);
        let homes = Homes::new([variable("HOME"), lookup("HOME")].into_iter().flatten());
        let search = variable("PATH").unwrap_or_default();
        let program = command.first().map_or("", String::as_str);
        let programs = programs(program, &search, &homes, trusted);
        let places = |names: Vec<PathBuf>| {
            names.iter().filter_map(|name| trusted.place(name, &homes)).collect()
        };
        let (readable, writable, programs): (_, Vec<GrantedPlace>, _) =
            (places(readable), places(writable), places(programs));
        let folders = writable.iter().filter(|place| place.is_folder());
        let made = folders.flat_map(|place| profile.made_settings.iter().map(|it| place.below(it)));
        let made = made.collect();
        // Which settings are sealed is known when the whole file is read.
        let harmless = profile.harmless.clone();
        Self { readable, writable, made, harmless, programs, sealed: Arc::default() }
    }
}

/// Returns the folder of an agent's program and those of its PATH. A folder that leads to a home or above is the
/// user's own: of that one the program alone.
fn programs(program: &str, search: &str, homes: &Homes, trusted: &TrustedPlaces) -> Vec<PathBuf> {
    let is_of_home = |folder: &Path| trusted.leads_home(folder, homes);
    let own = Path::new(program).parent().map(Path::to_owned);
    let folders = own.into_iter().chain(std::env::split_paths(search));
    let folders = folders.filter(|folder| is_place(folder));
    let mut places: Vec<_> =
        folders.flat_map(|folder| installed(&folder, homes, trusted)).collect();
    places.retain(|place| !is_of_home(place));
    let found = find_program(program, search).filter(|program| is_place(program));
    places.extend(found.filter(|program| program.parent().is_some_and(is_of_home)));
    places
}

/// Returns a folder of programs with the libraries installed beside it; the rest of a home is the user's own.
fn installed(programs: &Path, homes: &Homes, trusted: &TrustedPlaces) -> Vec<PathBuf> {
    let mut places = vec![programs.to_owned()];
    let above = programs.parent().and_then(|above| trusted.now(&fold(above)));
    let is_in_home = above.is_some_and(|above| homes.has(&above.real));
    if !is_in_home && programs.file_name().is_some_and(|name| name == "bin") {
        places.extend(["lib", "lib64", "libexec"].map(|name| programs.with_file_name(name)));
    }
    places
}

/// Expands a profile's place: `~/…`, `$NAME` or an absolute path; nothing if the variable is not
/// set.
pub(super) fn expand(place: &str, variable: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    if let Some(name) = place.strip_prefix('$') {
        return variable(name)
            .map(PathBuf::from)
            .filter(|place| is_place(place))
            .into_iter()
            .collect();
    }
    let mut places = vec![PathBuf::from(place)];
    for (name, usual) in [
        ("XDG_CONFIG_HOME", "~/.config/"),
        ("XDG_DATA_HOME", "~/.local/share/"),
        ("XDG_STATE_HOME", "~/.local/state/"),
        ("XDG_CACHE_HOME", "~/.cache/"),
    ] {
        if let (Some(folder), Some(rest)) = (variable(name), place.strip_prefix(usual)) {
            places.push(Path::new(&folder).join(rest));
        }
    }
    if let (Some(home), Some(rest)) = (variable("HOME"), place.strip_prefix("~/")) {
        places.push(Path::new(&home).join(rest));
    }
    places.retain(|place| is_place(place));
    places
}

/// Returns the one file or folder that a place of a profile is in this environment.
pub(super) fn place(place: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    expand(place, variable).into_iter().next()
}

/// Whether a path can be granted as a need. The root cannot: a variable may hold anything.
fn is_place(path: &Path) -> bool {
    path.is_absolute() && path.parent().is_some()
}
