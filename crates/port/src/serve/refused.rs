//! Why a request is refused, by the team or by the port.

use eisen_base::task;
use std::fmt::Display;

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

    /// The refusal of a request that makes no sense.
    pub fn wrong(error: impl Display) -> Self {
        Self::new(400, error.to_string())
    }

    /// The refusal for an error that is not the client's.
    pub fn fault(error: impl Display) -> Self {
        Self::new(500, error.to_string())
    }
}

/// Runs work that blocks, such as access to files, on a thread of its own. It goes on if the returned future is dropped.
pub async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refused> {
    task::spawn_blocking(work).await.map_err(Refused::fault)
}
