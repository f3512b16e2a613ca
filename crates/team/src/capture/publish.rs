//! Makes the record of a settled change.

use std::sync::Arc;

use super::change::Settled;
use super::scope::{CaptureScope, name_in};
use crate::journal::Journal;
use crate::model::{FileCause, FileChange, FileChangeKind, SeenBy};

pub(super) fn change_of(
    settled: Settled,
    cause: FileCause,
    ignored: bool,
    scope: &CaptureScope,
    journal: &Journal,
) -> FileChange {
    let kind = match (&settled.from, &settled.before, &settled.after) {
        (Some(_), ..) => FileChangeKind::Rename,
        (None, None, _) => FileChangeKind::Create,
        (None, Some(_), None) => FileChangeKind::Delete,
        (None, Some(_), Some(_)) => FileChangeKind::Write,
    };
    let author = settled.author;
    let root = scope.root(&settled.path);
    FileChange {
        kind,
        path: scope.name(&settled.path),
        // One that comes from another worktree has its whole path.
        from: settled.from.map(|from| name_in(&root, &from)),
        tree: Some(root).filter(|root| **root != *scope.workspace()),
        before: settled.before,
        after: settled.after,
        by: author.as_ref().map_or(SeenBy::Watcher, |author| author.by),
        cause,
        pid: author.as_ref().and_then(|author| author.process),
        tool_call: author.and_then(|author| author.tool_call),
        contested: settled.contested,
        changed_ns: settled.changed_ns,
        stamps: settled.stamps,
        ignored,
        denied: settled.denied,
        contents: Arc::new(journal.contents(settled.contents)),
    }
}
