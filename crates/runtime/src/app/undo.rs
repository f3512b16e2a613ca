//! Undo in a running team, with its agents' turns and writes considered.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::app::rooms::Wiring;
use crate::bus::Bus;
use crate::capture::Capture;
use crate::journal::{AppendError, Journal};
use crate::model::AgentId;
use crate::serve::{BoxFuture, Refused};
use crate::supervisor::Roster;
use crate::tracker::TrackerHandle;
use crate::undo::{LiveAgents, Recovered, UndoError, Undoer};

/// How long an undo waits for the journal, which may have gigabytes to write.
const PATIENCE: Duration = Duration::from_mins(2);

/// The state of a running team that an undo depends on.
struct Running {
    roster: Roster,
    tracker: TrackerHandle,
    journal: Journal,
    bus: Bus,
    capture: Option<Capture>,
}

/// Undo in a team; None if it keeps no journal.
pub(super) async fn undoer(wiring: &Wiring, roster: Roster, workspace: &Path) -> Option<Undoer> {
    let journal = wiring.journal.clone()?;
    let running = Running {
        roster,
        tracker: wiring.tracker.clone(),
        journal: journal.clone(),
        bus: wiring.bus.clone(),
        capture: wiring.capture.clone(),
    };
    let undoer = Undoer::new(journal, workspace, Arc::new(running));
    recover(&undoer).await;
    Some(undoer)
}

/// Completes or takes back an undo that a killed run left half-way.
async fn recover(undoer: &Undoer) {
    match undoer.recover().await {
        Ok(None) => {}
        Ok(Some(Recovered::Finished)) => tracing::info!("an undo that was killed is finished"),
        Ok(Some(Recovered::TakenBack { changed_since })) => {
            let changed = changed_since.join(", ");
            tracing::warn!(changed, "an undo that was killed half-way was taken back");
        }
        Err(error) => tracing::warn!("an undo was killed half-way: {error}"),
    }
}

impl LiveAgents for Running {
    fn settle(&self) -> BoxFuture<'_, Result<(), UndoError>> {
        Box::pin(async {
            let began = Instant::now();
            // An undo of what the journal has so far would leave the rest.
            let late = || Err(UndoError::Journal(AppendError::Late));
            let may_wait = || began.elapsed() < PATIENCE;
            if let Some(capture) = &self.capture {
                while !capture.settle().await {
                    if !may_wait() {
                        return late();
                    }
                }
            }
            let position = self.bus.position();
            loop {
                match self.journal.settled(position).await {
                    Err(AppendError::Late) if may_wait() => {}
                    Err(AppendError::Late) => return late(),
                    // A change that can't be recorded is found on the disk.
                    Ok(()) | Err(_) => return Ok(()),
                }
            }
        })
    }

    fn busy<'a>(&'a self, agent: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let sessions = self.tracker.sessions().await.unwrap_or_default();
            let runs = sessions.iter().any(|it| it.key.agent.as_str() == agent && it.is_running);
            let handle = self.roster.get(&AgentId::new(agent));
            let loads = match handle.filter(|_| !runs) {
                Some(handle) => handle.announced().await.map(|(_, loads)| loads),
                None => None,
            };
            let runs = runs || loads.unwrap_or_default().iter().any(|load| load.is_running);
            runs.then(|| {
                format!(
                    "agent `{agent}` is in a turn: cancel it (`eisen-core agent cancel {agent}`), or wait"
                )
            })
        })
    }

    fn processes(&self) -> Vec<i32> {
        let families = self.roster.handles().into_iter().filter_map(|agent| agent.family());
        families.flat_map(|family| family.processes()).map(u32::cast_signed).collect()
    }

    fn announce(&self, paths: Vec<PathBuf>) -> Box<dyn Send> {
        match &self.capture {
            Some(capture) => Box::new(capture.own_writes(paths)),
            None => Box::new(()),
        }
    }
}

/// The answer to a request that was refused.
pub(super) fn refused(error: &UndoError) -> Refused {
    let code = match error {
        UndoError::Asked(_) | UndoError::NothingUndone { .. } => 404,
        UndoError::TooMany { .. }
        | UndoError::InTheWay { .. }
        | UndoError::Open { .. }
        | UndoError::Busy(_)
        | UndoError::Changed { .. }
        | UndoError::Unfinished => 409,
        _ => 500,
    };
    Refused::new(code, error.to_string())
}
