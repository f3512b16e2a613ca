//! The agents of the built-in profiles that are installed on this machine, and signs of a login.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::check::install;
pub use super::launch::find_program;
use super::launch::{WITHOUT_ACP, installed_without_adapter};
use super::login_file::{has_login, places};
use super::profiles::{Profile, built_in, login_files};
use super::providers::NO_PROVIDER;
use super::{Provider, SharedConfig};

/// An agent with a profile: the program to look for, and its installation.
#[derive(Debug)]
pub struct KnownAgent {
    pub name: &'static str,
    pub title: &'static str,
    pub programs: String,
    pub install: String,
}

/// Returns the agents that `init` looks for.
pub fn known_agents() -> Vec<KnownAgent> {
    let programs = built_in().iter().filter(|(_, profile)| profile.module().is_none());
    programs.map(|(name, profile)| known(name, profile)).collect()
}

fn known(name: &'static str, profile: &'static Profile) -> KnownAgent {
    KnownAgent {
        name,
        title: &profile.title,
        programs: profile.programs().collect::<Vec<_>>().join(" or "),
        install: install(profile).unwrap_or_default(),
    }
}

/// An agent whose program is on PATH.
#[derive(Debug)]
pub struct Installed {
    /// The name of its profile.
    pub name: &'static str,
    pub title: &'static str,
    /// The first program of the profile that is there.
    pub program: PathBuf,
    /// The command that installs or updates it, or an address with instructions.
    pub install: &'static str,
    /// The command by which its user logs in; empty if unknown.
    pub login_command: &'static str,
    pub login: Login,
    profile: &'static Profile,
}

/// A sign of a login. No secret is read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Login {
    /// This variable is set.
    Variable(String),
    /// This file is there.
    File(PathBuf),
    /// The configuration leads it to this provider, so that it needs none.
    Provider(String),
    /// None of the files and variables in which its maker keeps a login.
    NotFound(Vec<String>),
    /// Where its maker keeps a login is not known, or not visible.
    Unknown,
}

impl Installed {
    pub(super) fn profile(&self) -> &'static Profile {
        self.profile
    }

    /// Returns the arguments that it is started with.
    pub fn args(&self) -> &[String] {
        self.profile.command.get(1..).unwrap_or_default()
    }

    /// Returns the variables that it is started with.
    pub fn env(&self) -> &BTreeMap<String, String> {
        &self.profile.env
    }
}

/// Returns the agents whose programs are in the folders of `path`, sorted by name; `variable` looks
/// up a variable of the environment.
pub fn installed(path: &str, variable: &dyn Fn(&str) -> Option<String>) -> Vec<Installed> {
    let all = found(path).map(|(name, profile, program)| Installed {
        name,
        title: &profile.title,
        program,
        install: &profile.install,
        login_command: &profile.login,
        login: login(profile, login_files(name), variable),
        profile,
    });
    all.collect()
}

/// The state of a profile's agent on this machine.
#[derive(Debug)]
pub struct ProfileOnMachine {
    /// The program that would be started; None: it is not installed.
    pub program: Option<PathBuf>,
    pub login: Login,
    /// The value of the variable of a login by a variable: a secret.
    pub login_value: Option<String>,
    /// The command that installs it, or an address with instructions; empty if unknown.
    pub install: String,
}

impl SharedConfig {
    /// Looks a profile's agent up on this machine, which may name a `provider`; None: there is no such profile.
    pub fn on_machine(
        &self,
        profile: &str,
        provider: Option<&str>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Option<ProfileOnMachine> {
        let own = self.profiles.get(profile);
        let known = own.or_else(|| built_in().get(profile))?;
        let variable = |name: &str| known.env.get(name).cloned().or_else(|| variable(name));
        let path = variable("PATH").unwrap_or_default();
        // Where it is a module of a program, nothing says that it is not installed.
        let program = known.programs().find_map(|program| find_program(program, &path));
        let login = login(known, login_files(self.base_of(profile)), &variable);
        let login = self.with_provider(known, provider, login);
        let login_value = match &login {
            Login::Variable(name) => variable(name),
            _ => None,
        };
        Some(ProfileOnMachine { program, login, login_value, install: known.install.clone() })
    }

    /// The account of an agent that may have a provider: the one that it names, or the only one that it takes if it is
    /// not logged in.
    fn with_provider(&self, profile: &Profile, named: Option<&str>, login: Login) -> Login {
        if let Some(name) = named {
            return if name == NO_PROVIDER { login } else { Login::Provider(name.to_owned()) };
        }
        let is_own = match &login {
            Login::Variable(name) => !self.key_variables().contains(name.as_str()),
            Login::File(_) => true,
            Login::Provider(_) | Login::NotFound(_) | Login::Unknown => false,
        };
        let fits = |provider: &&Provider| {
            profile.providers.get(&provider.kind).is_some_and(|form| !form.only_named)
        };
        let mut fitting = self.providers.values().filter(fits).filter(|_| !is_own);
        match (fitting.next(), fitting.next()) {
            (Some(only), None) => Login::Provider(only.name.clone()),
            _ => login,
        }
    }
}

/// Returns the installed agents that lack the adapter to speak ACP, each with that adapter.
pub fn without_adapter(path: &str) -> Vec<KnownAgent> {
    let missing = WITHOUT_ACP.iter().filter_map(|(program, _)| {
        find_program(program, path)?;
        let (name, profile) = installed_without_adapter(program)?;
        program_of(profile, path).is_none().then(|| known(name, profile))
    });
    missing.collect()
}

/// Returns the profiles whose programs are in the folders of `path`, with these, sorted by name.
pub(super) fn found(path: &str) -> impl Iterator<Item = (&'static str, &'static Profile, PathBuf)> {
    built_in()
        .iter()
        .filter_map(|(name, profile)| Some((name.as_str(), profile, program_of(profile, path)?)))
}

/// The first profile whose agent is in the folders of `path`, a PATH.
pub fn installed_profile(path: &str) -> Option<&'static str> {
    found(path).next().map(|(name, ..)| name)
}

fn program_of(profile: &Profile, path: &str) -> Option<PathBuf> {
    let mut programs = profile.programs().filter(|_| profile.module().is_none());
    programs.find_map(|program| find_program(program, path))
}

fn login(profile: &Profile, files: &[String], variable: &dyn Fn(&str) -> Option<String>) -> Login {
    let is_set = |name: &&String| variable(name).is_some_and(|value| !value.is_empty());
    if let Some(name) = profile.login_env.iter().find(is_set) {
        return Login::Variable(name.clone());
    }
    let places = places(files, variable);
    if let Some(file) = places.iter().find(|file| has_login(file)) {
        return Login::File(file.clone());
    }
    // Where the system has a keyring, that may have it.
    if places.is_empty() || cfg!(target_os = "macos") {
        return Login::Unknown;
    }
    let variables = profile.login_env.iter().map(|name| format!("${name}"));
    let looked = places.iter().map(|file| file.display().to_string()).chain(variables);
    Login::NotFound(looked.collect())
}
