//! Locks of files and folders between processes, by `flock`, and the one way to wait for them.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag};

use super::disk::{OF_FILE, with_mode_of_file};

/// How long is waited for a lock that others hold for one change of a file, which takes milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The first and the longest pause between two attempts.
const SHORTEST_PAUSE: Duration = Duration::from_micros(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// Files of one path that are locked and found to be gone from there. More of them is a file system whose
/// inodes have no lasting numbers.
const MOST_GONE: u32 = 1000;

/// A lock that is held. It ends with this value, or with the process.
pub type HeldLock = Flock<File>;

/// The file or folder that is locked. Neither may be a symbolic link.
#[derive(Clone, Copy, Debug)]
pub enum LockAt<'a> {
    /// A file, which is made if it is missing.
    File(&'a Path),
    /// A file or folder that is there.
    Found(&'a Path),
}

/// Takes a lock. If another process holds it for so long, the error is `WouldBlock`.
pub fn lock(at: LockAt<'_>, patience: Duration) -> io::Result<HeldLock> {
    let until = Instant::now() + patience;
    let (mut file, mut pause, mut gone) = (at.open()?, SHORTEST_PAUSE, 0);
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) if at.is(&lock)? => return Ok(lock),
            // Its holder has removed or replaced it, so this lock keeps nobody away.
            Ok(_) if gone < MOST_GONE => {
                gone += 1;
                file = at.open()?;
            }
            Ok(_) => return Err(io::Error::other("its file is another one each time")),
            Err((same, Errno::EINTR)) => file = same,
            Err((same, Errno::EWOULDBLOCK)) if Instant::now() < until => {
                file = same;
                // Not in step with others that wait.
                std::thread::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0));
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err((_, Errno::EWOULDBLOCK)) => {
                let why = format!("another process holds the lock {}", at.path().display());
                return Err(io::Error::new(ErrorKind::WouldBlock, why));
            }
            Err((_, errno)) => return Err(errno.into()),
        }
    }
}

/// Takes a lock; None if another process holds it.
pub fn try_lock(at: LockAt<'_>) -> io::Result<Option<HeldLock>> {
    match lock(at, Duration::ZERO) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        taken => taken.map(Some),
    }
}

/// Whether a process holds the lock of a file, which may be missing.
pub fn is_locked(path: &Path) -> io::Result<bool> {
    let file = match LockAt::Found(path).open() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        file => file?,
    };
    // Shared, so that two who look don't take each other for the holder.
    match Flock::lock(file, FlockArg::LockSharedNonblock) {
        Ok(_) => Ok(false),
        Err((_, Errno::EWOULDBLOCK)) => Ok(true),
        Err((_, errno)) => Err(errno.into()),
    }
}

impl LockAt<'_> {
    fn path(&self) -> &Path {
        let (Self::File(path) | Self::Found(path)) = self;
        path
    }

    fn open(&self) -> io::Result<File> {
        // What is a pipe has no other end to wait for.
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        let mut options = OpenOptions::new();
        options.read(true).write(matches!(self, Self::File(_))).custom_flags(flags.bits());
        match (options.open(self.path()), self) {
            (Err(error), Self::File(path)) if error.kind() == ErrorKind::NotFound => {
                match options.create_new(true).mode(OF_FILE).open(path) {
                    // Another process was first.
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                        options.create_new(false).open(path)
                    }
                    made => made.and_then(with_mode_of_file),
                }
            }
            (opened, _) => opened,
        }
    }

    /// Whether this file is the one at the path.
    fn is(&self, file: &File) -> io::Result<bool> {
        let locked = file.metadata()?;
        match self.path().symlink_metadata() {
            Ok(there) => Ok((there.dev(), there.ino()) == (locked.dev(), locked.ino())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}
