//! The needs of an agent outside the workspace in the kernel tier.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Agent;
use super::TrustedPlaces;
use super::profiles::{self, Profile};
use super::surroundings::Lookup;
use crate::zone::{Bounds, GrantedPlace, Reach, Zone};

/// The places that an agent needs with `confine = "strict"`, and those that are sealed.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Confined {
    pub readable: Vec<GrantedPlace>,
    pub writable: Vec<GrantedPlace>,
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
        let program = command.first();
        let variable = |name: &str| env.get(name).cloned().or_else(|| lookup(name));
        let base = profiles::base_needs();
        let all = |of_profile: &[String], base: &[String]| {
            let places = base.iter().chain(of_profile);
            places.flat_map(|place| expand(place, &variable)).collect()
        };
        let readable: Vec<PathBuf> = all(&profile.readable, &base.readable);
        let writable: Vec<PathBuf> = all(&profile.writable, &base.writable);
        let program = program.map(Path::new).filter(|program| program.is_absolute());
        let own = program.and_then(Path::parent).map(Path::to_owned);
        let search = variable("PATH").unwrap_or_default();
        let searched = std::env::split_paths(&search).filter(|folder| is_place(folder));
        let home = variable("HOME").map(PathBuf::from);
        let programs = own.into_iter().chain(searched);
        let programs = programs.flat_map(|folder| installed(&folder, home.as_deref())).collect();
        let places = |names: Vec<PathBuf>| {
            names.iter().filter_map(|name| trusted.place(name, home.as_deref())).collect()
        };
        let (readable, writable, programs) = (places(readable), places(writable), places(programs));
        // Which settings are sealed is known when the whole file is read.
        Self { readable, writable, programs, sealed: Arc::default() }
    }
}

/// Returns a folder of programs with the libraries installed beside it; the rest of the home is the
/// user's own.
fn installed(programs: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut places = vec![programs.to_owned()];
    let is_home = programs.parent() == home;
    if !is_home && programs.file_name().is_some_and(|name| name == "bin") {
        places.extend(["lib", "lib64", "libexec"].map(|name| programs.with_file_name(name)));
    }
    places.retain(|place| is_place(place));
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
