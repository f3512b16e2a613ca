//! The start of an agent with a provider: variables, arguments and files, in the form of its profile.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use super::profiles::{FOLDER, MODEL, TOKEN, URL};
use super::{Agent, AgentProvider, Provider, ProviderKey, SharedConfig};

/// The additions to the start of an agent with a provider. `Debug` shows no values: they have its token.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderLaunch {
    /// Behind those of [`Agent::launch`].
    pub args: Vec<String>,
    /// Over those of [`Agent::launch`].
    pub env: BTreeMap<String, String>,
    /// Variables that the agent and its terminals don't get from the team's environment.
    pub unset: BTreeSet<String>,
    /// Files for its folder.
    pub files: Vec<ProviderFile>,
}

/// A file that leads an agent to an endpoint.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderFile {
    /// Its name in the folder.
    pub name: String,
    pub content: String,
    /// The content begins with `#!`: it is executed.
    pub is_program: bool,
}

impl Agent {
    /// Returns what the agent is started with so that its model calls go to an endpoint at `url`, by `token`;
    /// `folder`, an absolute path, gets its files, which it reads and executes. None: it has no provider.
    pub fn provider_launch(&self, url: &str, token: &str, folder: &Path) -> Option<ProviderLaunch> {
        let AgentProvider::Used { kind, .. } = &self.provider else { return None };
        let form = self.profile.providers.get(kind)?;
        let folder = folder.to_string_lossy();
        let model = self.model.as_deref().unwrap_or_default();
        let filled = |text: &String| {
            let text = text.replace(URL, url).replace(TOKEN, token);
            text.replace(FOLDER, &folder).replace(MODEL, model)
        };
        let env: BTreeMap<_, _> =
            form.env.iter().map(|(name, value)| (name.clone(), filled(value))).collect();
        let others = form.unset.iter().chain(&self.profile.login_env);
        let unset = others.filter(|name| !env.contains_key(*name)).cloned().collect();
        let file = |(name, content): (&String, &String)| ProviderFile {
            name: name.clone(),
            content: filled(content),
            is_program: content.starts_with("#!"),
        };
        let files = form.files.iter().map(file).collect();
        Some(ProviderLaunch { args: form.args.iter().map(filled).collect(), env, unset, files })
    }
}

impl Agent {
    /// Whether the form of its provider gives it its model.
    pub(super) fn takes_model_with_provider(&self) -> bool {
        let AgentProvider::Used { kind, .. } = &self.provider else { return false };
        self.profile.providers.get(kind).is_some_and(|form| form.has(MODEL))
    }
}

impl SharedConfig {
    /// Returns a provider by its name.
    pub fn provider(&self, name: &str) -> Option<&Provider> {
        self.providers.get(name)
    }

    /// Returns the variables that have keys of providers, used or not: no agent, no terminal and no other
    /// program that the team starts gets one of them, but for the commands that fetch keys.
    pub fn key_variables(&self) -> BTreeSet<&str> {
        let keys = self.providers.values().filter_map(|provider| provider.key.as_ref());
        keys.filter_map(ProviderKey::variable).collect()
    }
}

impl fmt::Debug for ProviderLaunch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderLaunch")
            .field("env", &self.env.keys())
            .field("unset", &self.unset)
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ProviderFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
