//! `[gateway]`: the team as one agent of ACP.

use std::collections::BTreeSet;

use super::Agent;
use super::read::{ConfigReader, Table, Text};
use super::references::unknown;
use crate::model::AgentId;

/// What the gateway does.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Gateway {
    /// The agent at which a session begins; None: the orchestrator, or where there is none the first one.
    pub default: Option<AgentId>,
}

/// A table whose agent is not looked up.
pub(super) struct RawGateway {
    default: Option<Text>,
}

pub(super) fn gateway(gateway: &Table<'_>) -> RawGateway {
    RawGateway { default: gateway.text("default") }
}

impl RawGateway {
    /// Looks its agent up; one that was removed over the port is none.
    pub(super) fn resolved(
        self,
        reader: &ConfigReader<'_>,
        agents: &[Agent],
        removed: &BTreeSet<String>,
    ) -> Gateway {
        let Some(name) = self.default.filter(|name| !removed.contains(&name.value)) else {
            return Gateway::default();
        };
        let found = agents.iter().find(|agent| agent.id.as_str() == name.value);
        if found.is_none() {
            let known: Vec<&str> = agents.iter().map(|agent| agent.id.as_str()).collect();
            reader.fault(unknown(&name, &known));
        }
        Gateway { default: found.map(|agent| agent.id.clone()) }
    }
}
