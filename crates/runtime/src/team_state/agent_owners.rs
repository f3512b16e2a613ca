//! The person who answers for each agent of a team, by its configuration.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::config::Config;
use crate::model::AgentId;

/// The owners of a team's agents; clones share them.
#[derive(Clone, Default, Debug)]
pub(crate) struct AgentOwners(Arc<Mutex<HashMap<AgentId, String>>>);

impl AgentOwners {
    /// Replaces them by those of a configuration.
    pub(crate) fn configure(&self, config: &Config) {
        let owned = config.agents.iter();
        let owned = owned.filter_map(|agent| Some((agent.id.clone(), agent.owner.clone()?)));
        *self.0.lock() = owned.collect();
    }

    pub(crate) fn of(&self, agent: &AgentId) -> Option<String> {
        self.0.lock().get(agent).cloned()
    }
}
