//! The tickets of one place: who takes the next number, and which tickets live.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::holder::SlotHolder;
use super::ticket::{LONGEST, Ticket, kept_at, lock_file, number_of, pipe_of, remove};
use super::waiter::SlotWaiter;
use crate::kept::{self, HeldLock, LockAt, PATIENCE, is_locked, make_folder};

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

/// The state of a number's ticket.
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
        self.take_in(&self.turn(PATIENCE)?, holder)
    }

    /// As [`Queue::take`], but None where another process takes one, or where many have one.
    pub(super) fn try_take(&self, holder: &SlotHolder) -> io::Result<Option<Ticket>> {
        let turn = match self.turn(Duration::ZERO) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            turn => turn?,
        };
        if self.numbers()?.len() > FEW {
            return Ok(None);
        }
        self.take_in(&turn, holder.clone()).map(Some)
    }

    fn take_in(&self, turn: &HeldLock, holder: SlotHolder) -> io::Result<Ticket> {
        let mut last = 0;
        for number in self.numbers()? {
            last = number;
            let file = lock_file(&self.folder, number);
            if !is_locked(&file)? {
                remove(&file)?;
                remove(&pipe_of(&file))?;
            }
        }
        // A number is not used again, also after its ticket has ended.
        let mut noted = String::new();
        (&**turn).take(LONGEST).read_to_string(&mut noted).or_else(unless_it_is_no_text)?;
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

    /// The holders and the waiters before a number.
    pub(super) fn standing(&self, number: u64) -> io::Result<SlotWaiter> {
        let mut standing = SlotWaiter::default();
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
            if is_locked(&lock_file(&self.folder, number))? {
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
        let _turn = self.turn(PATIENCE)?;
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
        if !is_locked(&file)? {
            return Ok(QueueLook::Gone);
        }
        Ok(match kept_at(&file).read_json::<SlotHolder>() {
            Ok(Some(holder)) if holder.is_alive() => QueueLook::Live(Some(holder)),
            Ok(_) => QueueLook::Gone,
            Err(error) if error.kind() == ErrorKind::InvalidData => QueueLook::Live(None),
            Err(error) => return Err(error),
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

    /// Takes the lock that protects the taking of a number. It is held for microseconds.
    fn turn(&self, patience: Duration) -> io::Result<HeldLock> {
        let path = self.folder.join(TURN);
        loop {
            make_folder(&self.folder)?;
            match kept::lock(LockAt::File(&path), patience) {
                // The folder was removed meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                lock => return lock,
            }
        }
    }
}

fn unless_it_is_no_text(error: io::Error) -> io::Result<usize> {
    if error.kind() == ErrorKind::InvalidData { Ok(0) } else { Err(error) }
}
