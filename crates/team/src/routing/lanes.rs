//! Limits how many requests of one agent wait for the routing task: an agent that floods delays
//! itself, and others little.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::model::AgentId;

/// Requests of one agent that may wait at once.
const PERMITS: usize = 16;

/// A fair semaphore for each agent.
#[derive(Default, Debug)]
pub(super) struct Lanes(Mutex<HashMap<AgentId, Arc<Semaphore>>>);

/// A permit, returned when dropped. `None` cannot occur, since no lane is closed.
pub(super) type LanePermit = Option<OwnedSemaphorePermit>;

impl Lanes {
    pub(super) async fn enter(&self, agent: &AgentId) -> LanePermit {
        self.of(agent).acquire_owned().await.ok()
    }

    pub(super) fn is_full(&self, agent: &AgentId) -> bool {
        self.of(agent).available_permits() == 0
    }

    fn of(&self, agent: &AgentId) -> Arc<Semaphore> {
        let mut lanes = self.0.lock();
        let lane = lanes.entry(agent.clone()).or_insert_with(|| Arc::new(Semaphore::new(PERMITS)));
        Arc::clone(lane)
    }
}
