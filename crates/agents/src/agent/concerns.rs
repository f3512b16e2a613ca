//! How an agent stands: its budgets are told to its relay, and its problems are shown.

use std::sync::Arc;
use std::time::Duration;

use eisen_base::task;
use tokio::sync::watch;

use crate::budget::BudgetStanding;
use crate::proxy::{RelayHandle, Rules};

/// How often it is looked whether an agent ends its turn for a budget.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// How often it is looked whether the workspace is still the same.
const LOOK_AT_WORKSPACE: Duration = Duration::from_millis(500);

/// The problems of a run.
pub(super) struct Concerns {
    others: [watch::Receiver<Option<String>>; 4],
    /// With its budgets.
    standing: watch::Receiver<BudgetStanding>,
}

impl Concerns {
    pub(super) fn new(
        others: [watch::Receiver<Option<String>>; 4],
        standing: watch::Receiver<BudgetStanding>,
    ) -> Self {
        Self { others, standing }
    }

    /// Waits for a change; returns the problem to show: with a budget, else the first of the others.
    pub(super) async fn changed(&mut self) -> Option<String> {
        let ([one, two, three, four], standing) = (&mut self.others, &mut self.standing);
        tokio::select! {
            Ok(()) = one.changed() => {}
            Ok(()) = two.changed() => {}
            Ok(()) = three.changed() => {}
            Ok(()) = four.changed() => {}
            Ok(()) = standing.changed() => {}
            else => std::future::pending().await,
        }
        let refusal = standing.borrow_and_update().refusal.as_ref().map(ToString::to_string);
        // All of them are seen by this.
        let others = self.others.each_mut().map(|other| other.borrow_and_update().clone());
        refusal.or_else(|| others.into_iter().flatten().next())
    }
}

/// Says when the workspace is not there any more, or another folder in its place.
pub(super) async fn watch_workspace(
    rules: watch::Receiver<Rules>,
    problem: watch::Sender<Option<String>>,
) {
    loop {
        tokio::time::sleep(LOOK_AT_WORKSPACE).await;
        let zone = Arc::clone(&rules.borrow().zone);
        let looked = task::spawn_blocking(move || zone.workspace_moved());
        let Ok(moved) = looked.await else { return };
        problem.send_if_modified(|known| {
            let is_new = *known != moved;
            *known = moved;
            is_new
        });
    }
}

/// Has the relay end turns for which a budget has no more, and the agent, if it goes on all the same.
pub(super) async fn enforce(mut standing: watch::Receiver<BudgetStanding>, relay: RelayHandle) {
    standing.mark_changed();
    loop {
        let is_cut = standing.borrow().cut.is_some();
        tokio::select! {
            changed = standing.changed() => {
                if changed.is_err() {
                    return;
                }
                let now = standing.borrow_and_update().clone();
                relay.stand(now).await;
            }
            () = tokio::time::sleep(LOOK_AGAIN), if is_cut => relay.overdue().await,
        }
    }
}
