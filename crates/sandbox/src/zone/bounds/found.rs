//! The result of walking a zone: the paths that get rules, and the parts that rules cannot enforce.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::Grant;

/// The result of a walk.
#[derive(Default, Debug)]
pub(super) struct WallRules {
    pub(super) rules: BTreeMap<PathBuf, Granted>,
    /// Denied patterns that may match a path below a folder that has a rule.
    pub(super) open: BTreeSet<usize>,
    /// Folders that the zone grants except for something below.
    pub(super) broken: Vec<PathBuf>,
    /// The walk of the zone reached its limit.
    pub(super) cut: bool,
    /// The walk outside the workspace reached its limit.
    pub(super) unsearched: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    pub(super) grant: Grant,
    pub(super) is_folder: bool,
}
