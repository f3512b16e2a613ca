//! The turns, tool calls and processes of one run of an agent, for the capture of its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::{AgentSettings, Surroundings};
use crate::capture::{AgentRun, Moment, RunFiles};
use crate::confine;
use crate::model::{SessionId, wire_real};
use crate::process::Family;
use crate::proxy::{LiveCalls, NamedPath, WriteContext};

/// The turns, tool calls and processes of a run.
struct Writing {
    running: Arc<LiveCalls>,
    family: Family,
    /// Real.
    workspace: PathBuf,
}

impl AgentRun for Writing {
    fn epoch(&self) -> u64 {
        self.running.epoch()
    }

    fn moment(&self, real: &Path, at: Instant) -> Moment {
        let wire = wire_real(&self.workspace, real);
        let place = NamedPath { wire: &wire, workspace: &self.workspace };
        let at = tokio::time::Instant::from_std(at);
        let WriteContext { session, tool_call } = self.running.write_context(place, at);
        Moment { session, tool_call }
    }

    fn tool_call(&self, session: &SessionId, real: &Path, at: Instant) -> Option<Arc<str>> {
        let wire = wire_real(&self.workspace, real);
        let place = NamedPath { wire: &wire, workspace: &self.workspace };
        self.running.tool_call(session, place, tokio::time::Instant::from_std(at))
    }

    fn processes(&self) -> Vec<u32> {
        self.family.processes()
    }

    fn rings(&self, call: i64) -> bool {
        confine::rings(call)
    }
}

/// Captures the writes of a run; None without a journal.
pub(super) fn files_of(
    settings: &AgentSettings,
    team: &Surroundings,
    running: &Arc<LiveCalls>,
    family: &Family,
) -> Option<RunFiles> {
    let capture = team.capture.as_ref()?;
    let AgentSettings { id, zone, bounds, .. } = settings;
    capture.set_zone(id, zone.clone());
    let workspace = zone.workspace().to_owned();
    let run = Writing { running: running.clone(), family: family.clone(), workspace };
    Some(capture.of_run(id.clone(), Arc::new(run), bounds.is_some()))
}
