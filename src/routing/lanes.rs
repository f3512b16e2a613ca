//! How many requests of one agent wait for the routing task at once. Those of an agent that floods
//! wait for each other, and another agent's for few of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::model::AgentId;

/// Places of one agent.
const PLACES: usize = 16;

/// For each agent its places. Whoever waits for one gets it in the order of asking.
#[derive(Default, Debug)]
pub(super) struct Lanes(Mutex<HashMap<AgentId, Arc<Semaphore>>>);

/// A place, free again when this is dropped. None: nobody closes a lane.
pub(super) type LanePermit = Option<OwnedSemaphorePermit>;

impl Lanes {
    pub(super) async fn enter(&self, agent: &AgentId) -> LanePermit {
        self.of(agent).acquire_owned().await.ok()
    }

    pub(super) fn is_full(&self, agent: &AgentId) -> bool {
        self.of(agent).available_permits() == 0
    }

    fn of(&self, agent: &AgentId) -> Arc<Semaphore> {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = lanes.entry(agent.clone()).or_insert_with(|| Arc::new(Semaphore::new(PLACES)));
        Arc::clone(lane)
    }
}
