//! Keeps a journal within its quotas while its team runs: announces a removal, and begins it a
//! minute later, a little between two batches.

use std::path::Path;

use rusqlite::Connection;
use tokio::sync::watch;

use crate::journal::event::{EventType, NewEvent, Place};
use crate::journal::prune::Prune;
use crate::journal::prune::candidates::Team;
use crate::journal::quotas::{Excess, Quotas};
use crate::model::now_ms;

pub(super) struct Upkeep {
    quotas: Quotas,
    stage: Stage,
    /// The announced removal, or the reason that nothing can go, for people.
    notice: watch::Sender<Option<String>>,
}

enum Stage {
    Idle,
    /// A removal was announced, and begins at the next tick.
    Announced,
    /// Removes the leftovers of an earlier removal.
    Resuming(Prune),
    Removing(Excess, Prune),
}

impl Upkeep {
    pub(super) fn new(quotas: Quotas, notice: watch::Sender<Option<String>>) -> Self {
        Self { quotas, stage: Stage::Idle, notice }
    }

    /// Resumes a removal that was interrupted.
    pub(super) fn resume(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let left = Prune::of_leftovers(connection, Team::Running)?;
        self.stage = left.map_or(Stage::Idle, Stage::Resuming);
        Ok(())
    }

    /// Whether there is something to do between two batches.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.stage, Stage::Resuming(_) | Stage::Removing(..))
    }

    /// Checks the quotas: announces a removal, or begins the announced one.
    pub(super) fn tick(&mut self, connection: &Connection, path: &Path) -> rusqlite::Result<()> {
        if self.is_busy() {
            return Ok(());
        }
        let was_announced = matches!(self.stage, Stage::Announced);
        let excess = self.quotas.excess(connection, Team::Running, now_ms())?;
        self.stage = match excess {
            Some(excess) if was_announced => {
                let removal = excess.removal(Team::Running);
                Stage::Removing(excess, removal)
            }
            Some(excess) => {
                let what = format!(
                    "deletes in a minute: {excess}; `eisen-core journal pin` keeps a session"
                );
                self.announce(path, Some(what));
                Stage::Announced
            }
            None => {
                let stuck = self.quotas.overflow(connection)?;
                self.announce(path, stuck.map(|why| format!("is larger than it may be: {why}")));
                Stage::Idle
            }
        };
        Ok(())
    }

    /// Removes a little; returns the event that records a removal once it is done.
    pub(super) fn step(
        &mut self,
        connection: &mut Connection,
        path: &Path,
    ) -> rusqlite::Result<Option<NewEvent>> {
        let (Stage::Resuming(removal) | Stage::Removing(_, removal)) = &mut self.stage else {
            return Ok(None);
        };
        if removal.step(connection)? {
            return Ok(None);
        }
        let pruned = removal.pruned;
        let done = std::mem::replace(&mut self.stage, Stage::Idle);
        let Stage::Removing(excess, _) = done else { return Ok(None) };
        self.notice.send_replace(None);
        tracing::warn!(
            sessions = pruned.sessions,
            events = pruned.events,
            contents = pruned.contents,
            "the journal {} deleted {excess}",
            path.display()
        );
        Ok(Some(NewEvent::new(Place::Team, EventType::PRUNE, &excess.event(pruned))))
    }

    /// Logs a new notice once, and keeps it for readers.
    fn announce(&self, path: &Path, what: Option<String>) {
        let notice = what.map(|what| format!("the journal {} {what}", path.display()));
        let is_new = *self.notice.borrow() != notice;
        if let Some(notice) = notice.as_ref().filter(|_| is_new) {
            tracing::warn!("{notice}");
        }
        self.notice.send_replace(notice);
    }
}
