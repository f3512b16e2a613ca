//! The values of `--on-violation`.

use clap::ValueEnum;

use crate::model::OnViolation;

#[derive(ValueEnum, Clone, Copy, Debug)]
pub(super) enum Violation {
    /// The access is reported as blocked, with status `observed`
    Report,
    /// Its turn is cancelled, too
    Cancel,
    /// The agent is stopped, too
    Stop,
}

impl From<Violation> for OnViolation {
    fn from(violation: Violation) -> Self {
        match violation {
            Violation::Report => Self::Report,
            Violation::Cancel => Self::Cancel,
            Violation::Stop => Self::Stop,
        }
    }
}
