//! The use of the team's tools in a run: noted in the team's folder, where `check` reads it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::bus::{Received, Subscriber};
use crate::config::Config;
use crate::home::journals::team_folder;
use crate::kept::{KeptFile, Volatile};
use crate::model::{AgentState, Event};
use crate::serve::ToolUses;

/// How often it is written at most.
const PACE: Duration = Duration::from_secs(1);

/// Bytes of a file that is read: a thousand agents have 100 KiB.
const LONGEST: u64 = 1 << 20;

/// By agent; those that were never ready are missing.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
struct ToolsSeen {
    agents: BTreeMap<String, AgentTools>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
struct AgentTools {
    connected: bool,
    listed: bool,
    calls: u64,
}

/// The file of a team.
pub(crate) fn place(eisen_dir: &Path, team: &str) -> PathBuf {
    team_folder(eisen_dir, team).join("tools.json")
}

/// Notes the use of the tools until `cancel`. The file of the last run stays until an agent is ready.
pub(crate) async fn note(
    file: PathBuf,
    uses: ToolUses,
    mut events: Subscriber,
    cancel: CancellationToken,
) {
    let mut seen = ToolsSeen::default();
    let mut due = None;
    loop {
        tokio::select! {
            () = cancel.cancelled() => break,
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                due = None;
                seen.write(&file, &uses);
            }
            () = uses.changed() => due = due.or_else(|| Some(Instant::now() + PACE)),
            event = events.recv() => match event {
                None => break,
                Some(Received::Event(_, event)) => {
                    if let Event::Agent(status) = &**event
                        && status.state == AgentState::Ready
                        && !seen.agents.contains_key(status.agent.as_str())
                    {
                        seen.agents.insert(status.agent.to_string(), AgentTools::default());
                        due = due.or_else(|| Some(Instant::now() + PACE));
                    }
                }
                Some(Received::Missed(_)) => {}
            },
        }
    }
    seen.write(&file, &uses);
}

impl ToolsSeen {
    fn write(&mut self, file: &Path, uses: &ToolUses) {
        for (agent, used) in uses.in_run() {
            let connected = used.connections > 0;
            let seen = AgentTools { connected, listed: used.listed, calls: used.calls };
            self.agents.insert(agent.to_string(), seen);
        }
        if self.agents.is_empty() {
            return;
        }
        if let Err(error) = self.replace(file) {
            tracing::debug!(%error, "cannot note the use of the tools for `check`");
        }
    }

    fn replace(&self, file: &Path) -> io::Result<()> {
        kept(file).replace(&serde_json::to_vec(self)?)
    }

    /// None if no run left one that can be read.
    fn read(file: &Path) -> Option<Self> {
        kept(file).read_json().ok().flatten()
    }
}

/// The file, which only advises.
fn kept(file: &Path) -> KeptFile<Volatile> {
    KeptFile::new(file, LONGEST)
}

/// A line for each agent: what the last run saw of the tools, and the way round where it saw none.
pub fn tool_lines(config: &Config, eisen_dir: &Path) -> Vec<String> {
    let seen = ToolsSeen::read(&place(eisen_dir, &config.team.name));
    let line = |agent: &crate::config::Agent| {
        let offered = agent.tools.unwrap_or(config.team.tools);
        let of_agent = seen.as_ref().map(|seen| seen.agents.get(agent.id.as_str()));
        let said = match of_agent {
            _ if !offered => "not offered (`tools = false`)".to_owned(),
            None => "not seen yet".to_owned(),
            Some(None) => "it was not ready in the last run".to_owned(),
            Some(Some(seen)) => {
                let said = described(*seen);
                match seen {
                    AgentTools { listed: false, .. } => {
                        format!("{said}; {}", way_round(&agent.profile))
                    }
                    AgentTools { calls: 0, .. } if agent.profile.hides_tools == Some(true) => {
                        format!("{said}; its model gets them by a search only")
                    }
                    _ => said,
                }
            }
        };
        format!("{:<12}  {said}", agent.id.as_str())
    };
    config.agents.iter().map(line).collect()
}

fn described(seen: AgentTools) -> String {
    match seen {
        AgentTools { listed: true, calls: 0, .. } => "listed, no call in the last run".to_owned(),
        AgentTools { listed: true, calls: 1, .. } => "listed, 1 call in the last run".to_owned(),
        AgentTools { listed: true, calls, .. } => format!("listed, {calls} calls in the last run"),
        AgentTools { connected: true, .. } => "connected, never listed in the last run".to_owned(),
        AgentTools { .. } => "never listed in the last run".to_owned(),
    }
}

/// How an agent does without the tools.
fn way_round(profile: &crate::config::Profile) -> &str {
    match profile.without_tools.as_str() {
        "" => "without tools, its shell has the commands of `eisen-core`",
        way => way,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_is_read_as_it_was_written_and_a_torn_one_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tools.json");
        assert_eq!(ToolsSeen::read(&file), None);
        let tools = AgentTools { connected: true, listed: true, calls: 3 };
        let seen = ToolsSeen { agents: [("ui".to_owned(), tools)].into() };
        seen.replace(&file).unwrap();
        assert_eq!(ToolsSeen::read(&file), Some(seen));
        std::fs::write(&file, "{\"agents\":{\"ui\"").unwrap();
        assert_eq!(ToolsSeen::read(&file), None);
    }
}
