//! The steps of confining a process, by which a child reports a failure.

use serde::{Deserialize, Serialize};

/// The step that failed.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub enum SetupStep {
    /// The warden could not open the canary itself.
    Bait,
    /// Capabilities could not be dropped.
    Rights,
    /// The ruleset could not be entered.
    Wall,
    /// The canary could be opened, or opening it failed unexpectedly.
    Canary,
    /// The filter could not be entered, or its listener could not be sent.
    Doorbell,
}

impl SetupStep {
    const ALL: [Self; 5] = [Self::Bait, Self::Rights, Self::Wall, Self::Canary, Self::Doorbell];

    /// The byte that stands for the step in a report.
    pub fn code(self) -> u8 {
        match self {
            Self::Bait => b'b',
            Self::Rights => b'r',
            Self::Wall => b'w',
            Self::Canary => b'c',
            Self::Doorbell => b'd',
        }
    }

    /// The step that has this [`SetupStep::code`]; None if no step has it.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.code() == code)
    }
}
