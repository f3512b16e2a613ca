//! The path of a file in the workspace or outside of it.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path relative to the workspace, or absolute outside of it; without `.` and `..`. Serialized as
/// base64 of its bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct FilePath(PathBuf);

impl FilePath {
    /// None if it is not such a path.
    pub(super) fn new(path: PathBuf) -> Option<Self> {
        let names = path.strip_prefix("/").unwrap_or(&path);
        let is_plain = names.components().all(|name| matches!(name, Component::Normal(_)));
        let is_named = !names.as_os_str().is_empty() && !path.as_os_str().as_bytes().contains(&0);
        (is_plain && is_named).then_some(Self(path))
    }

    pub(super) fn as_path(&self) -> &Path {
        &self.0
    }

    /// Whether it is a repository's own folder, or in it.
    pub(super) fn is_of_git(&self) -> bool {
        self.0.iter().any(|name| name.eq_ignore_ascii_case(".git"))
    }

    /// Whether it is outside the workspace.
    pub(super) fn is_outside(&self) -> bool {
        self.0.is_absolute()
    }

    /// The folder above; None above the first name.
    pub(super) fn parent(&self) -> Option<Self> {
        self.0.parent().and_then(|parent| Self::new(parent.to_owned()))
    }

    /// Its folders, the nearest first.
    pub(super) fn parents(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(self.parent(), Self::parent)
    }

    pub(super) fn join(&self, name: &str) -> Self {
        Self(self.0.join(name))
    }

    /// A name in the workspace's folder, or in the root folder for a path outside.
    pub(super) fn beside_first(&self, name: &str) -> Self {
        Self(if self.is_outside() { Path::new("/").join(name) } else { name.into() })
    }

    pub(super) fn depth(&self) -> usize {
        self.0.iter().count()
    }

    pub(super) fn shown(&self) -> ShownPath {
        let is_text = self.0.to_str().is_some();
        let bytes = (!is_text).then(|| STANDARD.encode(self.0.as_os_str().as_bytes()));
        ShownPath { path: self.to_string(), path_bytes: bytes }
    }
}

/// A path as JSON has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShownPath {
    /// Relative to the workspace, absolute outside. Not exact if it is not UTF-8.
    pub path: String,
    /// Base64, of a path that is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<String>,
}

impl std::fmt::Display for FilePath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.to_string_lossy())
    }
}

impl Serialize for FilePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(self.0.as_os_str().as_bytes()))
    }
}

impl<'de> Deserialize<'de> for FilePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
        let path = PathBuf::from(OsString::from_vec(bytes));
        Self::new(path).ok_or_else(|| D::Error::custom("not a path of the workspace"))
    }
}
