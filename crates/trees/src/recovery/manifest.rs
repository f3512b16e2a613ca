//! Describes a recovery: `manifest.json` in its commit.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use nix::sys::stat::SFlag;
use serde::{Deserialize, Serialize};

/// The version of this form.
pub(crate) const VERSION: u32 = 1;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) version: u32,
    pub(crate) branch: String,
    /// The commit of the branch; None: it had none.
    pub(crate) tip: Option<String>,
    /// The commit that the worktree was at; None: it had none.
    pub(crate) head: Option<String>,
    pub(crate) files: Vec<SavedFile>,
    /// Files that git has and that were not there.
    pub(crate) missing: Vec<SavedPath>,
    /// Folders without files.
    pub(crate) folders: Vec<SavedPath>,
    /// Files of git's own folder of the worktree.
    pub(crate) own: Vec<SavedFile>,
    pub(crate) left_out: Vec<LeftOut>,
}

/// A path relative to its top, as text or, where it is none, in hexadecimal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SavedPath {
    Text(String),
    Hex(String),
}

impl SavedPath {
    pub(crate) fn of(path: &Path) -> Self {
        if let Some(text) = path.to_str() {
            return Self::Text(text.to_owned());
        }
        let mut hex = String::new();
        for byte in path.as_os_str().as_bytes() {
            let _ = write!(hex, "{byte:02x}");
        }
        Self::Hex(hex)
    }

    /// The path; None where it would lead out of its top.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let path = match self {
            Self::Text(text) => PathBuf::from(text),
            Self::Hex(hex) => {
                let bytes = (0..hex.len()).step_by(2);
                let bytes = bytes.map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok());
                OsString::from_vec(bytes.collect::<Option<_>>()?).into()
            }
        };
        let is_plain = path.components().all(|it| matches!(it, std::path::Component::Normal(_)));
        (is_plain && !path.as_os_str().is_empty()).then_some(path)
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct SavedFile {
    pub(crate) path: SavedPath,
    /// Kind and permissions, as `stat` has them.
    pub(crate) mode: u32,
    /// Seconds since 1970, and nanoseconds.
    pub(crate) changed: (i64, i64),
    #[serde(default)]
    pub(crate) bytes: u64,
    /// The name of the blob with its bytes, or with the place that a link names.
    pub(crate) object: String,
}

impl SavedFile {
    pub(crate) fn is_link(&self) -> bool {
        self.mode & SFlag::S_IFMT.bits() == SFlag::S_IFLNK.bits()
    }
}

/// Something that a recovery does not have.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LeftOut {
    pub path: String,
    pub bytes: u64,
    pub why: WhyLeftOut,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhyLeftOut {
    /// A folder that builds fill, and that git ignores.
    Build,
    /// A link to the main worktree, which has the files.
    Link,
    /// A copy from the main worktree, as it came.
    Copy,
    /// A pipe, a socket or a device: it has no content.
    Special,
}

impl WhyLeftOut {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Build => "builds fill it",
            Self::Link => "a link to the main worktree",
            Self::Copy => "a copy from the main worktree, unchanged",
            Self::Special => "it has no content",
        }
    }
}
