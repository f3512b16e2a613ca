//! The table of built-in profiles, `config/profiles.toml`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;

/// What is known of an agent; a key that is empty or None is not. `config/profiles.toml` says what
/// each means.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, Debug)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
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
    pub unattended_args: Vec<String>,
    pub unattended_env: BTreeMap<String, String>,
    pub compact: String,
    pub client_fs: Option<ClientFs>,
    pub ends_on_eof: Option<bool>,
    pub leaves_children: Option<bool>,
    pub rule_files: Vec<String>,
    pub readable: Vec<String>,
    pub writable: Vec<String>,
    pub confined_args: Vec<String>,
    pub confined_env: BTreeMap<String, String>,
    pub confined_client_fs: Option<bool>,
}

/// Whether an agent opens files by its client.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
pub enum ClientFs {
    Yes,
    /// Only when it edits them.
    Edits,
    No,
}

/// Places outside the workspace, as the table spells them.
#[derive(Deserialize)]
pub(in crate::config) struct Needs {
    pub(in crate::config) readable: Vec<String>,
    pub(in crate::config) writable: Vec<String>,
}

#[derive(Deserialize)]
struct BuiltInTable {
    /// Patterns of what tools read to find their way, whatever the agent.
    base: Vec<String>,
    sockets: Vec<String>,
    /// Whatever the agent.
    needs: Needs,
    profiles: BTreeMap<String, Profile>,
}

#[expect(clippy::expect_used, reason = "the text is part of the program, and a test reads it")]
static TABLE: LazyLock<BuiltInTable> = LazyLock::new(|| {
    toml::from_str(include_str!("../../../config/profiles.toml")).expect("profiles.toml is valid")
});

/// What every zoned agent may read when `[zones] base` is on: each pattern once.
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

/// The built-in profiles by name.
pub(in crate::config) fn built_in() -> &'static BTreeMap<String, Profile> {
    &TABLE.profiles
}

/// Patterns of the sockets outside that every confined agent may connect to.
pub(in crate::config) fn base_sockets() -> &'static [String] {
    &TABLE.sockets
}

/// What every confined agent needs outside, whatever its profile.
pub(in crate::config) fn base_needs() -> &'static Needs {
    &TABLE.needs
}

/// The built-in profile of an agent that is run by its own command.
pub(in crate::config) fn of_program(program: &str) -> Option<&'static Profile> {
    let name = Path::new(program).file_name()?.to_str()?;
    TABLE.profiles.values().find(|profile| profile.programs().any(|program| program == name))
}

impl Profile {
    /// The programs by which it can be started, the preferred one first.
    pub(in crate::config) fn programs(&self) -> impl Iterator<Item = &str> {
        self.command.iter().take(1).chain(&self.other_programs).map(String::as_str)
    }

    /// The command with the first of the programs that `is_there`; as it stands if none is.
    pub(in crate::config) fn command_of(&self, is_there: impl Fn(&str) -> bool) -> Vec<String> {
        let mut command = self.command.clone();
        if let (Some(program), Some(found)) =
            (command.first_mut(), self.programs().find(|program| is_there(program)))
        {
            found.clone_into(program);
        }
        command
    }

    /// Whether it is known how to keep the agent from asking.
    pub(in crate::config) fn can_be_unattended(&self) -> bool {
        !(self.unattended_mode.is_empty()
            && self.unattended_args.is_empty()
            && self.unattended_env.is_empty())
    }

    /// Whether a model is given at the start, not to a session.
    pub(in crate::config) fn takes_model_at_start(&self) -> bool {
        !(self.model_args.is_empty() && self.model_env.is_empty())
    }
}
