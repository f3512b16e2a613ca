//! Contents of files outside the workspace that journals have, such as agents' logins.

use std::path::Path;

use crate::care::doctor::{Finding, command};
use crate::care::{Garbage, outside_contents};

/// Names the journals that have such contents.
pub(super) fn contents(eisen_dir: &Path) -> Option<Finding> {
    const CHECK: &str = "outside-contents";
    let found: Vec<_> = outside_contents(eisen_dir).into_iter().filter_map(Result::ok).collect();
    if found.is_empty() {
        return None;
    }
    let bytes: u64 = found.iter().map(|garbage| garbage.bytes).sum();
    let place = |garbage: &Garbage| format!("{} ({})", garbage.what, garbage.reason);
    let places: Vec<_> = found.iter().map(place).collect();
    let message = format!(
        "{} MiB of what agents wrote outside their workspaces, perhaps logins: {}",
        bytes.div_ceil(1 << 20),
        places.join(", ")
    );
    Some(Finding::warning(CHECK, message).mended_by(command("gc --outside")))
}
