//! Finds the contents that states name by their hashes, or the reason that one is missing.

use std::collections::HashMap;
use std::hash::BuildHasher;

use super::state::{FileKind, FileState};
use crate::journal::{OpenError, Store, hash_of};

/// A source of contents by their hashes.
pub trait ContentSource {
    /// None if there is no such content.
    fn content(&self, hash: &str) -> Result<Option<Vec<u8>>, OpenError>;

    /// Whether there is a content with this hash. Does not read the content.
    fn has(&self, hash: &str) -> Result<bool, OpenError>;
}

impl ContentSource for Store {
    fn content(&self, hash: &str) -> Result<Option<Vec<u8>>, OpenError> {
        Store::content(self, hash)
    }

    fn has(&self, hash: &str) -> Result<bool, OpenError> {
        self.has_content(hash)
    }
}

impl<S: BuildHasher> ContentSource for HashMap<String, Vec<u8>, S> {
    fn content(&self, hash: &str) -> Result<Option<Vec<u8>>, OpenError> {
        Ok(self.get(hash).cloned())
    }

    fn has(&self, hash: &str) -> Result<bool, OpenError> {
        Ok(self.contains_key(hash))
    }
}

/// Why a content is missing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Missing {
    /// The content was over a bound, or there was no room.
    #[error("its content was not stored")]
    NotStored,
    /// The content was stored, and is no longer there.
    #[error("its content is no longer in the journal")]
    Gone,
    /// The content that is stored under the hash has another hash.
    #[error("its content in the journal is damaged")]
    Damaged,
    /// The kind of the state is [`FileKind::Other`].
    #[error("it is of a kind that this version does not know")]
    Kind,
    /// The source can't be read; the text says why.
    #[error("{0}")]
    Unreadable(String),
}

/// Whether the content of a state is there; does not read it.
pub fn is_there(contents: &dyn ContentSource, state: &FileState) -> Result<(), Missing> {
    match (state.kind, &state.hash) {
        (FileKind::Folder, _) => Ok(()),
        (FileKind::Other, _) => Err(Missing::Kind),
        (_, None) => Err(Missing::NotStored),
        (_, Some(hash)) => match contents.has(hash) {
            Ok(true) => Ok(()),
            Ok(false) if state.stored => Err(Missing::Gone),
            Ok(false) => Err(Missing::NotStored),
            Err(error) => Err(Missing::Unreadable(error.to_string())),
        },
    }
}

/// The content of a state; empty for a folder. Checks its hash.
pub fn content_of(contents: &dyn ContentSource, state: &FileState) -> Result<Vec<u8>, Missing> {
    match (state.kind, &state.hash) {
        (FileKind::Folder, _) => Ok(Vec::new()),
        (FileKind::Other, _) => Err(Missing::Kind),
        (_, None) => Err(Missing::NotStored),
        (_, Some(hash)) => match contents.content(hash) {
            Ok(Some(content)) if hash_of(&content) == *hash => Ok(content),
            Ok(Some(_)) => Err(Missing::Damaged),
            Ok(None) if state.stored => Err(Missing::Gone),
            Ok(None) => Err(Missing::NotStored),
            Err(error) => Err(Missing::Unreadable(error.to_string())),
        },
    }
}
