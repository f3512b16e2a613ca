//! The search of a scripted agent: finds a plain text in the files of a folder. Blocks.

use std::path::{Path, PathBuf};

/// Further hits are left out.
const MAX_HITS: usize = 100;

/// Larger files are not searched.
const MAX_SEARCHED: u64 = 1 << 20;

pub(super) struct Hit {
    pub(super) path: PathBuf,
    /// Counts from 1.
    pub(super) line: u64,
    /// The trimmed line.
    pub(super) text: String,
}

/// Lines that contain `text`, in a file or below a folder, sorted by path. Respects ignore files.
pub(super) fn hits(text: &str, within: &Path) -> Result<Vec<Hit>, String> {
    std::fs::metadata(within).map_err(|error| error.to_string())?;
    let mut hits = Vec::new();
    // Unreadable files are skipped, as search tools do.
    for entry in ignore::WalkBuilder::new(within).sort_by_file_path(Path::cmp).build().flatten() {
        let searched =
            entry.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_SEARCHED);
        let Some(content) = searched.then(|| std::fs::read_to_string(entry.path()).ok()).flatten()
        else {
            continue;
        };
        for (line, found) in (1..).zip(content.lines()).filter(|(_, line)| line.contains(text)) {
            if hits.len() == MAX_HITS {
                return Ok(hits);
            }
            hits.push(Hit { path: entry.path().to_owned(), line, text: found.trim().to_owned() });
        }
    }
    Ok(hits)
}
