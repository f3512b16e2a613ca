//! What a confined process made and may therefore use whatever its name: known by device and inode,
//! which are held, so that nothing else is given the same number.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fstat};

/// Past this no further one is made: one for which there is no room would be nobody's, and stay
/// where it is. What was removed, or took the place that it was made for, makes room.
const MAX: usize = 1024;

/// Some of what one agent made.
#[derive(Debug, Default)]
pub(super) struct Own(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    known: HashMap<Identity, OwnedFd>,
    /// For what is about to be made.
    reserved: usize,
}

/// Room for one more; it is given back when dropped.
#[derive(Debug)]
pub(super) struct Room<'a>(&'a Own);

type Identity = (u64, u64);

impl Own {
    pub(super) fn holds(&self, identity: Identity) -> bool {
        let mut own = self.own();
        let Some(handle) = own.known.get(&identity) else { return false };
        let is_there = is_there(handle);
        if !is_there {
            own.known.remove(&identity);
        }
        is_there
    }

    /// Makes sure of room for one more, before it is made.
    pub(super) fn reserve(&self) -> Result<Room<'_>, Errno> {
        let mut own = self.own();
        if own.known.len() + own.reserved >= MAX {
            own.known.retain(|_, handle| is_there(handle));
        }
        if own.known.len() + own.reserved >= MAX {
            return Err(Errno::EDQUOT);
        }
        own.reserved += 1;
        Ok(Room(self))
    }

    pub(super) fn remove(&self, identity: Identity) {
        self.own().known.remove(&identity);
    }

    fn own(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Room<'_> {
    /// Takes in what was made.
    pub(super) fn take(self, file: impl AsFd) -> Result<(), Errno> {
        let stat = fstat(&file)?;
        let path = super::place::by_handle(&file);
        let handle = open(&*path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?;
        self.0.own().known.insert((stat.st_dev, stat.st_ino), handle);
        Ok(())
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.0.own().reserved -= 1;
    }
}

/// Whether it still has a name.
fn is_there(handle: &OwnedFd) -> bool {
    fstat(handle).is_ok_and(|stat| stat.st_nlink > 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::{self, File};
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn there_is_room_for_so_many_and_what_goes_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = |at: usize| folder.path().join(at.to_string());
        let own = Own::default();
        // Others that run beside this test need descriptors too.
        let file = File::create(path(0)).unwrap();
        own.reserve().unwrap().take(&file).unwrap();
        let found = file.metadata().unwrap();
        assert!(own.holds((found.dev(), found.ino())));
        let mut rooms: Vec<_> = (1..MAX).map(|_| own.reserve().unwrap()).collect();
        assert_eq!(own.reserve().unwrap_err(), Errno::EDQUOT);
        rooms.pop();
        drop(own.reserve().unwrap());
        rooms.push(own.reserve().unwrap());
        fs::remove_file(path(0)).unwrap();
        assert!(own.reserve().is_ok());
        assert!(!own.holds((found.dev(), found.ino())));
    }
}
