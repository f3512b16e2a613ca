//! Carries a plan out, all or nothing. It keeps the present contents in the journal, writes the
//! intent, changes the files, commits the event and removes the drafts. Before the event, the
//! intent allows taking all of it back; after it, only drafts are left.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tokio::runtime::Handle;

use super::UndoError;
use super::arrange::{Away, Draft, arrange};
use super::disk::{Disk, Inode, MOST_READ};
use super::intent::{Intent, drafts_path, intent_path};
use super::path::FilePath;
use super::plan::Plan;
use super::step::{NotDone, UndoStep};
use crate::changes::{EntrySource, FileEntry, FileState, content_of};
use crate::journal::{Blob, Committed, Journal, NewEvent, Place, Store, hash_of};
use crate::kept::make_folder;
use crate::model::{AgentId, FileContent};

/// Bytes of contents that one request keeps.
const BATCH: usize = 16 << 20;

/// A journal and its workspace. All functions block: call them on threads of
/// [`eisen_base::task::spawn_blocking`].
#[derive(Clone, Debug)]
pub(super) struct Site<'a> {
    pub(super) journal: &'a Journal,
    pub(super) store: &'a Store,
    pub(super) disk: &'a Disk,
    pub(super) runtime: Handle,
}

/// The end of an undo that was killed half-way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Recovered {
    /// Its event was committed: its remaining drafts are removed.
    Finished,
    /// All of it was taken back, except files that were changed since.
    TakenBack {
        /// The paths of these files, which stay as they are; relative to the workspace, absolute outside.
        changed_since: Vec<String>,
    },
}

impl Site<'_> {
    /// Carries the plan out, and sets a session back with it; returns the event of the undo.
    /// Announces the paths before it writes them.
    pub(super) fn apply(
        &self,
        plan: &Plan,
        rewind: Option<NewEvent>,
        announce: impl FnOnce(Vec<FilePath>) -> Box<dyn Send>,
    ) -> Result<Committed, UndoError> {
        self.keep(plan)?;
        let folder = drafts_path(&self.journal.settings().path);
        let _ = make_folder(&folder);
        let away = Away::new(self.disk, &folder);
        let arranged = arrange(&plan.targets, fastrand::u64(..), away.as_ref());
        let (kind, payload) = plan.event();
        let place =
            plan.deed.agent().map_or(Place::Team, |agent| Place::Agent(AgentId::new(agent)));
        let found: Vec<_> = plan.targets.keys().map(ToString::to_string).collect();
        let event = NewEvent::new(place, kind, &payload).found_by(shortened(&found.join("\n")));
        let path = self.intent_path();
        let after = self.store.last_event()?;
        let intent = Intent { payload: event.payload.clone(), after, steps: arranged.steps };
        let unwritten = |error| UndoError::Intent { path: path.clone(), error };
        intent.write(&path).map_err(unwritten)?;

        let _own = announce(intent.paths());
        let done = self.stage(arranged.drafts).and_then(|()| self.carry_out(&intent.steps));
        let done = done.and_then(|()| {
            let events = std::iter::once(event).chain(rewind).collect();
            self.runtime.block_on(self.journal.append_synced(events)).map_err(UndoError::Journal)
        });
        match done {
            Ok(committed) => {
                self.finish(&intent, &path);
                Ok(committed)
            }
            // The event may have been committed all the same.
            Err(UndoError::Journal(error)) => {
                if intent.is_committed(self.store).unwrap_or(false) {
                    self.finish(&intent, &path);
                } else {
                    self.take_back(&intent, &path)?;
                }
                Err(UndoError::Journal(error))
            }
            Err(error) => {
                self.take_back(&intent, &path)?;
                Err(error)
            }
        }
    }

    /// Finishes a killed undo, or takes it back.
    pub(super) fn recover(&self) -> Result<Option<Recovered>, UndoError> {
        let path = self.intent_path();
        let unread = |error| UndoError::Intent { path: path.clone(), error };
        let Some(intent) = Intent::read(&path).map_err(unread)? else { return Ok(None) };
        if intent.is_committed(self.store)? {
            self.finish(&intent, &path);
            return Ok(Some(Recovered::Finished));
        }
        let changed_since = self.take_back(&intent, &path)?;
        Ok(Some(Recovered::TakenBack { changed_since }))
    }

    /// The paths that recovery may write.
    pub(super) fn unfinished_paths(&self) -> Result<Vec<FilePath>, UndoError> {
        let path = self.intent_path();
        let intent = Intent::read(&path).map_err(|error| UndoError::Intent { path, error })?;
        Ok(intent.map(|intent| intent.paths()).unwrap_or_default())
    }

    fn intent_path(&self) -> PathBuf {
        intent_path(&self.journal.settings().path)
    }

    /// Keeps the contents that will be lost, and the merged ones.
    fn keep(&self, plan: &Plan) -> Result<(), UndoError> {
        let (mut blobs, mut bytes) = (Vec::new(), 0);
        for (path, target) in &plan.targets {
            if let Some(hash) = target.to_keep()
                && !self.store.has_content(hash)?
            {
                let read = self.disk.read(path, MOST_READ);
                let read = read.map_err(|error| UndoError::io(path.to_string(), error))?;
                let data = read.filter(|data| hash_of(data) == hash);
                let data = data.ok_or_else(|| UndoError::Changed { path: path.to_string() })?;
                blobs.push(Blob { hash: hash.to_owned(), data: FileContent::Bytes(data) });
            }
            if let Some(FileEntry { source: EntrySource::Merged(data), .. }) = &target.after {
                blobs.push(Blob::new(data.clone()));
            }
            bytes += blobs.last().map_or(0, |blob| blob.data.in_memory());
            if bytes >= BATCH {
                self.store_contents(std::mem::take(&mut blobs))?;
                bytes = 0;
            }
        }
        self.store_contents(blobs)
    }

    fn store_contents(&self, blobs: Vec<Blob>) -> Result<(), UndoError> {
        // Even without contents it shows that the journal can be written.
        self.runtime.block_on(self.journal.keep(blobs)).map_err(UndoError::Journal)
    }

    fn stage(&self, drafts: Vec<Draft>) -> Result<(), UndoError> {
        // Names of one file stay names of one file.
        let mut linked: HashMap<(Inode, FileState), FilePath> = HashMap::new();
        for Draft { path: draft, replaces, entry } in drafts {
            let failed =
                |error| UndoError::io(replaces.as_ref().unwrap_or(&draft).to_string(), error);
            let content = self.content(&entry)?;
            if Some(hash_of(&content)) != entry.state.hash {
                return Err(UndoError::Changed { path: draft.to_string() });
            }
            let old =
                replaces.as_ref().map(|path| self.disk.spot(path).and_then(|it| Ok(it.stat()?)));
            let old = old.transpose().map_err(failed)?;
            let spot = self.disk.spot(&draft).map_err(failed)?;
            let id = replaces.as_ref().filter(|_| old.as_ref().is_some_and(has_names));
            let id = id.and_then(|path| self.disk.id(path));
            let same = id.map(|id| (id, entry.state.clone()));
            let made = same.as_ref().and_then(|same| linked.get(same));
            let made = made.and_then(|first| spot.link(&self.disk.spot(first).ok()?).ok());
            if made.is_none() {
                spot.create(&entry.state, &content, old.as_ref()).map_err(failed)?;
                linked.extend(same.map(|same| (same, draft)));
            }
        }
        Ok(())
    }

    fn content(&self, entry: &FileEntry) -> Result<Vec<u8>, UndoError> {
        match &entry.source {
            EntrySource::Merged(content) => Ok(content.clone()),
            EntrySource::Journal => {
                content_of(self.store, &entry.state).map_err(UndoError::Content)
            }
            EntrySource::Tree(path) => {
                let shown = path.display().to_string();
                let mut disk = self.disk;
                crate::changes::Tree::content(&mut disk, path)
                    .map_err(|error| UndoError::io(shown, error))
            }
        }
    }

    fn carry_out(&self, steps: &[UndoStep]) -> Result<(), UndoError> {
        for step in steps {
            step.carry_out(self.disk).map_err(|stopped| match stopped {
                NotDone::Changed(path) => UndoError::Changed { path: path.to_string() },
                NotDone::Io(path, error) => UndoError::io(path.to_string(), error),
            })?;
        }
        Ok(())
    }

    /// Takes back all steps, and removes the intent. Returns the files that were changed meanwhile,
    /// which stay as they are.
    fn take_back(&self, intent: &Intent, path: &Path) -> Result<Vec<String>, UndoError> {
        let mut changed = Vec::new();
        for step in intent.steps.iter().rev() {
            let of = step.path().to_string();
            match step.take_back(self.disk) {
                Ok(true) => {}
                Ok(false) => changed.push(of),
                Err(error) => return Err(UndoError::Half { path: of, error }),
            }
        }
        for step in &intent.steps {
            // A file that could not go back is not removed.
            let is_stuck =
                matches!(step, UndoStep::Out { .. }) && changed.contains(&step.path().to_string());
            match step.draft().filter(|_| is_stuck) {
                Some(draft) => tracing::warn!("`{}` could not go back: it is {draft}", step.path()),
                None => self.discard(step),
            }
        }
        let unremoved = |error| UndoError::Intent { path: path.to_owned(), error };
        Intent::remove(path).map_err(unremoved)?;
        Ok(changed)
    }

    fn finish(&self, intent: &Intent, path: &Path) {
        intent.steps.iter().for_each(|step| self.discard(step));
        if let Err(error) = Intent::remove(path) {
            // The next undo finds that it was done.
            tracing::warn!(%error, "cannot remove {}", path.display());
        }
    }

    fn discard(&self, step: &UndoStep) {
        if let Err(error) = step.discard(self.disk)
            && let Some(draft) = step.draft()
        {
            tracing::warn!(%error, "cannot remove the draft {draft}");
        }
    }
}

/// Whether a file has several names.
#[allow(clippy::unnecessary_cast, reason = "the type depends on the system")]
fn has_names(stat: &nix::sys::stat::FileStat) -> bool {
    stat.st_nlink as u64 > 1
}

/// Shortens the text that the search index has for an undo.
fn shortened(text: &str) -> &str {
    const MOST: usize = 16 << 10;
    &text[..text.floor_char_boundary(MOST)]
}
