//! The things that all connections of the endpoint share.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::Semaphore;

use super::EndpointError;
use super::bodies::ROOM;
use super::upstream::Upstream;
use crate::provider::ModelProvider;

/// The providers by their names.
type Providers = BTreeMap<Arc<str>, Arc<ModelProvider>>;

/// Exchanges the providers of an endpoint. Calls that run go on with those they began with.
#[derive(Clone)]
pub struct ProviderSwitch(Arc<RwLock<Providers>>);

impl ProviderSwitch {
    fn new(providers: Vec<ModelProvider>) -> Self {
        Self(Arc::new(RwLock::new(by_name(providers))))
    }

    /// Serves these from now on.
    pub fn replace(&self, providers: Vec<ModelProvider>) {
        *self.0.write() = by_name(providers);
    }

    /// Serves one more, or another one by this name, from now on.
    pub fn add(&self, provider: ModelProvider) {
        self.0.write().insert(Arc::clone(&provider.name), Arc::new(provider));
    }

    pub(super) fn get(&self, name: &str) -> Option<Arc<ModelProvider>> {
        self.0.read().get(name).cloned()
    }
}

fn by_name(providers: Vec<ModelProvider>) -> Providers {
    providers.into_iter().map(|one| (Arc::clone(&one.name), Arc::new(one))).collect()
}

/// The things that all connections share.
pub(super) struct EndpointParts<C> {
    pub(super) providers: ProviderSwitch,
    pub(super) callers: Arc<C>,
    pub(super) upstream: Upstream,
    /// KiB of bodies that may wait in memory.
    pub(super) room: Arc<Semaphore>,
}

impl<C> EndpointParts<C> {
    pub(super) fn new(providers: Vec<ModelProvider>, callers: C) -> Result<Self, EndpointError> {
        Ok(Self {
            providers: ProviderSwitch::new(providers),
            callers: Arc::new(callers),
            upstream: Upstream::new()?,
            room: Arc::new(Semaphore::new(ROOM)),
        })
    }
}
