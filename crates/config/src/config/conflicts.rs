//! `[conflicts]`: what becomes of a write to a file that another agent has locked.

use std::time::Duration;

use super::read::Table;
use crate::model::ConflictStrategy;

/// The longest time that a lock outlasts its holder's work, in seconds.
const HOUR: u64 = 60 * 60;

/// How conflicts are handled; a team without the table looks for none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Conflicts {
    pub strategy: ConflictStrategy,
    /// How long a lock outlasts its holder's last sign of work.
    pub lock: Duration,
}

/// Reads `[conflicts]`, if it is there.
pub(super) fn conflicts(root: &Table<'_>) -> Option<Conflicts> {
    let is_there = root.place_of("conflicts").is_some();
    let conflicts = root.section("conflicts", "conflicts", |table| Conflicts {
        strategy: table.choice("strategy"),
        lock: table.seconds("lock_s", 1..=HOUR, 30),
    });
    is_there.then_some(conflicts)
}
