//! A stage for the real binary: a folder with a workspace, a configuration and an `EISEN_DIR`, and
//! clients that wait for what they expect. Nothing sleeps: a wait ends with the event, or fails
//! after [`PATIENCE`] with all that came instead.

mod editor;
mod held;
mod nats;
mod peer;
mod program;
mod puppet;
mod running;
mod schema;
mod stage;

use std::time::{Duration, Instant};

pub(crate) use editor::Editor;
pub(crate) use held::Held;
pub(crate) use nats::Nats;
pub(crate) use peer::{Lines, Peer, Port, has};
pub(crate) use program::{cargo, program};
pub(crate) use puppet::Puppet;
pub(crate) use running::{Ended, Program, Team, run};
pub(crate) use schema::assert_server_line;
pub(crate) use stage::{AgentTable, Stage, agent};

/// Never reached by a program that does what is tested.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);

/// Between two looks of a test at what it waits for: other tests run meanwhile.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// Waits until `is_so` holds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::park_timeout(BETWEEN_LOOKS);
    }
}

/// The program under test.
pub(crate) const EISEN_CORE: &str = env!("CARGO_BIN_EXE_eisen-core");
