//! Notes of an agent's profile for its user: installation, login, known limits.

use std::collections::BTreeSet;

use super::Tier;
use crate::config::{Agent, ClientFs, Profile};

/// Returns how to install the agent, if known.
pub(in crate::config) fn install(profile: &Profile) -> Option<String> {
    match profile.install.as_str() {
        "" => None,
        address if address.starts_with("https://") => Some(format!("see {address}")),
        command => Some(format!("install it with `{command}`")),
    }
}

/// Returns how the user logs in, if known. Variables of `kept` are no way: no agent gets them.
pub(super) fn login(agent: &Agent, kept: &BTreeSet<&str>) -> Option<String> {
    let Profile { login, login_env, .. } = &agent.profile;
    let login_env: Vec<&String> =
        login_env.iter().filter(|name| !kept.contains(name.as_str())).collect();
    let is_set = |name: &&&String| {
        let own = agent.env.get(**name).cloned();
        own.or_else(|| std::env::var(name).ok()).is_some_and(|value| !value.is_empty())
    };
    if let Some(name) = login_env.iter().find(is_set) {
        return Some(format!("by {name}, which is set"));
    }
    let by_command = (!login.is_empty()).then(|| format!("by `{login}`, once"));
    let by_variable = match &login_env[..] {
        [] => None,
        [one] => Some(format!("by {one}, which is not set")),
        several => {
            let names: Vec<_> = several.iter().map(|name| name.as_str()).collect();
            Some(format!("by {}, none of which is set", names.join(" or ")))
        }
    };
    let ways: Vec<String> = by_command.into_iter().chain(by_variable).collect();
    (!ways.is_empty()).then(|| ways.join("; or "))
}

pub(super) fn warnings(agent: &Agent, tier: Tier) -> Vec<String> {
    let (id, profile) = (&agent.id, &agent.profile);
    let mut warnings = Vec::new();
    if let Some(wanted) = &agent.auth_method
        && !profile.auth_methods.is_empty()
        && !profile.auth_methods.contains(wanted)
    {
        warnings.push(format!(
            "{id}: {} is not known to offer the `auth_method` {wanted}; it offers {}",
            profile.title,
            profile.auth_methods.join(", ")
        ));
    }
    if tier == Tier::Protocol && agent.zone.own {
        match profile.client_fs {
            Some(ClientFs::No) => warnings.push(format!(
                "{id}: {} opens files by itself, so the protocol can't enforce its zone",
                profile.title
            )),
            Some(ClientFs::Edits) => warnings.push(format!(
                "{id}: {} reads files by itself, so the protocol can't enforce its zone",
                profile.title
            )),
            Some(ClientFs::Yes) | None => {}
        }
        if let Some(plugin) = agent.plugin.as_ref().filter(|plugin| !plugin.gates) {
            warnings.push(format!(
                "{id}: the plugin {} asks for nothing, so the protocol can't enforce its zone",
                plugin.name
            ));
        }
    }
    if tier == Tier::Protocol && agent.unattended {
        warnings.push(format!(
            "{id} runs unattended, and the kernel does not enforce its zone: it can leave the zone without asking"
        ));
    }
    warnings
}
