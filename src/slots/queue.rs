//! The tickets of one place: who takes the next number, and which tickets live.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use super::holder::SlotHolder;
use super::standing::QueueStanding;
use super::ticket::{LONGEST, Ticket, lock_file, number_of, pipe_of, remove};

/// Files of a place that are looked at.
const MOST_FILES: usize = 100_000;

/// Tickets that are looked through in no time.
const FEW: usize = 64;

/// The file whose lock protects the taking of a number; its content is the last one.
const TURN: &str = "turn";

#[derive(Clone, Debug)]
pub(super) struct Queue {
    folder: PathBuf,
}

/// What a number stands for.
enum QueueLook {
    Gone,
    /// None: its file can't be read, and somebody holds its lock.
    Live(Option<SlotHolder>),
}

impl Queue {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn pipe(&self, number: u64) -> PathBuf {
        pipe_of(&lock_file(&self.folder, number))
    }

    /// Takes the next number, and removes what is left of tickets that have ended. Blocks.
    pub(super) fn take(&self, holder: SlotHolder) -> io::Result<Ticket> {
        self.take_in(&self.turn()?, holder)
    }

    /// As [`Queue::take`], but None where another process takes one, or where many have one.
    pub(super) fn try_take(&self, holder: &SlotHolder) -> io::Result<Option<Ticket>> {
        let Some(turn) = self.try_turn()? else { return Ok(None) };
        if self.numbers()?.len() > FEW {
            return Ok(None);
        }
        self.take_in(&turn, holder.clone()).map(Some)
    }

    fn take_in(&self, mut turn: &File, holder: SlotHolder) -> io::Result<Ticket> {
        let mut last = 0;
        for number in self.numbers()? {
            last = number;
            let file = lock_file(&self.folder, number);
            if is_free(&file)? {
                remove(&file)?;
                remove(&pipe_of(&file))?;
            }
        }
        // A number is not used again, also after its ticket has ended.
        let mut noted = String::new();
        (&mut turn).take(LONGEST).read_to_string(&mut noted).or_else(unless_it_is_no_text)?;
        let number = noted.trim().parse().unwrap_or(0).max(last) + 1;
        turn.write_all_at(format!("{number:020}\n").as_bytes(), 0)?;
        Ticket::make(&self.folder, number, holder)
    }

    /// The live tickets nearest before a number, at most this many, the nearest first.
    pub(super) fn before(&self, number: u64, most: usize) -> io::Result<Vec<u64>> {
        let mut live = Vec::new();
        for before in self.numbers()?.range(..number).rev() {
            if live.len() == most {
                break;
            }
            if let QueueLook::Live(_) = self.look(*before)? {
                live.push(*before);
            }
        }
        Ok(live)
    }

    /// Who is before a number.
    pub(super) fn standing(&self, number: u64) -> io::Result<QueueStanding> {
        let mut standing = QueueStanding::default();
        for before in self.numbers()?.range(..number) {
            match self.look(*before)? {
                QueueLook::Live(Some(holder)) if holder.acquired_at.is_some() => {
                    standing.holders.push(holder);
                }
                QueueLook::Live(_) => standing.waiting_before += 1,
                QueueLook::Gone => {}
            }
        }
        Ok(standing)
    }

    /// All live tickets that can be read, in order.
    pub(super) fn live(&self) -> io::Result<Vec<(u64, SlotHolder)>> {
        let mut live = Vec::new();
        for number in self.numbers()? {
            if let QueueLook::Live(Some(holder)) = self.look(number)? {
                live.push((number, holder));
            }
        }
        Ok(live)
    }

    /// Whether nobody has a ticket of it.
    pub(super) fn is_unused(&self) -> io::Result<bool> {
        for number in self.numbers()? {
            if !is_free(&lock_file(&self.folder, number))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Removes the folder with what is left in it, unless somebody has a ticket of it.
    pub(super) fn remove_unused(&self) -> io::Result<()> {
        if !self.folder.is_dir() {
            return Ok(());
        }
        let _turn = self.turn()?;
        if !self.is_unused()? {
            return Ok(());
        }
        for number in self.numbers()? {
            let file = lock_file(&self.folder, number);
            remove(&file)?;
            remove(&pipe_of(&file))?;
        }
        // Who waits for the turn finds that its file is another one, and makes the folder again.
        remove(&self.folder.join(TURN))?;
        match fs::remove_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn look(&self, number: u64) -> io::Result<QueueLook> {
        let file = lock_file(&self.folder, number);
        if is_free(&file)? {
            return Ok(QueueLook::Gone);
        }
        let mut text = Vec::new();
        match open(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(QueueLook::Gone),
            file => file?.take(LONGEST).read_to_end(&mut text)?,
        };
        Ok(match serde_json::from_slice::<SlotHolder>(&text) {
            Ok(holder) if !holder.is_alive() => QueueLook::Gone,
            Ok(holder) => QueueLook::Live(Some(holder)),
            Err(_) => QueueLook::Live(None),
        })
    }

    /// The numbers of all files; none without the folder.
    fn numbers(&self) -> io::Result<BTreeSet<u64>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
            entries => entries?,
        };
        let names = entries.take(MOST_FILES).map(|entry| Ok(entry?.file_name()));
        let numbers = names.filter_map(|name: io::Result<_>| match name {
            Ok(name) => number_of(name.to_str()?).map(Ok),
            Err(error) => Some(Err(error)),
        });
        numbers.collect()
    }

    /// Waits for the lock that protects the taking of a number. It is held for microseconds.
    fn turn(&self) -> io::Result<File> {
        let locked = self.turn_by(|file| {
            loop {
                match file.lock() {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    locked => return locked.map(|()| true),
                }
            }
        })?;
        locked.ok_or_else(|| ErrorKind::WouldBlock.into())
    }

    /// Takes that lock if it is free.
    fn try_turn(&self) -> io::Result<Option<File>> {
        self.turn_by(|file| match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        })
    }

    fn turn_by(&self, lock: impl Fn(&File) -> io::Result<bool>) -> io::Result<Option<File>> {
        loop {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            let path = self.folder.join(TURN);
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let file = match options.custom_flags(OFlag::O_NOFOLLOW.bits()).open(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                file => file?,
            };
            if !lock(&file)? {
                return Ok(None);
            }
            // The folder may have been removed meanwhile, and then the lock is void.
            let locked = file.metadata()?;
            if fs::metadata(&path)
                .is_ok_and(|it| (it.dev(), it.ino()) == (locked.dev(), locked.ino()))
            {
                return Ok(Some(file));
            }
        }
    }
}

/// Whether nobody holds the lock of a file, or it is gone.
fn is_free(path: &Path) -> io::Result<bool> {
    let file = match open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        file => file?,
    };
    // Shared, so that two who look don't take each other for the holder.
    match file.try_lock_shared() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Opens a file, and does not wait for the other end of what is a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW;
    OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)
}

fn unless_it_is_no_text(error: io::Error) -> io::Result<usize> {
    if error.kind() == ErrorKind::InvalidData { Ok(0) } else { Err(error) }
}
