//! The state of a file as an event names it: a hash instead of the content.

use serde::{Deserialize, Serialize};

/// The kind of a file, by its name in the journal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file; its content is its bytes.
    File,
    /// Its content is its target.
    Symlink,
    /// A folder has no content.
    Folder,
    /// A kind of a later version.
    #[serde(other)]
    Other,
}

impl FileKind {
    /// The bits of a mode that are restored: no file is made that sets the user or group of whoever
    /// executes it.
    pub fn mode_bits(self) -> u32 {
        if self == Self::File { 0o1777 } else { 0o7777 }
    }
}

/// A file at one time. An `Option` of it is None if there is no file.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Deserialize, Serialize)]
pub struct FileState {
    /// BLAKE3 of the content; None for a folder, and if it is not known.
    #[serde(default)]
    pub hash: Option<String>,
    /// Bytes.
    #[serde(default)]
    pub size: u64,
    /// The permissions, without the type of the file.
    #[serde(default)]
    pub mode: u32,
    /// The kind, which decides what the content is.
    pub kind: FileKind,
    /// Whether the journal was given the content.
    #[serde(default)]
    pub stored: bool,
}

impl FileState {
    /// Whether two states have the same content, whatever their modes.
    pub fn has_content_of(&self, other: &Self) -> bool {
        let is_known = self.kind == FileKind::Folder || self.hash.is_some();
        self.kind == other.kind && self.hash == other.hash && is_known
    }

    /// The bits of `mode` that are compared and restored, by [`FileKind::mode_bits`].
    pub fn permissions(&self) -> u32 {
        self.mode & self.kind.mode_bits()
    }
}

/// Whether two states, either of which may be no file, are the same.
pub fn same(one: Option<&FileState>, other: Option<&FileState>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            let same_mode =
                one.kind == FileKind::Symlink || one.permissions() == other.permissions();
            one.has_content_of(other) && same_mode
        }
        _ => false,
    }
}
