//! One ticket of this process: its lock file, under `flock`, and its pipe.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::holder::SlotHolder;
use crate::kept::{KeptFile, Volatile};

/// Bytes that are read of a lock file.
pub(super) const LONGEST: u64 = 8192;

#[derive(Debug)]
pub(super) struct Ticket {
    number: u64,
    path: PathBuf,
    holder: SlotHolder,
    // In this order: who is woken by the end of the pipe finds the lock free.
    lock: File,
    _pipe: File,
}

impl Ticket {
    /// Makes the ticket. Only the holder of the queue's lock may.
    pub(super) fn make(folder: &Path, number: u64, holder: SlotHolder) -> io::Result<Self> {
        let path = lock_file(folder, number);
        remove(&pipe_of(&path))?;
        mkfifo(&pipe_of(&path), Mode::S_IRUSR | Mode::S_IWUSR)?;
        // A pipe that is open for both does not wait for another end.
        let nonblocking = OFlag::O_NONBLOCK.bits();
        let mut both = OpenOptions::new();
        let pipe = both.read(true).write(true).custom_flags(nonblocking).open(pipe_of(&path))?;
        // It is never seen without its lock.
        let lock = kept_at(&path).replace_locked(&text_of(&holder)?)?;
        Ok(Self { number, path, holder, lock, _pipe: pipe })
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Notes that it holds its place.
    pub(super) fn acquired(&mut self) -> io::Result<()> {
        self.holder.acquired();
        self.write()
    }

    /// Writes the holder, in place: another file would have another lock. It only gets longer, and one
    /// write of less than a page is seen as a whole.
    fn write(&self) -> io::Result<()> {
        self.lock.write_all_at(&text_of(&self.holder)?, 0)
    }
}

/// The lock file of a ticket, which ends with its process.
pub(super) fn kept_at(lock_file: &Path) -> KeptFile<Volatile> {
    KeptFile::new(lock_file, LONGEST)
}

fn text_of(holder: &SlotHolder) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(holder)?;
    text.push(b'\n');
    Ok(text)
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // What can't be removed is no ticket without its lock, and the next one who comes removes it.
        let _ = fs::remove_file(&self.path);
        let _ = fs::remove_file(pipe_of(&self.path));
    }
}

pub(super) fn lock_file(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:020}.lock"))
}

pub(super) fn pipe_of(lock_file: &Path) -> PathBuf {
    lock_file.with_extension("pipe")
}

/// The number of a ticket, by the name of its lock file or pipe.
pub(super) fn number_of(name: &str) -> Option<u64> {
    let number = name.strip_suffix(".lock").or_else(|| name.strip_suffix(".pipe"))?;
    number.parse().ok().filter(|_| number.len() == 20)
}

pub(super) fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
