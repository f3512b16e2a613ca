//! `url` and `headers` of an agent that runs elsewhere: `eisen-core connect` stands for it here.

use std::collections::BTreeMap;

use super::errors::quoted;
use super::fault::Fault;
use super::read::{Table, Text};
use super::telemetry::headers;
use super::{Agent, AgentZone, Enforce, Team};
use crate::model::SecretText;

/// Where an agent is, instead of its command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteAgent {
    pub url: String,
    /// Sent with each request.
    pub headers: BTreeMap<String, SecretText>,
}

const SCHEMES: [&str; 4] = ["https", "wss", "http", "ws"];

impl Agent {
    /// Whether its sessions get the tools of the team. They are reached on this machine only.
    pub fn has_tools(&self, team: &Team) -> bool {
        self.tools.unwrap_or(team.tools && self.remote.is_none())
    }
}

pub(super) fn remote(table: &Table<'_>) -> Option<RemoteAgent> {
    let (address, headers) = (table.text("url"), headers(table));
    if let (None, Some(place)) = (table.place_of("url"), table.place_of("headers")) {
        let help = "`headers` are sent to the `url` of an agent that runs elsewhere";
        table.fault(Fault::new(place, "`headers` need `url`").help(help));
    }
    let url = url(table, &address?)?;
    for key in ["command", "profile", "tier"] {
        if let Some(place) = table.place_of(key) {
            let message = format!("`{key}` and `url` can't both be given");
            table.fault(
                Fault::new(place, message).help("an agent runs here or elsewhere: keep one"),
            );
        }
    }
    Some(RemoteAgent { url, headers })
}

fn url(table: &Table<'_>, address: &Text) -> Option<String> {
    let text = &address.value;
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    let wrong = |message: String, help: &str| {
        table.fault(Fault::new(address.span.clone(), message).help(help));
        None
    };
    if authority.contains('@') {
        let help = "write a header: `headers = { authorization = \"Bearer ${TOKEN}\" }`";
        return wrong("this address has a name or password in it".to_owned(), help);
    }
    if !SCHEMES.contains(&&*scheme.to_ascii_lowercase()) || authority.is_empty() || !is_plain {
        let help =
            "write one such as \"https://agents.example/acp\" or \"wss://agents.example/acp\"";
        return wrong(format!("{} is not the address of an agent", quoted(text)), help);
    }
    Some(text.clone())
}

/// The kernel here can't hold what runs elsewhere: its zone holds at what passes the protocol.
pub(super) fn by_protocol(agent: &Table<'_>, zone: AgentZone) -> AgentZone {
    if zone.enforce == Enforce::Kernel
        && let Some(place) = agent.place_of("zone")
    {
        let message = "the kernel here can't hold the zone of an agent that runs elsewhere";
        agent.fault(Fault::new(place, message).help("leave `enforce` out, or write \"protocol\""));
    }
    AgentZone { enforce: Enforce::Protocol, ..zone }
}
