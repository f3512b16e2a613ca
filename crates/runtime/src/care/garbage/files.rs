//! Sizes, ages and the removal of files and folders.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;

use crate::process;

/// Maximum depth of folders.
const DEEPEST: usize = 64;

/// The names in a folder, in order; none without the folder. Names that are not UTF-8 are not ours.
pub(super) fn names_of(folder: &Path) -> anyhow::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("cannot read {}", folder.display()))?,
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<_> = names.collect();
    names.sort();
    Ok(names)
}

/// Bytes of a file, or of all files in a folder.
pub(crate) fn size(path: &Path) -> u64 {
    size_within(path, DEEPEST)
}

fn size_within(path: &Path, depth: usize) -> u64 {
    match path.symlink_metadata() {
        Ok(folder) if folder.is_dir() && depth > 0 => {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| size_within(&entry.path(), depth - 1)).sum()
        }
        Ok(file) if file.is_file() => file.len(),
        _ => 0,
    }
}

/// Time since the last change of a file, or of the youngest file in a folder.
pub(super) fn age(path: &Path) -> Option<Duration> {
    let own = path.symlink_metadata().ok()?;
    let files = fs::read_dir(path).ok().filter(|_| own.is_dir());
    let inside = files.into_iter().flatten().flatten().filter_map(|entry| entry.metadata().ok());
    let inside = inside.filter_map(|file| file.modified().ok()).max();
    let changed = inside.or(own.modified().ok())?;
    Some(SystemTime::now().duration_since(changed).unwrap_or_default())
}

/// Removes a file, or a folder with its content.
pub(super) fn remove(path: &Path) -> anyhow::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => process::remove_folder(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| path.display().to_string())
        }
        _ => Ok(()),
    }
}
