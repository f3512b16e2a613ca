//! The surroundings on which a file's meaning depends, besides its text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Plugin;
use super::candidate::TierCandidate;

pub(super) type Lookup = dyn Fn(&str) -> Option<String>;

/// Tries a plugin: whether it can enforce a zone, or why it cannot be used.
pub type TryOut = dyn Fn(&Plugin) -> Result<bool, String>;

/// The environment that a file's meaning depends on.
pub struct Surroundings {
    /// Looks up an environment variable.
    pub(super) variable: Box<Lookup>,
    /// The running executable, which the command `eisen-core` stands for.
    pub(super) program: PathBuf,
    pub(super) eisen_dir: PathBuf,
    pub(super) try_out: Box<TryOut>,
    /// Which candidate an agent takes, by its id; the first of its tier if it is not there.
    pub(super) taken: BTreeMap<String, TierCandidate>,
}

impl Surroundings {
    pub(super) fn of_process(eisen_dir: &Path, try_out: Box<TryOut>) -> Self {
        Self {
            try_out,
            taken: BTreeMap::new(),
            variable: Box::new(|name| std::env::var(name).ok()),
            // Without /proc the name is looked up on PATH, as the shell did.
            program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("eisen-core")),
            eisen_dir: std::path::absolute(eisen_dir).unwrap_or_else(|_| eisen_dir.to_owned()),
        }
    }
}
