//! The table of built-in profiles, `profiles.toml`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::forms::ProviderForm;
use crate::model::{ProviderKind, ToolsForm, named};

/// The known facts of an agent program; an empty or None field is unknown. `profiles.toml`
/// documents each.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// The name of the profile that it goes back to; empty for an agent of none.
    #[serde(skip)]
    pub base: String,
    pub title: String,
    pub install: String,
    pub command: Vec<String>,
    pub other_programs: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub login: String,
    pub login_env: Vec<String>,
    pub auth_methods: Vec<String>,
    pub model_args: Vec<String>,
    pub model_env: String,
    pub unattended_mode: String,
    pub asking_mode: String,
    pub uncounted_mode: String,
    pub unattended_args: Vec<String>,
    pub unattended_env: BTreeMap<String, String>,
    pub compact: String,
    pub without_tools: String,
    pub tools_form: Option<ToolsForm>,
    pub hides_tools: Option<bool>,
    pub client_fs: Option<ClientFs>,
    pub usage: Option<UsageCount>,
    pub ends_on_eof: Option<bool>,
    pub leaves_children: Option<bool>,
    pub patience_s: Option<u64>,
    pub rule_files: Vec<String>,
    pub harmless: Vec<String>,
    pub readable: Vec<String>,
    pub writable: Vec<String>,
    pub settings: Vec<String>,
    pub own_settings: Vec<String>,
    pub made_settings: Vec<String>,
    pub confined_args: Vec<String>,
    pub confined_env: BTreeMap<String, String>,
    pub confined_client_fs: Option<bool>,
    pub providers: BTreeMap<ProviderKind, ProviderForm>,
}

named! {
    /// Whether an agent accesses files through its client.
    #[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
    #[serde(rename_all = "lowercase")]
    pub enum ClientFs {
        Yes = "yes",
        /// Only for edits.
        Edits = "edits",
        No = "no",
    }
}

named! {
    /// How an agent counts in the `usage` of its answers.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
    #[serde(rename_all = "lowercase")]
    pub enum UsageCount {
        #[default]
        Turn = "turn",
        Session = "session",
        Call = "call",
        Context = "context",
        #[serde(rename = "none")]
        Nothing = "none",
    }
}

/// Paths outside the workspace, as the table spells them.
#[derive(Deserialize)]
pub(in crate::config) struct Needs {
    pub(in crate::config) readable: Vec<String>,
    pub(in crate::config) writable: Vec<String>,
}

#[derive(Deserialize)]
struct BuiltInTable {
    /// Patterns that tools of every agent read to find their way.
    base: Vec<String>,
    sockets: Vec<String>,
    /// The needs of every agent.
    needs: Needs,
    /// Settings that programs of the user obey, each with the reason why no agent writes it.
    sealed: BTreeMap<String, String>,
    profiles: BTreeMap<String, Profile>,
    /// Files with logins, by profile.
    login_files: BTreeMap<String, Vec<String>>,
}

#[expect(clippy::expect_used, reason = "the text is part of the program, and a test reads it")]
static TABLE: LazyLock<BuiltInTable> = LazyLock::new(|| {
    let mut table: BuiltInTable =
        toml::from_str(include_str!("../profiles.toml")).expect("profiles.toml is valid");
    for (name, profile) in &mut table.profiles {
        profile.base.clone_from(name);
    }
    table
});

/// Returns the patterns that every zoned agent may read when `[zones] base` is on, without
/// duplicates.
pub fn base_patterns() -> Vec<&'static str> {
    let rule_files = TABLE.profiles.values().flat_map(|profile| &profile.rule_files);
    let mut patterns: Vec<&str> = Vec::new();
    for pattern in TABLE.base.iter().chain(rule_files) {
        if !patterns.contains(&pattern.as_str()) {
            patterns.push(pattern);
        }
    }
    patterns
}

/// Returns the built-in profiles by name.
pub(in crate::config) fn built_in() -> &'static BTreeMap<String, Profile> {
    &TABLE.profiles
}

/// Returns the files in which the agent of a built-in profile keeps its login; none if unknown.
pub(in crate::config) fn login_files(profile: &str) -> &'static [String] {
    TABLE.login_files.get(profile).map_or(&[], Vec::as_slice)
}

/// Returns the patterns of external sockets that every confined agent may connect to.
pub(in crate::config) fn base_sockets() -> &'static [String] {
    &TABLE.sockets
}

/// Returns the external needs of every confined agent, with any profile.
pub(in crate::config) fn base_needs() -> &'static Needs {
    &TABLE.needs
}

/// Returns the settings that no agent of any profile writes, each with the reason.
pub(in crate::config) fn sealed() -> &'static BTreeMap<String, String> {
    &TABLE.sealed
}

/// Returns the built-in profile of an agent with its own command.
pub(in crate::config) fn of_command(command: &[String]) -> Option<&'static Profile> {
    let name = Path::new(command.first()?).file_name()?.to_str()?;
    TABLE.profiles.values().find(|profile| match profile.module() {
        Some(_) => name.starts_with("python") && command[1..].starts_with(&profile.command[1..]),
        None => profile.programs().any(|program| program == name),
    })
}

impl Profile {
    /// Returns the programs that can start it, the preferred one first.
    pub(in crate::config) fn programs(&self) -> impl Iterator<Item = &str> {
        self.command.iter().take(1).chain(&self.other_programs).map(String::as_str)
    }

    /// Returns the Python module that it is, where it has no program of its own: then a `python` on
    /// PATH does not say that it is installed.
    pub(in crate::config) fn module(&self) -> Option<&str> {
        match &self.command[..] {
            [_, option, module, ..] if option == "-m" => Some(module),
            _ => None,
        }
    }

    /// Returns the command with the first program that `is_there` accepts; unchanged without one.
    pub(in crate::config) fn command_of(&self, is_there: impl Fn(&str) -> bool) -> Vec<String> {
        let mut command = self.command.clone();
        if let (Some(program), Some(found)) =
            (command.first_mut(), self.programs().find(|program| is_there(program)))
        {
            found.clone_into(program);
        }
        command
    }

    /// Whether the agent can be configured not to ask.
    pub(in crate::config) fn can_be_unattended(&self) -> bool {
        !(self.unattended_mode.is_empty()
            && self.unattended_args.is_empty()
            && self.unattended_env.is_empty())
    }

    /// Whether the model is given at the start instead of to a session.
    pub(in crate::config) fn takes_model_at_start(&self) -> bool {
        !(self.model_args.is_empty() && self.model_env.is_empty())
    }
}
