//! Maps a file that a command line names to a touch and to an access.

use std::path::{Path, PathBuf};

use crate::extract::shell::{self, FileRole};
use crate::extract::{Access, Target};
use crate::model::{Action, Touch, fold, is_of_system, within};

/// The touch of a file, if the command line is clear about it.
pub(crate) fn plain_touch(named: &shell::NamedFile) -> Option<(PathBuf, Touch)> {
    let touch = match named.role {
        FileRole::Read => Touch::Read,
        FileRole::Write => Touch::Write,
        FileRole::Search => Touch::Search,
        FileRole::Argument => return None,
    };
    named.plain.then(|| (fold(&named.path), touch))
}

/// The access for a zone to judge; None for reads of the system's own places outside the workspace.
pub(crate) fn judged(named: &shell::NamedFile, workspace: &Path) -> Option<Access> {
    let action = if named.role == FileRole::Write { Action::Write } else { Action::Read };
    let of_system = is_of_system(&named.path) && within(workspace, &fold(&named.path)).is_none();
    (action == Action::Write || !of_system)
        .then(|| Access { path: named.path.clone(), target: Target::File(action) })
}
