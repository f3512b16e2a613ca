//! Ties one run of an agent to the locks of files: its gate, its client host, and its end.

use std::sync::Arc;

use tokio::sync::watch;

use super::{AgentSettings, Surroundings};
use crate::client_host::HostHandle;
use crate::conflicts::RunOfAgent;
use crate::proxy::{Gatekeeping, Permits, Rules, Vitals};

/// The gate of a run.
pub(super) fn gate(
    team: &Surroundings,
    settings: &AgentSettings,
    rules: watch::Receiver<Rules>,
    permits: Arc<Permits>,
) -> Gatekeeping {
    let conflicts = team.conflicts.as_ref().map(|it| it.of_agent(settings.id.clone()));
    Gatekeeping { rules, routing: team.routing.clone(), permits: Some(permits), conflicts }
}

/// Reports the run, and gives its host the locks; dropping the result ends them.
pub(super) fn begin(
    team: &Surroundings,
    settings: &AgentSettings,
    pid: u32,
    host: &HostHandle,
    vitals: Arc<Vitals>,
) -> Option<RunOfAgent> {
    let conflicts = team.conflicts.as_ref()?;
    host.set_conflicts(conflicts.of_agent(settings.id.clone()));
    let last_output = Arc::new(move || vitals.last_activity());
    Some(conflicts.run_began(settings.id.clone(), pid, last_output))
}
