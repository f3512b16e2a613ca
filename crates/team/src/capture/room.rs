//! Keeps contents until their changes are recorded. Small ones are in memory, within a bound. Those of
//! files that git tracks or would add are kept whatever the amount: past the bounds of memory and of
//! the journal's queue as files beside the journal.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Fullness;
use super::disk::{self, Content, Fate, LARGEST_HASHED, Seen};
use super::scope::CaptureScope;
use crate::journal::{HeldContent, Journal, Keep, KeptFolder};
use crate::model::{FileContent, FileKind};

/// Bytes of contents in memory from before a write that is not settled. Past that, those that git
/// ignores are known by hash only, and all others go to the disk.
const MOST_BYTES: usize = 64 << 20;

/// How often it is measured what the journal takes.
const MEASURED: Duration = Duration::from_secs(1);

pub(super) struct Room {
    journal: Journal,
    scope: Arc<CaptureScope>,
    kept: Arc<KeptFolder>,
    full: Fullness,
    /// Bytes that are held in memory.
    bytes: AtomicUsize,
    /// Bytes of the journal, when they were measured.
    measured: Mutex<Option<(Instant, u64)>>,
    /// Bytes that went to the journal or its folder since.
    came: AtomicU64,
}

/// Why a content that is to be kept is not.
#[derive(Debug)]
pub(super) enum Unkept {
    /// The journal has no room for it.
    Full,
    /// The content is too large to be copied.
    TooLarge,
    Failed(io::Error),
}

impl Room {
    pub(super) fn new(journal: Journal, scope: Arc<CaptureScope>, full: Fullness) -> Self {
        let kept = Arc::new(KeptFolder::beside(&journal.settings().path));
        let (bytes, measured, came) = (AtomicUsize::new(0), Mutex::default(), AtomicU64::new(0));
        Self { journal, scope, kept, full, bytes, measured, came }
    }

    /// The kinds of content that the journal keeps.
    pub(super) fn keep(&self) -> Keep {
        self.journal.settings().keep
    }

    pub(super) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Holds the content of an entry before a call, until what becomes of it is recorded. A file that
    /// goes may not be open for writing.
    pub(super) fn hold(&self, path: &Path, seen: &mut Seen, fate: Fate) -> Result<(), Unkept> {
        let Some(state) = seen.state.as_ref().filter(|state| !state.stored) else {
            seen.content = None;
            return Ok(());
        };
        let size = state.size;
        if let Some(Content::Bytes(bytes)) = &seen.content
            && !self.is_full(size)
            && self.enter(bytes.len())
        {
            return Ok(());
        }
        let content = seen.content.take();
        if fate == Fate::Stays || !self.keep().texts || !self.must_keep(path) {
            return Ok(());
        }
        if self.is_full(size) {
            return Err(Unkept::Full);
        }
        let held = match content {
            Some(Content::File(held)) => Ok(held),
            _ => self.keep_file(path, seen, fate, content),
        };
        let held = match held {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                return Err(Unkept::TooLarge);
            }
            held => held.map_err(Unkept::Failed)?,
        };
        self.came.fetch_add(held.size(), Ordering::Relaxed);
        if let Some(state) = &mut seen.state {
            (state.hash, state.size) = (Some(Arc::clone(held.hash())), held.size());
        }
        seen.content = Some(Content::File(held));
        Ok(())
    }

    fn keep_file(
        &self,
        path: &Path,
        seen: &Seen,
        fate: Fate,
        content: Option<Content>,
    ) -> io::Result<HeldContent> {
        let Some(state) = &seen.state else { return Err(io::ErrorKind::NotFound.into()) };
        let hash = state.hash.as_deref();
        if state.kind == FileKind::File {
            let handle = disk::hold(path)?;
            let has_one_name = seen.stamp.is_some_and(|stamp| !stamp.is_linked());
            if let Some(hash) = hash.filter(|_| fate == Fate::Goes && has_one_name)
                && let Ok(held) = self.kept.link(&handle, hash, state.size)
            {
                return Ok(held);
            }
            let too_large = state.size > LARGEST_HASHED;
            if content.is_none() {
                return self.kept.copy(disk::reopen(path, &handle)?, too_large);
            }
        }
        match (content, hash) {
            (Some(Content::Bytes(bytes)), Some(hash)) => self.kept.write(&bytes, hash),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Hands over a content for the journal; None if it takes no more. One that was held has its room
    /// already: its file may be gone.
    pub(super) fn record(
        &self,
        path: &Path,
        content: Content,
        hash: &str,
        was_held: bool,
    ) -> Option<FileContent> {
        let held = match content {
            Content::File(held) => held,
            Content::Bytes(bytes) => {
                if !self.keep().texts || !was_held && self.is_full(bytes.len() as u64) {
                    return None;
                }
                self.came.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                if self.journal.has_room() {
                    return Some(FileContent::Bytes(bytes));
                }
                if !self.must_keep(path) {
                    return None;
                }
                self.kept.write(&bytes, hash).ok()?
            }
        };
        let size = held.size();
        held.store().ok().map(|()| FileContent::Kept { size })
    }

    /// The reason in words.
    pub(super) fn why(&self, unkept: &Unkept) -> String {
        match unkept {
            Unkept::Full => {
                let most = self.full.at.unwrap_or_default() >> 20;
                format!("the journal has as much as `max_mb` lets it have, {most} MB")
            }
            Unkept::TooLarge => {
                let most = LARGEST_HASHED >> 20;
                format!("more than {most} MB, and the file system has no reflinks")
            }
            Unkept::Failed(error) => error.to_string(),
        }
    }

    /// Why a file of this size could not be kept.
    pub(super) fn refuses(&self, size: u64) -> Option<Unkept> {
        if self.is_full(size) {
            return Some(Unkept::Full);
        }
        (size > LARGEST_HASHED && !self.kept.reflinks()).then_some(Unkept::TooLarge)
    }

    pub(super) fn holds_what_it_refuses(&self) -> bool {
        self.full.holds && self.keep().texts
    }

    /// Whether the content of a file is to be kept whatever the amount: git tracks it or would add
    /// it.
    pub(super) fn must_keep(&self, path: &Path) -> bool {
        self.scope.is_of_repository(path)
    }

    /// Whether the journal has no room for so many bytes.
    fn is_full(&self, bytes: u64) -> bool {
        let Some(most) = self.full.at.filter(|_| bytes > 0) else { return false };
        let mut measured = self.measured.lock();
        let known = measured.filter(|(at, _)| at.elapsed() < MEASURED);
        let (_, used) = known.unwrap_or_else(|| {
            let now = (Instant::now(), self.kept.used());
            self.came.store(0, Ordering::Relaxed);
            *measured = Some(now);
            now
        });
        let held = self.bytes.load(Ordering::Relaxed) as u64;
        used + self.came.load(Ordering::Relaxed) + held + bytes > most
    }

    /// Takes room for a content in memory; false if there is no room.
    fn enter(&self, bytes: usize) -> bool {
        let has_room = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= MOST_BYTES;
        if !has_room {
            self.leave(bytes);
        }
        has_room
    }

    pub(super) fn leave(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
