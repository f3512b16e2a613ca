//! Looks whether a journal could be written, without writing it.

use std::io;
use std::path::Path;

use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, access};

use super::OpenError;
use super::database::open_to_read;
use super::trouble::{Trouble, TroubleKind};

/// Bytes of the disk below which it counts as full.
const LEAST_FREE: u64 = 1 << 20;

/// What keeps the journal at `path` from being written; None if nothing does.
pub fn probe(path: &Path) -> Option<Trouble> {
    let trouble = |kind, why: String| Some(Trouble::new(kind, path, why));
    let is_there = match open_to_read(path) {
        Ok(_) => true,
        Err(OpenError::Missing(_)) => false,
        Err(OpenError::Newer(_)) => {
            return trouble(TroubleKind::Newer, "its version is not known".to_owned());
        }
        Err(OpenError::Foreign(_)) => {
            return trouble(TroubleKind::Other, "another program's file".to_owned());
        }
        Err(OpenError::Sqlite { error, .. }) => return Some(Trouble::of_sqlite(path, &error)),
    };
    let folder = path.ancestors().skip(1).find(|folder| folder.exists())?;
    let writable = AccessFlags::W_OK | AccessFlags::X_OK;
    let reachable = access(folder, writable)
        .and_then(|()| if is_there { access(path, AccessFlags::W_OK) } else { Ok(()) });
    if let Err(errno) = reachable {
        return Some(Trouble::of_io(path, &io::Error::from(errno)));
    }
    if !folder.is_dir() {
        return trouble(TroubleKind::Other, format!("{} is no folder", folder.display()));
    }
    let disk = statvfs(folder).ok()?;
    // Fewer bits on some systems.
    #[allow(clippy::useless_conversion)]
    let free = u64::from(disk.blocks_available()).saturating_mul(disk.fragment_size());
    if free < LEAST_FREE {
        return trouble(TroubleKind::DiskFull, format!("{free} bytes are free"));
    }
    None
}
