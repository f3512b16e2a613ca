//! How an agent stands with its budgets: told to its relay, and shown as its problem.

use std::time::Duration;

use tokio::sync::watch;

use crate::budget::BudgetStanding;
use crate::proxy::RelayHandle;

/// How often it is looked whether an agent ends its turn for a budget.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Returns the problem that any of them has.
pub(super) fn problem(
    one: &mut watch::Receiver<Option<String>>,
    other: &mut watch::Receiver<Option<String>>,
    standing: &mut watch::Receiver<BudgetStanding>,
) -> Option<String> {
    let refusal = standing.borrow_and_update().refusal.as_ref().map(ToString::to_string);
    let one = one.borrow_and_update().clone();
    let other = other.borrow_and_update().clone();
    refusal.or(one).or(other)
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
