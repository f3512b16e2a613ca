use std::sync::Arc;

use super::{SessionKey, TimestampMs};

/// Two agents at the same symbol, as it was found.
#[derive(Clone, PartialEq, Debug)]
pub struct Overlap {
    pub kind: OverlapKind,
    /// Sessions of two agents: where one of them edits, that one first, else by their names.
    pub between: [SessionKey; 2],
    /// The file's path where its symbols are not known.
    pub symbol: Arc<str>,
    pub path: Arc<str>,
    /// Symbols that call it, and in whose context they are.
    pub callers: Vec<(Arc<str>, SessionKey)>,
    pub timestamp_ms: TimestampMs,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OverlapKind {
    /// Both edited it.
    Edit,
    /// One edited what the other has in its context.
    Context,
}

impl OverlapKind {
    pub const ALL: [Self; 2] = [Self::Edit, Self::Context];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Edit => "edit",
            Self::Context => "context",
        }
    }
}
