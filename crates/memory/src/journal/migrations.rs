//! The schema, version by version. A file is brought from any earlier version to the last one in
//! one transaction.

use rusqlite::Connection;

/// One step for each version, the first from an empty file.
const STEPS: &[&str] = &[
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
];

/// The version that this program writes.
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "few versions")]
pub const VERSION: i32 = STEPS.len() as i32;

/// Brings a journal from `version` to the last.
pub(super) fn migrate(connection: &mut Connection, version: i32) -> rusqlite::Result<()> {
    migrate_to(connection, version, VERSION)
}

pub(super) fn migrate_to(
    connection: &mut Connection,
    version: i32,
    last: i32,
) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    let from = usize::try_from(version).unwrap_or(0);
    let to = usize::try_from(last).unwrap_or(0);
    for step in STEPS.iter().take(to).skip(from) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", last)?;
    transaction.commit()
}
