//! Whether a plugin can be used, seen from outside: what it does wrong ends a child of its own.

use std::path::Path;

use super::child::Child;
use crate::process::Launcher;

/// Loads a library in a child, and has it make an instance. Returns whether it can hold a zone by
/// what its agent asks for; the error says in a sentence what keeps it from being used. In the child
/// it may do what it may under a team: with `confined` nothing but read libraries.
pub async fn try_out(
    launcher: Launcher,
    library: &Path,
    config: &str,
    confined: bool,
) -> Result<bool, String> {
    let mut child = Child::new(launcher, library.to_owned(), config.to_owned());
    child.confined = confined;
    child.try_out().await.map_err(|error| error.to_string())
}
