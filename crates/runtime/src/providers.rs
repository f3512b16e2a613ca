//! The providers of a running team: their keys, the endpoint that stands in for them, and what leads an agent there.
//! The endpoint knows an agent by its token and its process, and counts each call for a turn of the agent.
//!
//! Must not know how a team is wired, nor where keys are configured.

mod callers;
mod key_command;
mod leases;
mod peer;
mod withdrawal;

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use self::callers::EndpointCallers;
use self::leases::Leases;
use crate::budget::Budgets;
use crate::config::{self, AgentProvider, Config, ProviderLaunch};
use crate::endpoint::{Endpoint, ProviderSwitch};
use crate::provider::ModelProvider;
use crate::proxy::ModelCalls;
use crate::supervisor::Roster;
use crate::tracker::TrackerHandle;

pub(crate) use self::withdrawal::hand_keys_on;
pub use self::withdrawal::{receive_keys, withdraw_keys};

/// The endpoint's host, as agents name it.
const LOCAL: &str = "127.0.0.1";

/// The providers of a team; cheap to clone. A team without `[providers]` has none, and all of this does nothing.
#[derive(Clone)]
pub(crate) struct TeamProviders(Option<Arc<ServedTeam>>);

struct ServedTeam {
    address: SocketAddr,
    switch: ProviderSwitch,
    leases: Leases,
    /// Names of providers whose keys are there.
    ready: Mutex<BTreeSet<String>>,
    /// Has a folder for the files of each agent.
    folder: PathBuf,
    key_variables: BTreeSet<String>,
}

/// An agent that is led to the endpoint.
pub(crate) struct LedAgent {
    pub(crate) launch: ProviderLaunch,
    pub(crate) calls: Arc<ModelCalls>,
    /// The folder of its files, if it has any.
    pub(crate) folder: Option<PathBuf>,
}

impl TeamProviders {
    /// Starts the endpoint of a team; the future serves it until `cancel`. `folder` gets the files of agents.
    pub(crate) async fn start(
        config: &Config,
        (tracker, budgets): (TrackerHandle, Budgets),
        folder: PathBuf,
        cancel: CancellationToken,
    ) -> anyhow::Result<(Self, BoxFuture<'static, ()>)> {
        let providers = &config.shared.providers;
        if providers.is_empty() {
            return Ok((Self(None), std::future::ready(()).boxed()));
        }
        if providers.values().any(|provider| provider.key.is_some()) {
            withdrawal::guard_memory();
        }
        let leases = Leases::new(budgets);
        let callers = EndpointCallers::new(leases.clone(), tracker);
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let endpoint = Endpoint::bind(loopback, Vec::new(), callers).await;
        let endpoint = endpoint.context("the endpoint for the providers of models")?;
        let running = ServedTeam {
            address: endpoint.address(),
            switch: endpoint.providers(),
            leases,
            ready: Mutex::default(),
            folder,
            key_variables: config.shared.key_variables().into_iter().map(str::to_owned).collect(),
        };
        Ok((Self(Some(Arc::new(running))), endpoint.run(cancel).boxed()))
    }

    /// Gives it the agents that may call. Before that nobody is known.
    pub(crate) fn know(&self, roster: Roster) {
        if let Some(running) = &self.0 {
            running.leases.know(roster);
        }
    }

    /// Fetches the keys that agents of a configuration need, and are not there yet. Each command is run once.
    pub(crate) async fn ready(&self, config: &Config) -> anyhow::Result<()> {
        let Some(running) = &self.0 else { return Ok(()) };
        let mut ready = running.ready.lock().await;
        let names = config.agents.iter().filter_map(|agent| agent.provider.name());
        let names: BTreeSet<&str> = names.filter(|name| !ready.contains(*name)).collect();
        for name in names {
            let Some(provider) = config.shared.provider(name) else { continue };
            let wrong = || format!("the provider `{name}`");
            let key = key_of(provider).await.with_context(wrong)?;
            // Any provider may get `record` before the team ends.
            if let Some(key) = &key {
                running.leases.hide(key);
            }
            running.switch.add(with_key(provider, key).with_context(wrong)?);
            ready.insert(name.to_owned());
        }
        Ok(())
    }

    /// Leads an agent to the endpoint; None: it has no provider of the team's. Writes its files.
    pub(crate) fn lead(&self, agent: &config::Agent) -> anyhow::Result<Option<LedAgent>> {
        let Some(running) = &self.0 else { return Ok(None) };
        let AgentProvider::Used { name, .. } = &agent.provider else { return Ok(None) };
        let model = agent.model.as_deref().map(Into::into);
        let lease = running.leases.of(&agent.id, name, model)?;
        // A name without an extension: it is granted as a folder.
        let folder = running.folder.join(agent.id.as_str()).join("provider");
        let url = format!("http://{}/{name}", running.address);
        let Some(mut launch) = agent.provider_launch(&url, lease.token(), &folder) else {
            return Ok(None);
        };
        let variable =
            |name: &str| agent.env.get(name).cloned().or_else(|| std::env::var(name).ok());
        launch.env.extend(without_proxy(&variable));
        for file in &launch.files {
            let mode = if file.is_program { 0o700 } else { 0o600 };
            let written = write(&folder, &file.name, file.content.as_bytes(), mode);
            written
                .with_context(|| format!("cannot write {}", folder.join(&file.name).display()))?;
        }
        let folder = (!launch.files.is_empty()).then_some(folder);
        Ok(Some(LedAgent { launch, calls: lease.calls(), folder }))
    }

    /// The variables that an agent and its terminals are not to have of the team's own environment: those with keys,
    /// and those that its provider's form leaves out.
    pub(crate) fn withheld(&self, led: Option<&LedAgent>) -> BTreeSet<String> {
        let Some(running) = &self.0 else { return BTreeSet::new() };
        let unset = led.into_iter().flat_map(|led| &led.launch.unset);
        let names = running.key_variables.iter().chain(unset).cloned();
        names.filter(|name| std::env::var_os(name).is_some()).collect()
    }

    /// Forgets the tokens of agents that are in no configuration any more.
    pub(crate) fn keep_those_of(&self, config: &Config) {
        if let Some(running) = &self.0 {
            running.leases.keep(&|agent| config.agent(agent).is_some());
        }
    }
}

impl Drop for ServedTeam {
    fn drop(&mut self) {
        // It may not have been made. What a killed team leaves is removed at the next start.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The key of a provider; None: it needs none.
async fn key_of(provider: &config::Provider) -> anyhow::Result<Option<Zeroizing<String>>> {
    let key = match &provider.key {
        None => return Ok(None),
        Some(config::ProviderKey::Variable { name, value: None }) => {
            anyhow::bail!("has no key: the environment has no variable `{name}`")
        }
        Some(config::ProviderKey::Variable { value: Some(value), .. }) => value.reveal().to_owned(),
        Some(config::ProviderKey::Command(words)) => {
            key_command::first_line(words, &provider.name).await?
        }
    };
    Ok(Some(Zeroizing::new(key)))
}

/// A provider as the endpoint has it.
fn with_key(
    provider: &config::Provider,
    key: Option<Zeroizing<String>>,
) -> anyhow::Result<ModelProvider> {
    let config::Provider { name, kind, url, models, record, key: _, of_user: _ } = provider;
    // The address may come from a variable, and have a key in it, so that it is not shown.
    let own = ModelProvider::new(name, *kind, url)?;
    let own = ModelProvider { models: models.clone(), record: *record, ..own };
    Ok(match key {
        None => own,
        Some(key) => own.with_key(String::clone(&key))?,
    })
}

/// The variables by which an agent with a proxy for HTTP does not send calls of the endpoint there.
fn without_proxy(variable: &dyn Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let set = |name: &&str| variable(name).is_some_and(|value| !value.is_empty());
    if !["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"].iter().any(&set) {
        return Vec::new();
    }
    let names = ["no_proxy", "NO_PROXY"].into_iter();
    let known = names.clone().find(set).and_then(variable);
    let all = known.map_or_else(|| LOCAL.to_owned(), |known| format!("{known},{LOCAL}"));
    names.map(|name| (name.to_owned(), all.clone())).collect()
}

/// Writes a file of an agent's folder, unless it is there. A running agent may be executing it, so it is replaced.
fn write(folder: &Path, name: &str, content: &[u8], mode: u32) -> io::Result<()> {
    use std::io::Write as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let file = folder.join(name);
    if std::fs::read(&file).is_ok_and(|there| Zeroizing::new(there).as_slice() == content) {
        return Ok(());
    }
    let draft = folder.join(format!(".{name}.new"));
    let mut options = std::fs::OpenOptions::new();
    let mut written = options.write(true).create(true).truncate(true).mode(mode).open(&draft)?;
    written.write_all(content)?;
    drop(written);
    std::fs::rename(draft, file)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::ProviderKind;

    #[test]
    fn an_address_that_can_not_be_used_is_not_shown() {
        let provider = config::Provider {
            name: "main".to_owned(),
            kind: ProviderKind::OpenAi,
            url: "https://host?CANARY".to_owned(),
            key: None,
            models: BTreeMap::new(),
            record: false,
            of_user: true,
        };
        let why = with_key(&provider, None).err().map(|why| format!("{why:#}")).unwrap_or_default();
        assert!(why.contains("`url`") && !why.contains("CANARY"), "{why}");
    }
}
