//! Chooses the provider of each agent: the one that it names, or the only one that it takes.

use std::collections::BTreeMap;
use std::ops::Range;

use super::agent_provider::{AgentProvider, NoProvider, WrittenProvider, unknown};
use super::agents::RawAgent;
use super::errors::{code, quoted};
use super::fault::Fault;
use super::login_file::login_file;
use super::profiles::{MODEL, ProviderForm};
use super::providers::{NO_PROVIDER, is_model};
use super::read::{ConfigReader, Text};
use super::{Agent, Provider, ProviderKey};

/// Finds the providers of all agents, which are complete but for these.
pub(super) fn resolve(
    reader: &ConfigReader<'_>,
    raw: &mut [RawAgent],
    parents: &[Option<usize>],
    providers: &BTreeMap<String, Provider>,
) {
    let mut order: Vec<usize> = (0..raw.len()).collect();
    // Parents are complete before their helpers.
    order.sort_by_key(|at| raw[*at].agent.depth);
    for at in order {
        let written = &raw[at].provider;
        let parent = parents[at].filter(|_| written.as_parent && written.name.is_none());
        let provider = match parent {
            Some(parent) => Some(raw[parent].agent.provider.clone()),
            None => ProviderChoice { reader, agent: &raw[at].agent, written, providers }.made(),
        };
        if let Some(provider) = provider {
            raw[at].agent.provider = provider;
        }
    }
}

/// The choice of one agent's provider.
struct ProviderChoice<'a> {
    reader: &'a ConfigReader<'a>,
    agent: &'a Agent,
    written: &'a WrittenProvider,
    providers: &'a BTreeMap<String, Provider>,
}

impl ProviderChoice<'_> {
    /// None: a mistake, which is recorded.
    fn made(&self) -> Option<AgentProvider> {
        match &self.written.name {
            Some(name) if name.value == NO_PROVIDER => {
                Some(AgentProvider::Without(NoProvider::Chosen))
            }
            Some(name) => self.named(name),
            None => self.only_one(),
        }
    }

    fn named(&self, name: &Text) -> Option<AgentProvider> {
        let Some(provider) = self.providers.get(&name.value) else {
            self.reader.fault_of_provider(&name.value, unknown(name, self.providers));
            return None;
        };
        let fault = |message: String, help: String| {
            self.reader.fault(Fault::new(name.span.clone(), message).help(help));
            None
        };
        if self.agent.remote.is_some() {
            let message =
                "an agent that runs elsewhere can't reach a provider of this team".to_owned();
            return fault(message, "leave out `provider`".to_owned());
        }
        let forms = &self.agent.profile.providers;
        let kind = provider.kind.as_str();
        let Some(form) = forms.get(&provider.kind) else {
            let table = "write the agent's own names for it in a profile of yours, in \
                         `[profiles.NAME.providers.";
            if forms.is_empty() {
                let message = "no setting is known by which this agent takes a provider".to_owned();
                return fault(message, format!("{table}{kind}]`, or leave out `provider`"));
            }
            let title = match &*self.agent.profile.title {
                "" => "this agent",
                title => title,
            };
            let takes: Vec<_> = forms.keys().map(|kind| code(kind.as_str())).collect();
            let message = format!(
                "{} is a provider of the kind {}, and {title} takes {}",
                quoted(&name.value),
                code(kind),
                takes.join(", ")
            );
            return fault(message, format!("name another one; or {table}{kind}]`"));
        };
        if form.has(MODEL) && self.agent.model.is_none() {
            let message = "this agent needs a `model` with a provider".to_owned();
            return fault(
                message,
                "write `model = \"…\"`, by the provider's name for it".to_owned(),
            );
        }
        self.used(provider, form, true)
    }

    /// The only provider of a kind that the agent takes, unless it is logged in.
    fn only_one(&self) -> Option<AgentProvider> {
        let without = |why| Some(AgentProvider::Without(why));
        let forms = &self.agent.profile.providers;
        let fits = |provider: &Provider| {
            let form = forms.get(&provider.kind).filter(|_| self.agent.remote.is_none());
            Some((provider.clone(), form?))
        };
        let fitting: Vec<_> = self.providers.values().filter_map(fits).collect();
        let Some((first, form)) = fitting.first() else { return without(NoProvider::NoneFits) };
        if let Some(login) = self.login(fitting.iter().map(|(_, form)| *form)) {
            return without(login);
        }
        if fitting.iter().all(|(_, form)| form.only_named) {
            return without(NoProvider::NotNamed);
        }
        if fitting.len() > 1 {
            let names: Vec<_> = fitting.iter().map(|(provider, _)| code(&provider.name)).collect();
            let message = format!(
                "agent {} takes more than one of the providers: {}",
                code(self.agent.id.as_str()),
                names.join(", ")
            );
            let help = format!(
                "write `provider = {}`, or `provider = \"none\"` for a key or login of its own",
                quoted(&first.name)
            );
            self.reader.fault(Fault::new(self.written.table.clone(), message).help(help));
            return None;
        }
        if form.has(MODEL) && self.agent.model.is_none() {
            return without(NoProvider::NoModel);
        }
        self.used(first, form, false)
    }

    /// A sign that the agent is logged in, by a file or by a variable that no form replaces.
    fn login<'f>(&self, forms: impl Iterator<Item = &'f ProviderForm>) -> Option<NoProvider> {
        let Agent { profile, env, .. } = self.agent;
        let variable = |name: &str| {
            let own = env.get(name).cloned();
            own.or_else(|| (self.reader.surroundings.variable)(name))
        };
        let forms: Vec<_> = forms.collect();
        let is_login = |name: &&String| {
            !forms.iter().any(|form| form.replaces(name))
                && self.reader.key_owner(name).is_none()
                && variable(name).is_some_and(|value| !value.is_empty())
        };
        let by_variable = profile.login_env.iter().find(is_login).cloned();
        let by_file = || login_file(&profile.base, &variable).map(NoProvider::LoginFile);
        by_variable.map(NoProvider::LoginVariable).or_else(by_file)
    }

    fn used(
        &self,
        provider: &Provider,
        form: &ProviderForm,
        is_named: bool,
    ) -> Option<AgentProvider> {
        let mut is_good = true;
        let place = self.written.name.as_ref().map_or(&self.written.table, |name| &name.span);
        let mut fault = |place: &Range<usize>, message: String, help: String| {
            self.reader.fault(Fault::new(place.clone(), message).help(help));
            is_good = false;
        };
        let none = "`provider = \"none\"`";
        if let Some(ProviderKey::Variable { name: variable, value: None }) = &provider.key {
            let message = format!(
                "the provider {} has no key: the environment has no variable {}",
                quoted(&provider.name),
                code(variable)
            );
            fault(place, message, format!("set it, or give the agent {none}"));
        }
        if let Some(variable) = self.agent.env.keys().find(|name| form.replaces(name)) {
            let message =
                format!("the provider {} says {}, too", quoted(&provider.name), code(variable));
            let env = self.written.env.as_ref().unwrap_or(place);
            fault(env, message, format!("leave it out of `env`, or give the agent {none}"));
        }
        let model = self.agent.model.as_deref().filter(|_| form.has(MODEL));
        if let Some(model) = model.filter(|model| !is_model(model)) {
            let message = format!("{} can't be given to an agent with a provider", quoted(model));
            fault(place, message, "write a `model` without spaces and quotes".to_owned());
        }
        let (name, kind) = (provider.name.clone(), provider.kind);
        is_good.then_some(AgentProvider::Used { name, kind, is_named })
    }
}
