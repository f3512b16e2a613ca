//! `[hub]`: the team as a member of a hub, over NATS.

use super::errors::{code, quoted};
use super::fault::Fault;
use super::is_name;
use super::read::{Table, Text};
use super::streams::{HUB, is_token, nats_access};
use crate::model::{NatsAccess, NatsTarget, StreamScope, StreamSpec, StreamTarget};

/// How a team is reached by a hub, or where a hub hears its teams.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HubMember {
    pub access: NatsAccess,
    /// The name of the team in the hub; None: only a hub reads this file.
    pub host: Option<String>,
}

/// Reads the table; the server may be that of the file beneath.
pub(super) fn hub(table: &Table<'_>, under: Option<&HubMember>) -> Option<HubMember> {
    let host = table.word("host").and_then(|text| {
        if is_token(&text.value) && text.value.len() <= 64 {
            return Some(text.value);
        }
        let fault = Fault::new(
            text.span.clone(),
            format!("{} can't be {}", code("host"), quoted(&text.value)),
        );
        table.fault(fault.help("write up to 64 letters, digits, `-` and `_`, such as \"a\""));
        None
    });
    let access = nats_access(table, "nats").or_else(|| Some(under?.access.clone()));
    let is_given = |key: &&'static str| table.place_of(key).is_some();
    if access.is_none()
        && ["host", "token", "credentials"].iter().any(is_given)
        && !is_given(&"nats")
    {
        table.lacks("`[hub]` has no `nats`", "write `nats = \"nats://127.0.0.1:4222\"`");
    }
    Some(HubMember { access: access?, host })
}

/// Checks the name of an orchestrator agent of another host, for which the team has to be in a hub.
pub(super) fn orchestrator(table: &Table<'_>, name: Option<&Text>, hub: Option<&HubMember>) {
    let Some((name, (host, agent))) = name.and_then(|it| Some((it, it.value.split_once('/')?)))
    else {
        return;
    };
    let own = hub.and_then(|hub| hub.host.as_deref());
    let (message, help) = match own {
        _ if !is_token(host) || !is_name(agent) => {
            let message = format!("{} is no agent of another host", quoted(&name.value));
            (message, "write its host and its id, such as \"b/lead\"")
        }
        None => (
            "an orchestrator of another host is reached by a hub, and the team is in none"
                .to_owned(),
            "write `nats` and `host` in `[hub]`",
        ),
        Some(own) if own == host => {
            let message = format!("{} is the host of this team", quoted(host));
            (message, "write the agent's id alone")
        }
        Some(_) => return,
    };
    table.fault(Fault::new(name.span.clone(), message).help(help));
}

impl HubMember {
    /// The stream by which `JetStream` gets the events of the journal; None: it is no member.
    pub(super) fn stream(&self) -> Option<StreamSpec> {
        let host = self.host.as_ref()?;
        let target = NatsTarget {
            access: self.access.clone(),
            subject: Some(format!("eisen-hub.{host}.event")),
            stream: Some(format!("EISEN_{host}")),
            inbox: Some(format!("_INBOX.{host}")),
        };
        Some(StreamSpec {
            name: HUB.to_owned(),
            target: StreamTarget::Nats(target),
            scope: StreamScope::default(),
            from_start: false,
            canary: false,
        })
    }
}
