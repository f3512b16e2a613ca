//! The parts of an agent's profile that its start and its sessions use.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::Agent;
use super::profiles::{MODEL, Profile, built_in};

/// Programs whose agents speak ACP only through an adapter, with the adapters' profiles.
pub(super) const WITHOUT_ACP: [(&str, &str); 2] = [("claude", "claude-code"), ("codex", "codex")];

impl Agent {
    /// Returns the agent's command and environment; `confined` if the kernel enforces its zone.
    /// Settings of the configuration take precedence.
    pub fn launch(&self, confined: bool) -> (Vec<String>, BTreeMap<String, String>) {
        let profile = &self.profile;
        let (mut command, mut env) = (self.command.clone(), BTreeMap::new());
        if let Some(model) = &self.model {
            command.extend(profile.model_args.iter().map(|arg| arg.replace(MODEL, model)));
            if !profile.model_env.is_empty() {
                env.insert(profile.model_env.clone(), model.clone());
            }
        }
        if self.unattended {
            command.extend(profile.unattended_args.iter().cloned());
            env.extend(profile.unattended_env.clone());
        }
        if confined {
            command.extend(profile.confined_args.iter().cloned());
            env.extend(profile.confined_env.clone());
        }
        env.extend(self.env.clone());
        (command, env)
    }

    /// Returns the model to set in a session; None if it was given at the start.
    pub fn session_model(&self) -> Option<&str> {
        let at_start = self.profile.takes_model_at_start() || self.takes_model_with_provider();
        self.model.as_deref().filter(|_| !at_start)
    }

    /// Returns the mode to set in a session.
    pub fn session_mode(&self) -> Option<&str> {
        let unattended = Some(self.profile.unattended_mode.as_str())
            .filter(|mode| self.unattended && !mode.is_empty());
        self.mode.as_deref().or(unattended)
    }

    /// Returns the mode in which its sessions ask for permission, to set without another one.
    pub fn asking_mode(&self) -> Option<&str> {
        let is_its_own = self.session_mode().is_none() && !self.unattended;
        Some(self.profile.asking_mode.as_str()).filter(|mode| is_its_own && !mode.is_empty())
    }

    /// Whether the agent exits when its standard input is closed.
    pub fn ends_on_eof(&self) -> bool {
        self.profile.ends_on_eof != Some(false)
    }
}

/// Returns the file that `program` starts, looked up in the folders of `path` as a spawn would;
/// None without one.
pub fn find_program(program: &str, path: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return is_program(Path::new(program)).then(|| PathBuf::from(program));
    }
    // Without a PATH there is no folder to search, not even the current one.
    let folders = std::env::split_paths(path).filter(|_| !path.is_empty());
    folders.map(|folder| folder.join(program)).find(|file| is_program(file))
}

/// Returns the profile of the adapter that a program needs to speak ACP.
pub(super) fn installed_without_adapter(program: &str) -> Option<(&'static str, &'static Profile)> {
    let (_, name) = WITHOUT_ACP.into_iter().find(|(one, _)| *one == program)?;
    let profile = built_in().get(name)?;
    (!profile.programs().any(|known| known == program)).then_some((name, profile))
}

pub(super) fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
