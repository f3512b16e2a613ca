//! Limits how many blocked accesses of one agent are listed, so that a flood neither delays others
//! nor fills memory.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::AgentId;

/// Entries that an agent gets at once, and the interval until the next one. Faster accesses are
/// denied and counted in one entry.
const BURST: u32 = 128;
const EVERY: Duration = Duration::from_millis(100);

/// For each agent, when its burst is fully restored.
#[derive(Default, Debug)]
pub(super) struct Rates(HashMap<AgentId, Instant>);

impl Rates {
    /// Whether another access may be listed; if so, it is charged.
    pub(super) fn take(&mut self, agent: &AgentId) -> bool {
        let now = Instant::now();
        let full_at = self.0.entry(agent.clone()).or_insert(now);
        let next = (*full_at).max(now) + EVERY;
        let has_room = next <= now + EVERY * BURST;
        if has_room {
            *full_at = next;
        }
        has_room
    }

    pub(super) fn forget(&mut self, agent: &AgentId) {
        self.0.remove(agent);
    }
}
