//! Owns what a team remembers: the journal, what changed, how it is undone, sessions.
//!
//! Must not know agents, the port, the configuration.

#![warn(missing_docs)]

pub mod changes;
pub mod folder;
pub mod journal;
pub mod session;
pub mod undo;

pub use folder::{Folder, FolderDiff, FolderError, Recorded};

use eisen_base::{acp, bus, kept, line, model};
use eisen_sandbox::zone;
#[cfg(test)]
use eisen_testing as tests;
