/// What stood in the way, by the step that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetupStep {
    /// The warden itself could not open the canary's file.
    Bait,
    /// Rights could not be given up.
    Rights,
    /// The ruleset could not be entered.
    Wall,
    /// A file outside could be opened, or its opening failed for another reason.
    Canary,
    /// The filter could not be entered, or its listener not be sent.
    Doorbell,
}

impl SetupStep {
    const ALL: [Self; 5] = [Self::Bait, Self::Rights, Self::Wall, Self::Canary, Self::Doorbell];

    /// One byte, to tell another process.
    pub fn code(self) -> u8 {
        match self {
            Self::Bait => b'b',
            Self::Rights => b'r',
            Self::Wall => b'w',
            Self::Canary => b'c',
            Self::Doorbell => b'd',
        }
    }

    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.code() == code)
    }
}
