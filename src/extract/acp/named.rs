//! A file that a command line names: what that tells, and what a zone judges of it.

use std::path::PathBuf;

use crate::extract::shell::{self, FileRole};
use crate::extract::{Access, Target};
use crate::model::{Action, Touch, fold, goes_up};

/// What a command plainly did with a file; None where it is a guess.
pub(crate) fn plain_touch(named: &shell::NamedFile) -> Option<(PathBuf, Touch)> {
    let touch = match named.role {
        FileRole::Read => Touch::Read,
        FileRole::Write => Touch::Write,
        FileRole::Search => Touch::Search,
        FileRole::Argument => return None,
    };
    named.plain.then(|| (fold(&named.path), touch))
}

/// The access that a zone judges; None for reading what the system keeps for all.
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
    // Behind a link, `..` leads elsewhere than its text says.
    let of_system =
        !goes_up(&named.path) && SYSTEM.iter().any(|folder| named.path.starts_with(folder));
    (action == Action::Write || !of_system)
        .then(|| Access { path: named.path.clone(), target: Target::File(action) })
}
