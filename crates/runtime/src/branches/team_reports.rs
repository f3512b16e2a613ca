//! Asks the teams that run what the agents of branches do.

use std::time::Duration;

use futures_util::future::join_all;

use super::ListedBranch;
use crate::home::environment;
use crate::serve::client::{Connection, Target};
use crate::serve::{RunInfo, live_teams};
use crate::wire::{Empty, TeamReport, TeamStatus};

/// How long a team may take to say what its agents do.
const PATIENCE: Duration = Duration::from_secs(2);

/// Has the teams that run say what the agents of branches do. `own`: a team that knows what its own do.
pub async fn ask_teams(all: &mut [ListedBranch], own: Option<&str>) {
    let Ok(eisen_dir) = environment::eisen_dir() else { return };
    let mut running = live_teams(&eisen_dir).unwrap_or_default();
    running.retain(|info| {
        Some(&*info.team) != own && all.iter().any(|branch| branch.is_of(&info.team))
    });
    let asked = join_all(running.into_iter().map(|info| async {
        let report = tokio::time::timeout(PATIENCE, ask(&info)).await;
        (info, report)
    }));
    for (info, report) in asked.await {
        // A team that does not answer has its processes shown.
        let Ok(Some(report)) = report else { continue };
        for branch in all.iter_mut().filter(|branch| branch.is_of(&info.team)) {
            branch.of_report(&report, info.pid);
        }
    }
}

async fn ask(info: &RunInfo) -> Option<TeamReport<'static>> {
    let mut team = Connection::open(&Target::from(info.clone())).await.ok()?;
    team.call::<TeamStatus>(&Empty {}).await.ok()
}

impl ListedBranch {
    /// Whether an agent of a team has it.
    pub(crate) fn is_of(&self, team: &str) -> bool {
        self.team_and_agent().is_some_and(|(of, _)| of == team)
    }

    /// Takes in what its agent does, as its team says.
    pub(crate) fn of_report(&mut self, report: &TeamReport<'_>, team_pid: u32) {
        let named = self.team_and_agent().map(|(_, agent)| agent.to_owned());
        let row = report.agents.iter().find(|row| Some(&*row.agent_id) == named.as_deref());
        let (runs, waits) = row.map_or((false, false), |row| (row.running, row.pending > 0));
        self.of_agent(runs, waits, team_pid);
    }
}
