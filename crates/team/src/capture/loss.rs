//! Says what a call is about to destroy that the journal can't keep.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::room::Unkept;
use super::source::WriteSource;
use super::table::locked;
use super::team::CaptureTeam;
use crate::journal::{EventType, NewEvent, Place};
use crate::model::quoted;

/// Files that are counted to say what is lost.
const MOST_SURVEYED: usize = 100_000;

impl CaptureTeam {
    /// Says what a call is about to destroy that can't be kept, once for each folder and turn.
    pub(super) fn warn_of_loss(&self, source: &WriteSource, path: &Path, unkept: &Unkept) {
        let workspace = self.scope.workspace();
        let Some(named) = source.losses().note(workspace, path, unkept) else { return };
        let (files, bytes) = self.survey(&named);
        let (folder, what) = (self.scope.name(&named).text, self.loss(&named, unkept));
        tracing::warn!(agent = %source.agent(), "{what}");
        let payload = json!({
            "events": 0, "reason": what, "folder": folder, "files": files, "bytes": bytes,
        });
        let place = Place::Agent(source.agent().clone());
        self.room.journal().offer(NewEvent::new(place, EventType::GAP, &payload));
        source.losses().say(what);
    }

    /// Says the loss if the files at or below a path are changed.
    pub(super) fn loss(&self, path: &Path, unkept: &Unkept) -> String {
        let (files, bytes) = self.survey(path);
        let (named, number) =
            (quoted(&self.scope.name(path).text), if files == 1 { "" } else { "s" });
        let why = self.room.why(unkept);
        format!(
            "{files} file{number} ({bytes} bytes) at {named} can't be brought back if they are deleted or \
             overwritten: {why}"
        )
    }

    /// The number of files at or below a path that are to be kept, and their bytes; the first ones
    /// only if there are too many.
    fn survey(&self, path: &Path) -> (usize, u64) {
        let below = if path.is_dir() { Self::below(path, MOST_SURVEYED) } else { None };
        let files = below.unwrap_or_else(|| vec![path.to_owned()]);
        let sizes = files.iter().filter_map(|file| {
            let found = std::fs::symlink_metadata(file).ok()?;
            let counts = found.is_file() && found.len() > 0 && self.room.must_keep(file);
            counts.then_some(found.len())
        });
        sizes.fold((0, 0), |(files, bytes), size| (files + 1, bytes + size))
    }

    /// Why the content of a file could not be kept if it were destroyed now; None if it is safe, or
    /// no matter.
    pub(super) fn refuses(&self, path: &Path) -> Option<Unkept> {
        let found = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        if self.scope.leaves_out(path) || self.scope.denies(path) {
            return None;
        }
        let unkept = self.room.refuses(found.len())?;
        let is_safe = self.table.find(path).is_some_and(|file| locked(&file).is_safe());
        (!is_safe && self.room.must_keep(path)).then_some(unkept)
    }

    pub(super) fn holds_losses(&self) -> bool {
        self.room.holds_what_it_refuses()
    }

    /// The paths of all entries below a folder; None if there are more than `most`.
    pub(super) fn below(folder: &Path, most: usize) -> Option<Vec<PathBuf>> {
        let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).ok()?.flatten() {
                if found.len() >= most {
                    return None;
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(entry.path());
                }
                found.push(entry.path());
            }
        }
        found.sort_by_key(|path| path.as_os_str().as_bytes().to_vec());
        Some(found)
    }
}
