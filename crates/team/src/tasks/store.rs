//! Keeps each task in a file of its own, replaced whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::kept::{Kept, MOST_TEXT};
use crate::kept::{Durable, KeptFile, dead_drafts, remove_draft};
use crate::model::{TaskId, TimestampMs};

/// Files that are read at a start, and bytes of each: JSON has up to six bytes for one of a text.
/// Larger files are not this program's.
const MOST_FILES: usize = 4096;
const MOST_BYTES: u64 = 8 * MOST_TEXT as u64;

/// The folder of a team's tasks; None: nothing is kept.
#[derive(Clone, Debug)]
pub(super) struct Store(Option<PathBuf>);

impl Store {
    pub(super) fn new(folder: Option<PathBuf>) -> Self {
        Self(folder)
    }

    /// Reads the tasks, oldest first, and removes those that ended before `oldest`.
    pub(super) fn load(&self, oldest: TimestampMs) -> Vec<Kept> {
        let Some(folder) = &self.0 else { return Vec::new() };
        for draft in dead_drafts(folder).unwrap_or_default() {
            let _ = remove_draft(&draft);
        }
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let mut tasks = Vec::new();
        for path in entries.take(MOST_FILES).filter_map(|entry| Some(entry.ok()?.path())) {
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let kept = file(&path).read_json::<Kept>().ok().flatten();
            match kept.filter(|kept| path.file_stem().is_some_and(|it| *it == *kept.id.as_str())) {
                Some(kept) if kept.ended_ms.is_some_and(|ended| ended < oldest) => {
                    let _ = fs::remove_file(&path);
                }
                Some(kept) => tasks.push(kept),
                None => tracing::warn!(file = %path.display(), "the file of a task can't be read"),
            }
        }
        tasks.sort_by_key(|kept| kept.begun_ms);
        tasks
    }

    pub(super) fn write(&self, kept: &Kept) -> io::Result<()> {
        let Some(folder) = &self.0 else { return Ok(()) };
        file(&folder.join(format!("{}.json", kept.id))).replace(&serde_json::to_vec(kept)?)
    }

    pub(super) fn remove(&self, id: &TaskId) {
        if let Some(folder) = &self.0 {
            let _ = fs::remove_file(folder.join(format!("{id}.json")));
        }
    }
}

/// The file of a task: a result is on the disk before it is reported.
fn file(path: &Path) -> KeptFile<Durable> {
    KeptFile::new(path, MOST_BYTES)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::NewTask;
    use super::*;
    use crate::kept::power_cut::survives;
    use crate::model::{AgentId, TaskState};

    #[test]
    fn a_result_survives_a_power_cut() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(Some(folder.path().join("tasks")));
        let new = NewTask {
            by: AgentId::new("lead"),
            owner: None,
            agent: AgentId::new("ui"),
            text: "Look.".to_owned(),
            files: Vec::new(),
            key: None,
        };
        let mut kept = Kept::new(new, TaskId::new("t-00000001"), 1);
        let file = folder.path().join("tasks/t-00000001.json");
        survives(&file, || store.write(&kept).unwrap());
        kept.state = TaskState::Done;
        survives(&file, || store.write(&kept).unwrap());
        assert_eq!(store.load(0), [kept]);
    }
}
