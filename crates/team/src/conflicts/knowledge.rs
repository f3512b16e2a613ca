//! The knowledge of files that sessions get: by reads, and by what the client host puts there for them.

use std::io::ErrorKind;
use std::sync::{Arc, PoisonError};

use super::bases::Bases;
use super::stale::{FileVersion, Version};
use super::{Conflicts, is_locked_ever};
use crate::journal::hash_of;
use crate::model::{ConflictStrategy, FileStamp, SessionKey};

/// The content that a read told a session.
#[derive(Clone, Copy, Debug)]
pub enum KnownContent<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// A part of the file that has this stamp.
    Part(FileStamp),
    /// There is no file.
    Missing,
}

impl Conflicts {
    /// A session reads a file now, by a way that does not show what it gets.
    pub fn read(&self, by: &SessionKey, path: &Arc<str>) {
        let version = match self.0.workspace.join(&**path).symlink_metadata() {
            Ok(found) => {
                FileVersion { content: Version::Unknown, stamp: Some(FileStamp::of(&found)) }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => FileVersion::of(Version::Missing),
            Err(_) => FileVersion::of(Version::Unknown),
        };
        let mut state = self.state();
        state.stales.knows(by, path, version);
        let now = tokio::time::Instant::now();
        state.workers.worked(&by.agent, now);
    }

    /// The client host has read a file for a session.
    pub fn was_read(&self, by: &SessionKey, path: &Arc<str>, content: KnownContent<'_>) {
        if !is_locked_ever(path) {
            return;
        }
        let version = match content {
            KnownContent::Whole(content) => FileVersion::of(self.kept(content)),
            KnownContent::Part(stamp) => {
                FileVersion { content: Version::Unknown, stamp: Some(stamp) }
            }
            KnownContent::Missing => FileVersion::of(Version::Missing),
        };
        self.state().stales.knows(by, path, version);
    }

    /// The client host is about to put a content in a file's place for a session.
    pub fn puts(&self, by: &SessionKey, path: &Arc<str>, content: &[u8]) {
        if is_locked_ever(path) {
            let content = Version::Hash(hash_of(content).into());
            self.state().stales.begin(by, path, Some(content));
        }
    }

    /// The client host has put a session's write in place; `is_merged`: what others wrote is in it, too, of
    /// which the session knows nothing.
    pub fn has_put(&self, by: &SessionKey, path: &Arc<str>, sent: &[u8], is_merged: bool) {
        if !is_locked_ever(path) {
            return;
        }
        let version = FileVersion::of(self.kept(sent));
        let mut state = self.state();
        if is_merged {
            state.stales.sent(by, path, version);
        } else {
            state.stales.knows(by, path, version);
        }
    }

    /// The version of a content, which is kept where it may become the base of a merge.
    fn kept(&self, content: &[u8]) -> Version {
        let hash: Arc<str> = hash_of(content).into();
        if self.strategy() == ConflictStrategy::Merge {
            self.bases(|bases| bases.keep(&hash, content));
        }
        Version::Hash(hash)
    }

    pub(super) fn bases<T>(&self, with: impl FnOnce(&mut Bases) -> T) -> T {
        with(&mut self.0.bases.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
