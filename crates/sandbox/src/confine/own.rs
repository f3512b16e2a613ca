//! Files that a confined process created and may therefore use under any name. Each is known by
//! device and inode, and held open so that no other file gets the same numbers.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fstat};
use parking_lot::Mutex;

/// Files that are tracked; beyond this none is created, since no process could use or remove it. A
/// file that was removed or renamed to its target makes room.
const MAX: usize = 1024;

/// Files that one agent created.
#[derive(Debug, Default)]
pub(super) struct Own(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    known: HashMap<Identity, OwnedFd>,
    /// Room for files that are being created.
    reserved: usize,
}

/// Room for one more file, returned when dropped.
#[derive(Debug)]
pub(super) struct Room<'a>(&'a Own);

type Identity = (u64, u64);

/// The sockets of each agent of the team, as long as something confines the agent.
static SOCKETS: Mutex<Vec<Weak<Own>>> = Mutex::new(Vec::new());

/// Where the sockets are noted that one agent binds: whoever serves one has its wall.
pub(super) fn sockets() -> Arc<Own> {
    let own = Arc::new(Own::default());
    let mut all = SOCKETS.lock();
    all.retain(|one| one.strong_count() > 0);
    all.push(Arc::downgrade(&own));
    own
}

/// Whether a process behind a wall of the team bound the socket of this file.
pub(super) fn is_socket_of_team(identity: Identity) -> bool {
    let all: Vec<_> = SOCKETS.lock().iter().filter_map(Weak::upgrade).collect();
    all.iter().any(|own| own.holds(identity))
}

impl Own {
    pub(super) fn holds(&self, identity: Identity) -> bool {
        let mut own = self.0.lock();
        let Some(handle) = own.known.get(&identity) else { return false };
        let is_there = is_there(handle);
        if !is_there {
            own.known.remove(&identity);
        }
        is_there
    }

    /// Reserves room before a file is created.
    pub(super) fn reserve(&self) -> Result<Room<'_>, Errno> {
        let mut own = self.0.lock();
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
        self.0.lock().known.remove(&identity);
    }
}

impl Room<'_> {
    /// Adds the created file.
    pub(super) fn take(self, file: impl AsFd) -> Result<(), Errno> {
        let stat = fstat(&file)?;
        let path = super::place::by_handle(&file);
        let handle = open(&*path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())?;
        self.0.0.lock().known.insert((stat.st_dev, stat.st_ino), handle);
        Ok(())
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.0.0.lock().reserved -= 1;
    }
}

/// Whether the file still has a name.
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
