//! Why a request is refused, by the team or by the port.

/// A refusal, with a code of the wire (404, 409, …).
#[derive(Clone, Debug)]
pub struct Refused {
    pub code: u16,
    pub message: String,
    pub kind: RefusalKind,
}

/// The meaning of a refused prompt for its task.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum RefusalKind {
    #[default]
    Other,
    /// The prompt was cancelled before it was sent.
    Withdrawn,
    /// The agent ended, or its team.
    Gone,
}

impl Refused {
    pub fn new(code: u16, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), kind: RefusalKind::default() }
    }
}
