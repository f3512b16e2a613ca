//! Writes of files that another agent has locked: what the gate asks of the locks.

use std::sync::Arc;

use super::Gatekeeping;
use super::gatekeeper::{GateAction, HeldRequest};
use crate::conflicts::{Refused, Way, WriteGate, is_locked_ever};
use crate::extract::Refusal;
use crate::model::{Action, Activity, ActivityKind, Source, Touch, Via, wire_real};
use crate::zone::Permit;

impl Gatekeeping {
    /// Notes what a request reads, and locks the file that it writes for others. If another agent has
    /// it locked, returns what becomes of the request instead of the request.
    pub(super) fn contend(
        &self,
        held: HeldRequest,
        granted: &[Permit],
    ) -> Result<HeldRequest, Box<GateAction>> {
        let Some(conflicts) = self.conflicts.as_ref().filter(|_| held.ask.via == Via::Fs) else {
            return Ok(held);
        };
        let Some(permit) = granted.first() else { return Ok(held) };
        let path: Arc<str> = wire_real(self.rules.borrow().zone.workspace(), &permit.real).into();
        if !is_locked_ever(&path) {
            return Ok(held);
        }
        let session = &held.ask.session;
        let by_host = self.permits.as_ref().is_some_and(|permits| !permits.is_editors(session));
        if permit.action == Action::Read {
            // The team's own client says what it read.
            if !by_host {
                // Before the client reads: what is written meanwhile is not known by it.
                conflicts.read(session, &path);
            }
            return Ok(held);
        }
        let way = if by_host { Way::Host } else { Way::Other { may_wait: true } };
        match conflicts.begin_write(session, &path, way) {
            WriteGate::Passes => Ok(held),
            WriteGate::Waits(wait) => Err(Box::new(GateAction::AwaitLock(held, wait))),
            WriteGate::Refused(refused) => {
                Err(Box::new(GateAction::Refuse(held.ask, refusal(refused))))
            }
        }
    }

    /// Takes in what a session read, and the end of its turn.
    pub(super) fn observe(&self, activity: &Activity) {
        let Some(conflicts) = &self.conflicts else { return };
        match &activity.kind {
            // Requests were judged; and what the kernel saw is more exact than what an agent reports.
            ActivityKind::Touched { source: Source::Request | Source::Kernel, .. } => {}
            ActivityKind::Touched { source: Source::Tool, .. }
                if self.rules.borrow().bounds.is_some() => {}
            ActivityKind::Touched { path, touch: Touch::Read | Touch::UserProvided, .. } => {
                conflicts.read(&activity.session, path);
            }
            ActivityKind::TurnEnded { .. } => conflicts.turn_over(&activity.session),
            _ => {}
        }
    }
}

/// The refusal of a write, for the agent.
pub(super) fn refusal(refused: Refused) -> Refusal {
    let Refused { id, path, holder, message } = refused;
    Refusal::Locked { conflict: id, path, holder, message }
}
