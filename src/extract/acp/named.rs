//! Maps a file that a command line names to a touch and to an access.

use std::path::PathBuf;

use crate::extract::shell::{self, FileRole};
use crate::extract::{Access, Target};
use crate::model::{Action, Touch, fold, goes_up};

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

/// The access for a zone to judge; None for reads of system folders.
pub(crate) fn judged(named: &shell::NamedFile) -> Option<Access> {
    const SYSTEM: [&str; 13] = [
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib32",
        "/lib64",
        "/libx32",
        "/opt",
        "/etc",
        "/nix",
        "/run/current-system",
        "/System",
        "/Library",
    ];
    let action = if named.role == FileRole::Write { Action::Write } else { Action::Read };
    // Behind a link, `..` resolves elsewhere.
    let of_system =
        !goes_up(&named.path) && SYSTEM.iter().any(|folder| named.path.starts_with(folder));
    (action == Action::Write || !of_system)
        .then(|| Access { path: named.path.clone(), target: Target::File(action) })
}
