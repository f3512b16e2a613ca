//! `provider` of an agent: which provider its model calls go to, or why to none of the team's.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use super::errors::quoted;
use super::fault::Fault;
use super::near::nearest;
use super::providers::NO_PROVIDER;
use super::read::{Table, Text};
use super::{Agent, Config, Provider};
use crate::model::ProviderKind;

/// Where the model calls of an agent go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AgentProvider {
    /// To a provider of the team, by its endpoint.
    Used {
        name: String,
        kind: ProviderKind,
        /// The agent names it.
        is_named: bool,
    },
    /// Where the agent's own settings lead them.
    Without(NoProvider),
}

/// Why an agent has none of the team's providers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoProvider {
    /// There is none of a kind that it takes.
    NoneFits,
    /// The agent says so.
    Chosen,
    /// A file shows that it is logged in, which it keeps.
    LoginFile(PathBuf),
    /// A variable logs it in, which it keeps.
    LoginVariable(String),
    /// With one it needs a `model`, and has none.
    NoModel,
    /// Where its login would be seen is not known, so that it has to name one.
    NotNamed,
}

impl AgentProvider {
    /// The name of the provider that it uses.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Used { name, .. } => Some(name),
            Self::Without(_) => None,
        }
    }
}

impl Config {
    /// The name that the provider of an agent has for the agent's model; None: the same.
    pub fn model_there(&self, agent: &Agent) -> Option<&str> {
        let provider = self.shared.providers.get(agent.provider.name()?)?;
        provider.models.get(agent.model.as_deref()?).map(String::as_str)
    }
}

/// Where the table of an agent says something of its provider.
#[derive(Clone, Default)]
pub(super) struct WrittenProvider {
    pub(super) name: Option<Text>,
    pub(super) table: Range<usize>,
    /// The place of `env`.
    pub(super) env: Option<Range<usize>>,
    /// The agent runs what its parent runs.
    pub(super) as_parent: bool,
}

/// Checks a name that is a provider's, or says that there is none.
pub(super) fn check_name(
    table: &Table<'_>,
    name: &Text,
    providers: &BTreeMap<String, Provider>,
) -> Option<()> {
    if name.value != NO_PROVIDER && !providers.contains_key(&name.value) {
        table.reader.fault_of_provider(&name.value, unknown(name, providers));
        return None;
    }
    Some(())
}

pub(super) fn unknown(name: &Text, providers: &BTreeMap<String, Provider>) -> Fault {
    let known: BTreeSet<&str> = providers.keys().map(String::as_str).collect();
    let known: Vec<_> = known.into_iter().collect();
    let message = format!("there is no provider {}", quoted(&name.value));
    let fault = Fault::new(name.span.clone(), message);
    match nearest(&name.value, &known) {
        Some(near) => fault.help(format!("did you mean \"{near}\"?")),
        None if known.is_empty() => fault.help(format!(
            "write it as `[providers.{}]`, here or in $EISEN_DIR/config.toml",
            name.value.escape_debug()
        )),
        None => fault.help(format!("there are {}", known.join(", "))),
    }
}
