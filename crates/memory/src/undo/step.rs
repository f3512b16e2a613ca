//! One step of an undo on the disk, and how it is taken back. Each step checks the file that it
//! moved away: if it differs from the plan, it was changed meanwhile, and is put back.

use std::io::{self, ErrorKind};

use nix::errno::Errno;
use nix::fcntl::renameat;
use serde::{Deserialize, Serialize};

use super::disk::{Disk, Spot, Standing, is_missing, is_out_of_reach};
use super::path::FilePath;
use crate::changes::{FileState, same};

/// A draft is in the nearest folder that exists before and after the undo; it holds first the new
/// file, then the old one.
#[derive(Clone, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub(super) enum UndoStep {
    /// Moves a file or symlink to its draft.
    Out {
        path: FilePath,
        draft: FilePath,
        was: FileState,
    },
    /// Moves a draft to its path, which is free.
    In {
        path: FilePath,
        draft: FilePath,
        is: FileState,
    },
    /// Exchanges a file or symlink with its draft.
    Swap {
        path: FilePath,
        draft: FilePath,
        was: FileState,
        is: FileState,
    },
    /// Removes an empty folder.
    Rmdir {
        path: FilePath,
        mode: u32,
    },
    Mkdir {
        path: FilePath,
        mode: u32,
    },
    Chmod {
        path: FilePath,
        was: u32,
        is: u32,
    },
}

/// Why a step was not done.
#[derive(Debug)]
pub(super) enum NotDone {
    /// The file was changed meanwhile.
    Changed(FilePath),
    Io(FilePath, io::Error),
}

enum RenameMode {
    /// The new name must be free.
    New,
    Exchange,
}

impl UndoStep {
    pub(super) fn path(&self) -> &FilePath {
        match self {
            Self::Out { path, .. }
            | Self::In { path, .. }
            | Self::Swap { path, .. }
            | Self::Rmdir { path, .. }
            | Self::Mkdir { path, .. }
            | Self::Chmod { path, .. } => path,
        }
    }

    pub(super) fn draft(&self) -> Option<&FilePath> {
        match self {
            Self::Out { draft, .. } | Self::In { draft, .. } | Self::Swap { draft, .. } => {
                Some(draft)
            }
            Self::Rmdir { .. } | Self::Mkdir { .. } | Self::Chmod { .. } => None,
        }
    }

    pub(super) fn carry_out(&self, disk: &Disk) -> Result<(), NotDone> {
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::AlreadyExists
            | ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::DirectoryNotEmpty => NotDone::Changed(self.path().clone()),
            _ => NotDone::Io(self.path().clone(), error),
        };
        let is_right = self.try_out(disk).map_err(failed)?;
        if is_right { Ok(()) } else { Err(NotDone::Changed(self.path().clone())) }
    }

    /// Returns false, and leaves all as it was, if the file differs from the plan.
    fn try_out(&self, disk: &Disk) -> io::Result<bool> {
        let spot = disk.spot(self.path())?;
        match self {
            Self::Out { draft, was, .. } => {
                let draft = disk.spot(draft)?;
                rename(&spot, &draft, &RenameMode::New)?;
                if draft.holds(was)? {
                    return Ok(true);
                }
                rename(&draft, &spot, &RenameMode::New)?;
                Ok(false)
            }
            Self::In { draft, .. } => {
                rename(&disk.spot(draft)?, &spot, &RenameMode::New)?;
                Ok(true)
            }
            Self::Swap { draft, was, .. } => {
                let draft = disk.spot(draft)?;
                rename(&draft, &spot, &RenameMode::Exchange)?;
                if draft.holds(was)? {
                    return Ok(true);
                }
                rename(&draft, &spot, &RenameMode::Exchange)?;
                Ok(false)
            }
            Self::Rmdir { .. } => Ok(spot.remove_folder().map(|()| true)?),
            Self::Mkdir { mode, .. } => spot.make_folder(*mode).map(|()| true),
            Self::Chmod { was, is, .. } => {
                let is_right = spot.mode()? == *was;
                if is_right {
                    spot.set_mode(*is)?;
                }
                Ok(is_right)
            }
        }
    }

    /// Takes the step back if it was done. Returns false if its file was changed since: it stays as
    /// it is.
    pub(super) fn take_back(&self, disk: &Disk) -> io::Result<bool> {
        let spot = match disk.spot(self.path()) {
            // The folder was removed meanwhile: its file stays in the draft.
            Err(error) if is_out_of_reach(&error) => return Ok(!self.holds_old(disk)),
            spot => spot?,
        };
        match self {
            Self::Out { draft, .. } => {
                let draft = disk.spot(draft)?;
                if draft.look()? == Standing::Nothing {
                    return Ok(true);
                }
                Ok(or_changed(rename(&draft, &spot, &RenameMode::New))?)
            }
            Self::In { draft, is, .. } => {
                let draft = disk.spot(draft)?;
                if draft.look()? != Standing::Nothing {
                    return Ok(true);
                }
                if spot.look()? == Standing::Nothing {
                    return Ok(true);
                }
                Ok(spot.holds(is)? && or_changed(rename(&spot, &draft, &RenameMode::New))?)
            }
            Self::Swap { draft, was, is, .. } => swap_back(&spot, &disk.spot(draft)?, was, is),
            Self::Rmdir { mode, .. } => match spot.look()? {
                Standing::Nothing => spot.make_folder(*mode).map(|()| true),
                _ => Ok(true),
            },
            Self::Mkdir { .. } => match spot.remove_folder() {
                Ok(()) | Err(Errno::ENOENT) => Ok(true),
                Err(Errno::ENOTEMPTY | Errno::EEXIST | Errno::ENOTDIR) => Ok(false),
                Err(errno) => Err(errno.into()),
            },
            Self::Chmod { was, is, .. } => match spot.mode() {
                Ok(mode) if mode == *is => spot.set_mode(*was).map(|()| true),
                Ok(mode) => Ok(mode == *was),
                Err(Errno::ENOENT) => Ok(true),
                Err(errno) => Err(errno.into()),
            },
        }
    }

    /// Whether the draft has the old file.
    fn holds_old(&self, disk: &Disk) -> bool {
        let Self::Out { draft, .. } = self else { return false };
        disk.look(draft).is_ok_and(|found| found != Standing::Nothing)
    }

    /// Removes the rest in the draft.
    pub(super) fn discard(&self, disk: &Disk) -> io::Result<()> {
        let Some(draft) = self.draft() else { return Ok(()) };
        let removed = disk.spot(draft).and_then(|spot| Ok(spot.remove_file()?));
        match removed {
            Err(error) if !is_missing(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Takes an exchange back, also one that stopped half-way.
fn swap_back(spot: &Spot, draft: &Spot, was: &FileState, is: &FileState) -> io::Result<bool> {
    let aside = draft.aside()?;
    if aside.look()? != Standing::Nothing {
        // Of an exchange in three steps.
        if draft.look()? == Standing::Nothing && spot.look()? != Standing::Nothing {
            rename(spot, draft, &RenameMode::New)?;
        }
        return or_changed(rename(&aside, spot, &RenameMode::New));
    }
    if !draft.holds(was)? || same(Some(was), Some(is)) {
        return Ok(true);
    }
    if !spot.holds(is)? {
        return Ok(false);
    }
    rename(draft, spot, &RenameMode::Exchange)?;
    Ok(true)
}

/// Whether it succeeded; false if the name was taken meanwhile.
fn or_changed(renamed: io::Result<()>) -> io::Result<bool> {
    match renamed {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        renamed => renamed.map(|()| true),
    }
}

fn rename(from: &Spot, to: &Spot, how: &RenameMode) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use nix::fcntl::{RenameFlags, renameat2};
        let flags = match how {
            RenameMode::New => RenameFlags::RENAME_NOREPLACE,
            RenameMode::Exchange => RenameFlags::RENAME_EXCHANGE,
        };
        match renameat2(&from.folder, from.name.as_path(), &to.folder, to.name.as_path(), flags) {
            // The file system does not support the flags.
            Err(Errno::EINVAL | Errno::ENOSYS) => {}
            renamed => return Ok(renamed?),
        }
    }
    plain_rename(from, to, how)
}

/// Does the same in steps, between which another program may see a file missing.
fn plain_rename(from: &Spot, to: &Spot, how: &RenameMode) -> io::Result<()> {
    let plain = |from: &Spot, to: &Spot| {
        if to.look()? != Standing::Nothing {
            return Err(io::Error::from(ErrorKind::AlreadyExists));
        }
        Ok(renameat(&from.folder, from.name.as_path(), &to.folder, to.name.as_path())?)
    };
    match how {
        RenameMode::New => plain(from, to),
        RenameMode::Exchange => {
            let aside = from.aside()?;
            plain(to, &aside)?;
            plain(from, to)?;
            plain(&aside, from)
        }
    }
}
