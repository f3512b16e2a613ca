//! The three forms of a pattern that is proposed.

use std::fmt;

use crate::zone::pattern_of;

/// A pattern of a zone. Paths are relative to the workspace; the empty folder is the workspace itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FoundPattern {
    /// All below a folder.
    Below(String),
    /// The files in a folder.
    In(String),
    File(String),
}

impl FoundPattern {
    /// Whether it matches a path.
    pub fn has(&self, path: &str) -> bool {
        match self {
            Self::File(file) => file == path,
            Self::In(folder) => below(folder, path).is_some_and(|rest| !rest.contains('/')),
            Self::Below(folder) => folder == path || below(folder, path).is_some(),
        }
    }

    /// The path that it stands for.
    pub(super) fn place(&self) -> &str {
        match self {
            Self::Below(path) | Self::In(path) | Self::File(path) => path,
        }
    }
}

impl fmt::Display for FoundPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.write_str(&pattern_of(path)),
            Self::In(folder) if folder.is_empty() => f.write_str("*"),
            Self::Below(folder) if folder.is_empty() => f.write_str("**"),
            Self::In(folder) => write!(f, "{}/*", pattern_of(folder)),
            Self::Below(folder) => write!(f, "{}/**", pattern_of(folder)),
        }
    }
}

/// Whether a pattern of a configuration can name a path: it is text, on one line.
pub(super) fn can_be_written(path: &str) -> bool {
    !path.chars().any(|letter| letter.is_control() || letter == char::REPLACEMENT_CHARACTER)
}

/// The rest of a path behind a folder.
fn below<'a>(folder: &str, path: &'a str) -> Option<&'a str> {
    if folder.is_empty() {
        return Some(path);
    }
    path.strip_prefix(folder)?.strip_prefix('/')
}
