//! How many blocked accesses of one agent get a line of their own: whoever floods must slow
//! nobody else, and fill nobody's memory.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::model::AgentId;

/// Lines that an agent gets at once, and how soon there is another one. What comes faster is
/// denied, and counted in one line.
const BURST: u32 = 128;
const EVERY: Duration = Duration::from_millis(100);

/// For each agent, when all that it used is made up for.
#[derive(Default, Debug)]
pub(super) struct Rates(HashMap<AgentId, Instant>);

impl Rates {
    /// Whether another access gets a line, which it uses up.
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
