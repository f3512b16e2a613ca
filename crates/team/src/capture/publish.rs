//! Makes the record of a settled change.

use std::sync::Arc;

use super::change::Settled;
use super::scope::CaptureScope;
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
    FileChange {
        kind,
        path: scope.name(&settled.path),
        from: settled.from.map(|from| scope.name(&from)),
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
