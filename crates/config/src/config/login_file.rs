//! The files in which agents keep what their users logged in with. None is read.

use std::path::{Path, PathBuf};

use super::confined::place;
use super::expand::expand;
use super::profiles::login_files;

/// Bytes of a file that has a login; an empty list or table is shorter.
const SHORTEST_LOGIN: u64 = 8;

/// Returns the file by which the agent of a built-in profile is logged in.
pub(super) fn login_file(
    profile: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Option<PathBuf> {
    places(login_files(profile), variable).into_iter().find(|file| has_login(file))
}

pub(super) fn places(files: &[String], variable: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    files.iter().filter_map(|file| place(&expand(file, variable).ok()?, variable)).collect()
}

pub(super) fn has_login(file: &Path) -> bool {
    file.metadata().is_ok_and(|file| file.is_file() && file.len() >= SHORTEST_LOGIN)
}
