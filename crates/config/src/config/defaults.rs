//! The defaults of `[tracker]` and `[port]`, and the move of a team to a copy of its workspace.

use std::path::Path;
use std::time::Duration;

use super::{Agent, Config, Port, Tracker};

impl Default for Tracker {
    fn default() -> Self {
        Self {
            context_turns: 3,
            compaction_threshold: 0.5,
            decay_rate: 0.95,
            tick: Duration::from_millis(100),
            idle_tick: Duration::from_millis(500),
        }
    }
}

impl Default for Port {
    fn default() -> Self {
        Self {
            max_connections: 1024,
            max_line_bytes: 4 * 1024 * 1024,
            backlog: 4096,
            backlog_bytes: 32 * 1024 * 1024,
            write_deadline: Duration::from_secs(60),
        }
    }
}

impl Config {
    /// Moves the team to another folder with the same content.
    pub fn move_workspace(&mut self, to: &Path) {
        let from = std::mem::replace(&mut self.team.workspace, to.to_owned());
        for agent in &mut self.agents {
            agent.move_workspace(&from, to);
        }
    }
}

impl Agent {
    /// Has it work in another folder, as it would in the workspace.
    pub fn move_workspace(&mut self, from: &Path, to: &Path) {
        if let Ok(inside) = self.cwd.strip_prefix(from) {
            self.cwd = to.join(inside);
        }
        to.clone_into(&mut self.zone.spec.workspace);
    }
}
