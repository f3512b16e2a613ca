//! `[gateway]`: the team as one agent of ACP.

use std::collections::BTreeSet;

use super::Agent;
use super::errors::code;
use super::fault::Fault;
use super::read::{ConfigReader, Table, Text};
use super::references::unknown;
use super::web::{self, Web};
use crate::model::AgentId;

/// The settings of the gateway.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Gateway {
    /// The agent at which a session begins; None: the orchestrator, or where there is none the first one.
    pub default: Option<AgentId>,
    /// Where it is served by HTTP; None: only with the web page.
    pub served: Option<Web>,
}

/// A table whose agent is not looked up.
pub(super) struct RawGateway {
    default: Option<Text>,
    served: Option<Web>,
}

pub(super) fn gateway(gateway: &Table<'_>) -> RawGateway {
    RawGateway { default: gateway.text("default"), served: served(gateway) }
}

/// Where the gateway is served, if it is.
fn served(table: &Table<'_>) -> Option<Web> {
    let served = web::served(table, "the gateway");
    if table.place_of("listen").is_some() {
        return Some(served);
    }
    for key in ["origin", "cert", "key", "trusted_proxy"] {
        if let Some(place) = table.place_of(key) {
            let fault = Fault::new(place, format!("{} needs {}", code(key), code("listen")));
            table.fault(fault.help("write the address, such as `listen = \"127.0.0.1:17322\"`"));
        }
    }
    None
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
            return Gateway { default: None, served: self.served };
        };
        let found = agents.iter().find(|agent| agent.id.as_str() == name.value);
        if found.is_none() {
            let known: Vec<&str> = agents.iter().map(|agent| agent.id.as_str()).collect();
            reader.fault(unknown(&name, &known));
        }
        Gateway { default: found.map(|agent| agent.id.clone()), served: self.served }
    }
}
