//! A zone as the kernel holds it: judged by real paths alone, with what a process may reach of the
//! rest of the machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Denied, Zone};
use crate::model::Action;

/// What a confined process may reach beside its zone.
#[derive(Clone, Debug)]
pub struct Reach {
    pub confine: Confine,
    /// Its private TMPDIR, granted whole.
    pub private: PathBuf,
    /// Absolute paths that its launch profile needs; each with all below it. Only
    /// [`Confine::Strict`] asks for them.
    pub readable: Vec<PathBuf>,
    pub writable: Vec<PathBuf>,
    /// Absolute patterns of the sockets outside that it may connect to.
    pub sockets: Vec<String>,
}

/// What lies outside the workspace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Confine {
    /// As usual for the user, but `$EISEN_DIR` and what is denied.
    Workspace,
    /// The system's folders for reading, the profile's needs, and what the zone names.
    Strict,
}

/// A zone with its reach.
#[derive(Debug)]
pub struct Bounds {
    zone: Arc<Zone>,
    reach: Reach,
}

/// What the kernel's path rules hold of a zone.
#[derive(Clone, Debug)]
pub struct Wall {
    pub rules: Vec<Rule>,
    pub patterns: Vec<Held>,
}

/// Grants a path, and everything below it if it is a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Real.
    pub path: PathBuf,
    pub grant: Grant,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Grant {
    /// Folders may be listed.
    List,
    /// Files may be read and executed, folders listed.
    Read,
    /// Also existing files may be written and truncated, and sockets be made. What makes, moves or
    /// removes a name is the doorbell's.
    Write,
    /// All that the kernel can grant.
    Whole,
}

/// How well path rules hold one pattern of a zone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// `allowed`, `shared`, `denied` or `readable`.
    pub list: &'static str,
    pub pattern: String,
    pub how: How,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum How {
    Exact,
    /// The rules grant less than the pattern: what is lost, in words.
    Narrowed(String),
    /// No rule holds it, only the doorbell: why, in words.
    Doorbell(String),
}

impl Bounds {
    pub fn new(zone: Arc<Zone>, reach: Reach) -> Result<Self, globset::Error> {
        Ok(Self { zone, reach })
    }

    pub fn zone(&self) -> &Arc<Zone> {
        &self.zone
    }

    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Judges an access to a real path: absolute, free of links, `.` and `..`. Does not ask the
    /// disk.
    pub fn judge(&self, _real: &Path, _action: Action) -> Result<(), Denied> {
        Ok(())
    }

    /// Whether a real path lies in the workspace (or is it).
    pub fn is_inside(&self, real: &Path) -> bool {
        real.starts_with(self.zone.workspace())
    }

    /// Whether a socket at this real path may be connected to.
    pub fn may_connect(&self, _real: &Path) -> bool {
        false
    }

    /// Compiles the path rules: for every file that exists now they allow nothing that
    /// [`Bounds::judge`] denies. Reads the disk.
    pub fn wall(&self) -> Wall {
        Wall { rules: Vec::new(), patterns: Vec::new() }
    }
}
