//! The changes of files in a team, read from its journal: those of an agent, session or turn, with
//! changes of the same files by others; their contents; and how a change is taken back.
//!
//! ```text
//! journal ─▶ parse (payload → FileChange) ─▶ select (own, and of others on the same paths)
//!                     │                        ├▶ revert (latest to earliest, each by merge3)
//!                     │                        └▶ net (own alone) ─▶ patch, stat
//!                     └▶ follow (one file) ─▶ blame ─▶ provenance ─▶ agent_trace, git_ai
//! ```
//!
//! Reads a [`journal::Store`](crate::journal::Store) and bytes that it is given. Knows no disk, no
//! running team and no caller.

mod agent_trace;
mod asked;
mod blame;
mod contents;
mod entry;
mod event;
mod follow;
mod git_ai;
mod lost;
mod merge;
mod net;
mod patch;
mod provenance;
mod quote;
mod revert;
mod select;
mod stat;
mod state;

#[cfg(test)]
mod tests;

pub use agent_trace::{Traced, agent_trace};
pub use asked::{AskError, Asked};
pub use blame::{Blame, BlameError, LineOrigin, blame};
pub use contents::{ContentSource, Missing, content_of, is_there};
pub use entry::{ClashReason, EntrySource, FileEntry};
pub use event::{By, ChangeCause, FileChange, Operation};
pub use follow::{FileHistory, follow};
pub use git_ai::AuthorshipNote;
pub use lost::loses;
pub use merge::{Merge, added_lines, is_binary, merge3};
pub use net::{Net, NetChange, net};
pub use patch::{FilePatch, LeftOut, PatchLine, PatchLines, not_in_patch, patch, unified};
pub use provenance::{Provenance, provenance};
pub use revert::{Clash, Restored, Reverted, Tree, revert};
pub use select::{ChangeScope, ChangeSet, SelectError, first, select, select_where};
pub use stat::{StatLine, stat};
pub use state::{FileKind, FileState, same};
