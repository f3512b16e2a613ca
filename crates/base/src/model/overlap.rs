//! Overlaps of two agents at one symbol.

use std::sync::Arc;

use super::named::named;
use super::{SessionKey, TimestampMs};

/// Two agents work on the same symbol.
#[derive(Clone, PartialEq, Debug)]
pub struct Overlap {
    /// Whether both edited the symbol, or one edited a symbol in the other's context.
    pub kind: OverlapKind,
    /// Sessions of two agents: the editing one first; sorted if both edit.
    pub between: [SessionKey; 2],
    /// The file's path if its symbols are not known.
    pub symbol: Arc<str>,
    /// The file of the symbol, relative to the workspace.
    pub path: Arc<str>,
    /// Symbols that call it, with the sessions that have them in context.
    pub callers: Vec<(Arc<str>, SessionKey)>,
    /// The time when one of the two last accessed the file.
    pub timestamp_ms: TimestampMs,
}

named! {
    /// How two agents meet on the map.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    pub enum OverlapKind {
        /// Both edited it.
        Edit = "edit",
        /// One edited a symbol in the other's context.
        Context = "context",
    }
}
