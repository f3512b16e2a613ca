//! The provider of each agent, and what it costs an agent that it has none.

use super::found_login;
use crate::config::{Agent, AgentProvider, Config, NoProvider, Provider, ProviderKey};

/// The cost of an agent that has its key or login itself.
const OWN: &str =
    "Its key is readable by all that it runs; its spending is known only as far as it reports it";

/// Says which provider an agent uses; None: the team has no providers.
pub(super) fn provider(config: &Config, agent: &Agent) -> Option<String> {
    if config.shared.providers.is_empty() {
        return None;
    }
    let why = match &agent.provider {
        AgentProvider::Used { name, is_named, .. } => {
            let used = format!("{name}, by a token in place of the key");
            let login = found_login(agent).filter(|_| *is_named);
            let login = login.map(|file| format!("; not its login ({})", file.display()));
            return Some(used + &login.unwrap_or_default());
        }
        AgentProvider::Without(why) => why,
    };
    let other = "; `provider = \"NAME\"` would take its place";
    let none = match why {
        NoProvider::Chosen => "none, as it says".to_owned(),
        NoProvider::LoginFile(file) => {
            format!("none: it is logged in ({}), and keeps that{other}", file.display())
        }
        NoProvider::LoginVariable(variable) => {
            format!("none: it is logged in by {variable}, which is set, and keeps that{other}")
        }
        NoProvider::NoModel => "none: with one it needs a `model`".to_owned(),
        NoProvider::NotNamed => {
            "none: nothing shows whether it is logged in; `provider = \"NAME\"` leads it to one"
                .to_owned()
        }
        NoProvider::NoneFits if agent.remote.is_some() => {
            return Some("none: it runs elsewhere".to_owned());
        }
        NoProvider::NoneFits if agent.profile.providers.is_empty() => {
            "none: no setting is known by which it takes one".to_owned()
        }
        NoProvider::NoneFits => {
            let kinds = agent.profile.providers.keys().map(|kind| kind.as_str());
            format!("none: it takes {}", kinds.collect::<Vec<_>>().join(" or "))
        }
    };
    Some(format!("{none}. {OWN}"))
}

/// Returns a sentence for each provider of the team's file that gets a vendor's key, and is not the vendor.
pub(super) fn hints(config: &Config) -> Vec<String> {
    let goes_elsewhere = |provider: &&Provider| {
        let variable = provider.key.as_ref().and_then(ProviderKey::variable);
        variable == Some(provider.kind.key_variable())
            && provider.url != provider.kind.vendor_url()
            && !provider.of_user
    };
    let elsewhere = config.shared.providers.values().filter(goes_elsewhere);
    let hint = |provider: &Provider| {
        format!(
            "provider {}: the key in {} goes to {}, which is not {}",
            provider.name,
            provider.kind.key_variable(),
            provider.url,
            provider.kind.vendor_url()
        )
    };
    elsewhere.map(hint).collect()
}
