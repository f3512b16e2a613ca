//! What a walk of a zone found: the places that get rules, and what the rules cannot hold.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::Grant;

/// What a walk found.
#[derive(Default, Debug)]
pub(super) struct WallRules {
    pub(super) rules: BTreeMap<PathBuf, Granted>,
    /// Denied patterns that may match something below a folder that has a rule.
    pub(super) open: BTreeSet<usize>,
    /// Folders that the zone grants, but for something below.
    pub(super) broken: Vec<PathBuf>,
    /// The walk ended before it was through.
    pub(super) cut: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    pub(super) grant: Grant,
    pub(super) is_folder: bool,
}
