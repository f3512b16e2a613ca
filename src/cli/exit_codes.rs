//! The exit codes of runs.

use crate::runs::RunState;

/// With `--strict-exit`: the turn ended well, and something that the agent meant to do was refused.
pub(super) const REFUSED: u8 = 7;
/// Its time was up, or that of a wait for it.
pub(super) const TIMED_OUT: u8 = 124;
/// Nothing could be started.
pub(super) const NOT_STARTED: u8 = 125;
/// Ended by Ctrl-C.
pub(super) const INTERRUPTED: u8 = 130;
/// Ended by another signal.
pub(super) const KILLED: u8 = 137;

/// The exit code of a run that has ended.
pub(super) fn exit_code(state: &RunState) -> u8 {
    state.exit_code.unwrap_or(1)
}
