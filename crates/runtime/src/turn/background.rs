//! Processes that an agent started in its turn and left behind.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::agent::AgentHandle;
use crate::model::masked_line;
use crate::process;

/// How long a process may take to end after the turn of its agent.
const ENDS_WITHIN: Duration = Duration::from_millis(200);

/// Processes that are named, and bytes of a command line.
const MOST: usize = 20;
const LONGEST: usize = 200;

/// The processes of an agent at one time, by pid and start.
pub(crate) struct Processes {
    all: BTreeSet<(u32, u64)>,
    /// The process that they are of.
    run: Option<u64>,
}

impl Processes {
    pub(crate) fn of(agent: &AgentHandle) -> Self {
        let family = agent.family();
        let pids = family.map(|family| family.processes()).unwrap_or_default();
        let all = pids.into_iter().filter_map(|pid| Some((pid, process::start_of(pid)?)));
        Self { all: all.collect(), run: agent.edition() }
    }

    /// The command lines of those that have been started since, and stay. None are known where another candidate
    /// has taken over.
    pub(crate) async fn left_behind(self, agent: &AgentHandle) -> Vec<String> {
        if agent.edition() != self.run {
            return Vec::new();
        }
        let new = |now: Self| &now.all - &self.all;
        if new(Self::of(agent)).is_empty() {
            return Vec::new();
        }
        tokio::time::sleep(ENDS_WITHIN).await;
        let stay = new(Self::of(agent));
        let lines = stay.iter().filter_map(|(pid, _)| process::command_line(*pid, LONGEST));
        let lines: BTreeSet<_> = lines.map(|line| masked_line(&line)).collect();
        lines.into_iter().take(MOST).collect()
    }
}
