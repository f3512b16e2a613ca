//! `url`, or `base_url`, and `headers` of an agent that runs elsewhere: `eisen-core team connect` stands for it here.

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
    pub protocol: RemoteProtocol,
    pub url: String,
    /// Sent with each request.
    pub headers: BTreeMap<String, SecretText>,
}

/// The protocol that an agent elsewhere speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemoteProtocol {
    /// `url`
    Acp,
    /// `base_url`: OpenCode's own server.
    OpenCode,
}

/// The `protocol` of an agent that is OpenCode's own server.
pub(super) const OPENCODE: &str = "opencode";

const SCHEMES: [&str; 4] = ["https", "wss", "http", "ws"];

impl RemoteAgent {
    /// Where it is, for the table that has it.
    pub(super) fn is_at(table: &Table<'_>) -> bool {
        table.place_of("url").is_some() || table.place_of("base_url").is_some()
    }

    /// The command that stands for it.
    pub(super) fn command(&self, program: String) -> Vec<String> {
        let options: &[&str] = match self.protocol {
            RemoteProtocol::Acp => &[],
            RemoteProtocol::OpenCode => &["--protocol", OPENCODE],
        };
        let words = ["team", "connect"].iter().chain(options).map(|word| (*word).to_owned());
        [program].into_iter().chain(words).chain([self.url.clone()]).collect()
    }
}

impl Agent {
    /// Whether its sessions get the tools of the team. They are reached on this machine only.
    pub fn has_tools(&self, team: &Team) -> bool {
        self.tools.unwrap_or(team.tools && self.remote.is_none())
    }

    /// Where it is, if it speaks this.
    pub(super) fn address(&self, protocol: RemoteProtocol) -> Option<&str> {
        let remote = self.remote.as_ref().filter(|remote| remote.protocol == protocol);
        remote.map(|remote| &*remote.url)
    }
}

pub(super) fn remote(table: &Table<'_>) -> Option<RemoteAgent> {
    let (address, base, headers) = (table.text("url"), table.text("base_url"), headers(table));
    if let (false, Some(place)) = (RemoteAgent::is_at(table), table.place_of("headers")) {
        let help = "`headers` are sent to the `url` or `base_url` of an agent that runs elsewhere";
        table.fault(Fault::new(place, "`headers` need `url`").help(help));
    }
    let protocol = table.verbatim("protocol");
    let is_opencode = protocol.as_ref().is_some_and(|text| text.value == OPENCODE);
    let (key, protocol, address) = match (address, base) {
        (Some(_), Some(base)) => {
            let fault = Fault::new(base.span, "`base_url` and `url` can't both be given");
            table
                .fault(fault.help("`base_url` is of OpenCode's server, `url` of others: keep one"));
            return None;
        }
        (Some(url), None) => ("url", RemoteProtocol::Acp, url),
        (None, Some(base)) => ("base_url", RemoteProtocol::OpenCode, base),
        (None, None) => {
            if let Some(protocol) = protocol.filter(|_| is_opencode && !RemoteAgent::is_at(table)) {
                let fault = Fault::new(protocol.span, "`protocol = \"opencode\"` needs `base_url`");
                table.fault(fault.help(
                    "write `base_url = \"http://127.0.0.1:4096\"`, where `opencode serve` listens; \
                     `opencode acp` is a `command` without `protocol`",
                ));
            }
            return None;
        }
    };
    let wanted = protocol == RemoteProtocol::OpenCode;
    if wanted != is_opencode {
        let (message, help) = if wanted {
            let help = "OpenCode's own server has one; an agent that speaks the Agent Client Protocol has a `url`";
            ("`base_url` needs `protocol = \"opencode\"`", help)
        } else {
            let help = "write `base_url` in place of `url`, where `opencode serve` listens";
            ("`protocol = \"opencode\"` needs `base_url`, not `url`", help)
        };
        table.fault(Fault::new(address.span, message).help(help));
        return None;
    }
    let url = url(table, &address, protocol)?;
    for other in ["command", "profile", "tier"] {
        if let Some(place) = table.place_of(other) {
            let message = format!("`{other}` and `{key}` can't both be given");
            table.fault(
                Fault::new(place, message).help("an agent runs here or elsewhere: keep one"),
            );
        }
    }
    Some(RemoteAgent { protocol, url, headers })
}

fn url(table: &Table<'_>, address: &Text, protocol: RemoteProtocol) -> Option<String> {
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
    let scheme = scheme.to_ascii_lowercase();
    let is_known = SCHEMES.contains(&&*scheme) && !authority.is_empty() && is_plain;
    match protocol {
        RemoteProtocol::Acp if !is_known => {
            let help =
                "write one such as \"https://agents.example/acp\" or \"wss://agents.example/acp\"";
            wrong(format!("{} is not the address of an agent", quoted(text)), help)
        }
        RemoteProtocol::OpenCode
            if !is_known || scheme.starts_with("ws") || rest.contains(['?', '#']) =>
        {
            let help =
                "write one such as \"http://127.0.0.1:4096\", where `opencode serve` listens";
            wrong(format!("{} is not the address of OpenCode's server", quoted(text)), help)
        }
        _ => Some(text.clone()),
    }
}

/// The kernel here can't hold what runs elsewhere: its zone holds at what passes the protocol.
pub(super) fn by_protocol(agent: &Table<'_>, zone: AgentZone) -> AgentZone {
    if zone.enforce == Enforce::Kernel
        && let Some(place) = agent.place_of("zone")
    {
        let message = "the kernel here can't hold the zone of an agent that runs elsewhere";
        agent.fault(Fault::new(place, message).help("leave `enforce` out, or write \"protocol\""));
    }
    // Here all that is judged is judged by the protocol, also what is only observed.
    let is_observed = zone.enforce == Enforce::Observe;
    let enforce = if is_observed { Enforce::Observe } else { Enforce::Protocol };
    AgentZone { enforce, ..zone }
}
