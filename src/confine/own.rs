//! What a confined process made and may therefore use whatever its name: known by device and inode,
//! which are held, so that nothing else is given the same number.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fstat};

/// Past this no further one is taken in.
const MAX: usize = 1024;

/// Some of what one agent made.
#[derive(Debug, Default)]
pub(super) struct Own(Mutex<HashMap<Identity, OwnedFd>>);

type Identity = (u64, u64);

impl Own {
    pub(super) fn holds(&self, identity: Identity) -> bool {
        let mut own = self.own();
        let Some(handle) = own.get(&identity) else { return false };
        let is_there = is_there(handle);
        if !is_there {
            own.remove(&identity);
        }
        is_there
    }

    pub(super) fn add(&self, file: impl AsFd) -> Result<(), Errno> {
        let stat = fstat(&file)?;
        let path = super::resolve::by_handle(&file);
        let handle = open(&*path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?;
        let mut own = self.own();
        if own.len() >= MAX {
            own.retain(|_, handle| is_there(handle));
        }
        if own.len() >= MAX {
            return Err(Errno::EACCES);
        }
        own.insert((stat.st_dev, stat.st_ino), handle);
        Ok(())
    }

    pub(super) fn remove(&self, identity: Identity) {
        self.own().remove(&identity);
    }

    fn own(&self) -> MutexGuard<'_, HashMap<Identity, OwnedFd>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether it still has a name.
fn is_there(handle: &OwnedFd) -> bool {
    fstat(handle).is_ok_and(|stat| stat.st_nlink > 0)
}
