//! Free space where state is written, and the size of that state.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;

use crate::care::doctor::{Finding, command};
use crate::care::garbage::size;
use crate::config::{Config, journal_path};

/// Less free space than this soon ends a journal, and the work of agents.
const LITTLE: u64 = 1 << 30;
const NEXT_TO_NOTHING: u64 = 64 << 20;
/// Files that can still be made.
const FEW_FILES: u64 = 1000;

/// The free space of a disk.
#[derive(Clone, Copy, Debug)]
struct FreeSpace {
    bytes: u64,
    /// None: the file system has no such limit.
    files: Option<u64>,
}

pub(super) fn disk(eisen_dir: &Path, config: Option<&Config>) -> Vec<Finding> {
    let mut places = vec![("EISEN_DIR", eisen_dir.to_owned())];
    if let Some(config) = config {
        let journal = config.journal.path.clone();
        let journal = journal.unwrap_or_else(|| journal_path(eisen_dir, &config.team.name));
        places.extend(config.journal.enabled.then_some(("the journal", journal)));
        places.push(("the workspace", config.team.workspace.clone()));
    }
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (what, place) in places {
        let Some((folder, device)) = existing(&place) else { continue };
        // Places on the same disk have the same room.
        if !seen.insert(device) {
            continue;
        }
        found.push(match room(&folder) {
            Ok(room) => judge(what, &folder, room),
            Err(errno) => {
                let message = format!("{}: {}", folder.display(), errno.desc());
                Finding::warning("disk", message)
            }
        });
    }
    if eisen_dir.is_dir() {
        let (place, mib) = (eisen_dir.display(), size(eisen_dir).div_ceil(1 << 20));
        found.push(Finding::ok("size", format!("{place} has {mib} MiB")));
    }
    found
}

/// Returns the nearest folder that exists, and its device.
fn existing(place: &Path) -> Option<(PathBuf, u64)> {
    place.ancestors().find_map(|folder| Some((folder.to_owned(), folder.metadata().ok()?.dev())))
}

// Fewer bits on some systems.
#[allow(clippy::useless_conversion)]
fn room(folder: &Path) -> nix::Result<FreeSpace> {
    let disk = statvfs(folder)?;
    let free = u64::from(disk.blocks_available()).saturating_mul(disk.fragment_size());
    let files = u64::from(disk.files_available());
    Ok(FreeSpace { bytes: free, files: (u64::from(disk.files()) > 0).then_some(files) })
}

fn judge(what: &str, folder: &Path, room: FreeSpace) -> Finding {
    let place = folder.display();
    if room.files.is_some_and(|files| files < FEW_FILES) {
        let message = format!("the disk of {what}, {place}, takes hardly any further file");
        return Finding::error("disk", message).mended_by(command("gc"));
    }
    let mib = room.bytes >> 20;
    let message = format!("{mib} MiB are free on the disk of {what}, {place}");
    match room.bytes {
        LITTLE.. => Finding::ok("disk", message),
        NEXT_TO_NOTHING.. => Finding::warning("disk", message).mended_by(command("gc")),
        _ => Finding::error("disk", message).mended_by(command("gc")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::care::doctor::Health;

    #[test]
    fn little_room_is_a_warning_and_none_an_error() {
        for (bytes, files, state) in [
            (10 << 30, None, Health::Ok),
            (10 << 30, Some(1_000_000), Health::Ok),
            (10 << 30, Some(0), Health::Error),
            (500 << 20, None, Health::Warning),
            (0, None, Health::Error),
        ] {
            let finding = judge("EISEN_DIR", Path::new("/eisen"), FreeSpace { bytes, files });
            assert_eq!(finding.state, state, "{bytes} {files:?}");
            assert_eq!(finding.fix.is_some(), state != Health::Ok);
        }
    }

    #[test]
    fn a_folder_that_is_not_there_yet_has_the_disk_of_the_one_above() {
        let place = tempfile::tempdir().unwrap();
        let found = disk(&place.path().join("not/yet"), None);
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains(&place.path().display().to_string()), "{found:?}");
        std::fs::write(place.path().join("file"), [0; 4096]).unwrap();
        let found = disk(place.path(), None);
        assert!(found[1].message.ends_with("has 1 MiB"), "{found:?}");
    }
}
