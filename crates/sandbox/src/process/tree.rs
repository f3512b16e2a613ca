//! The process table, read from `/proc`: finds, measures and kills descendants of a process.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Read as _;
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, SysconfVar, getpgrp, getpid, sysconf};

use super::{memory, sys};

/// Bytes of a process's `stat`: some 50 numbers and a name of 64 bytes are shorter.
const STAT_BYTES: usize = 2048;

/// One process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ProcessEntry {
    pub(super) pid: i32,
    parent: i32,
    group: i32,
    pub(super) session: i32,
    /// CPU time in clock ticks: of the process, and of the children it reaped.
    cpu: [u64; 2],
    resident_pages: u64,
    /// The start addresses of code and stack, which `exec` changes; zeros if hidden.
    layout: [u64; 2],
    /// In clock ticks since boot.
    pub(super) started: u64,
    /// A zombie: it has ended and was not reaped.
    pub(super) is_dead: bool,
}

/// Sends SIGKILL to this process's children, except those that `spare` selects, and to all their
/// descendants. Returns the killed children, for reaping.
///
/// Process groups are killed as a whole, since no fork escapes a group's signal. This never hits
/// other processes: a group lies within one session, and each command's session began with its
/// warden. Processes started meanwhile are left for the next call.
pub(super) fn kill_descendants(spare: impl Fn(&ProcessEntry) -> bool) -> Vec<i32> {
    let table = ProcessTable::take();
    let children = table.children.get(&getpid().as_raw()).into_iter().flatten();
    let children = children.filter_map(|pid| table.all.get(pid)).filter(|child| !spare(child));
    let children: Vec<_> = children.copied().collect();
    let below = children.iter().flat_map(|child| table.descendants(child.pid));
    kill_all(children.iter().copied().chain(below), getpgrp().as_raw());
    children.iter().map(|child| child.pid).collect()
}

/// Sends SIGKILL to processes, and to their groups except `spared`.
fn kill_all(entries: impl Iterator<Item = ProcessEntry>, spared: i32) {
    let mut groups = BTreeSet::new();
    for entry in entries {
        if entry.group != spared && groups.insert(entry.group) {
            // Here and below: fails if the process has ended already.
            let _ = killpg(Pid::from_raw(entry.group), Signal::SIGKILL);
        }
        let _ = kill(Pid::from_raw(entry.pid), Signal::SIGKILL);
    }
}

/// A snapshot of processes.
#[derive(Default)]
pub(super) struct ProcessTable {
    all: HashMap<i32, ProcessEntry>,
    children: HashMap<i32, Vec<i32>>,
}

/// The total usage of a process's descendants.
#[derive(Clone, Copy, Default)]
pub(super) struct Sum {
    pub(super) memory_bytes: u64,
    pub(super) cpu_ms: u64,
    pub(super) processes: u64,
}

impl ProcessTable {
    /// All processes of the machine.
    pub(super) fn take() -> Self {
        Self::of(processes())
    }

    /// These wardens, which are children of this process, and their descendants, however many other processes
    /// there are. Misses those below a process whose sibling ends at the same moment: good for measuring, not
    /// for killing.
    pub(super) fn take_below(wardens: impl IntoIterator<Item = i32>) -> Self {
        let mut found = Vec::new();
        let mut queue: Vec<_> = wardens.into_iter().collect();
        while let Some(pid) = queue.pop() {
            let Some(entry) = process(pid) else { continue };
            found.push(entry);
            match children_of(pid) {
                Some(children) => queue.extend(children),
                None => return Self::take(),
            }
        }
        Self::of(found.into_iter())
    }

    fn of(entries: impl Iterator<Item = ProcessEntry>) -> Self {
        let all: HashMap<i32, ProcessEntry> = entries.map(|entry| (entry.pid, entry)).collect();
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for entry in all.values() {
            children.entry(entry.parent).or_default().push(entry.pid);
        }
        Self { all, children }
    }

    /// Measures the descendants of `warden`, a child of this process; adds their pids and resident
    /// bytes to `pids`.
    pub(super) fn below(&self, warden: i32, pids: &mut Vec<(i32, u64)>) -> Sum {
        let mut sum = Sum::default();
        let Some(warden) = self.child(warden) else { return sum };
        let (per_second, page) = units();
        let mut ticks = warden.cpu[1];
        let all = self.descendants(warden.pid);
        let forks: Vec<_> = all.iter().filter_map(|entry| self.fork_of(entry)).collect();
        for entry in all {
            ticks += entry.cpu[0] + entry.cpu[1];
            sum.processes += 1;
            let is_fork = |[child, parent]: &[i32; 2]| [child, parent].contains(&&entry.pid);
            let resident = match forks.iter().find(|fork| is_fork(fork)) {
                // Between vfork and exec it shares its parent's memory, which counts once.
                Some([child, parent])
                    if *child == entry.pid && sys::share_memory(*child, *parent) =>
                {
                    continue;
                }
                Some(_) => memory::of_one(entry.pid),
                None => None,
            };
            let resident = resident.unwrap_or(entry.resident_pages * page);
            sum.memory_bytes += resident;
            pids.push((entry.pid, resident));
        }
        sum.cpu_ms = ticks * 1000 / per_second;
        sum
    }

    /// A forked process and its parent, which may share all resident pages. None after exec.
    fn fork_of(&self, entry: &ProcessEntry) -> Option<[i32; 2]> {
        let parent = self.all.get(&entry.parent)?;
        let is_copy = entry.layout != [0, 0] && entry.layout == parent.layout;
        is_copy.then_some([entry.pid, parent.pid])
    }

    /// Sends SIGKILL to the descendants of `warden`, a child of this process.
    pub(super) fn kill_below(&self, warden: i32) {
        let Some(warden) = self.child(warden) else { return };
        // A process may have joined the warden's group, which must survive.
        kill_all(self.descendants(warden.pid).into_iter(), warden.group);
    }

    /// The descendants of a process, without zombies.
    pub(super) fn descendants(&self, pid: i32) -> Vec<ProcessEntry> {
        let (mut found, mut queue) = (Vec::new(), vec![pid]);
        while let Some(parent) = queue.pop() {
            for child in self.children.get(&parent).into_iter().flatten() {
                queue.push(*child);
                found.extend(self.all.get(child).filter(|entry| !entry.is_dead).copied());
            }
        }
        found
    }

    /// Resident bytes of a process and its descendants. Shared pages count for each.
    pub(super) fn resident_below(&self, pid: i32) -> u64 {
        let own = self.all.get(&pid).copied();
        let pages = self.descendants(pid).into_iter().chain(own).map(|entry| entry.resident_pages);
        pages.sum::<u64>().saturating_mul(units().1)
    }

    pub(super) fn pids(&self) -> impl Iterator<Item = i32> {
        self.all.values().filter(|entry| !entry.is_dead).map(|entry| entry.pid)
    }

    pub(super) fn parent(&self, pid: i32) -> Option<i32> {
        self.all.get(&pid).map(|entry| entry.parent)
    }

    /// The process `pid` if it is a child of this process: pids are reused.
    fn child(&self, pid: i32) -> Option<&ProcessEntry> {
        self.all.get(&pid).filter(|entry| entry.parent == getpid().as_raw())
    }
}

/// Converts clock ticks since boot to a duration.
pub(super) fn since_boot(ticks: u64) -> Duration {
    Duration::from_millis(ticks.saturating_mul(1000) / units().0)
}

/// Clock ticks per second, and bytes per page.
fn units() -> (u64, u64) {
    let constant = |name| u64::try_from(sysconf(name).ok()??).ok().filter(|unit| *unit > 0);
    (constant(SysconfVar::CLK_TCK).unwrap_or(100), constant(SysconfVar::PAGE_SIZE).unwrap_or(4096))
}

/// Reads one process; None if it does not exist.
pub(super) fn process(pid: i32) -> Option<ProcessEntry> {
    // The kernel hands out all of it in one read, which halves the cost of a snapshot.
    let mut stat = [0; STAT_BYTES];
    let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut stat).ok()?;
    parse(pid, &stat[..length])
}

/// The parent of a process; None if it does not exist, or is hidden.
pub(super) fn parent_of(pid: i32) -> Option<i32> {
    Some(process(pid)?.parent)
}

/// The children of a process, which are those of its threads. None: this kernel does not list them
/// (`CONFIG_PROC_CHILDREN`).
fn children_of(pid: i32) -> Option<Vec<i32>> {
    let mut children = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        match std::fs::read_to_string(thread.path().join("children")) {
            Ok(pids) => {
                children.extend(pids.split_whitespace().filter_map(|it| it.parse::<i32>().ok()));
            }
            // The thread has ended, unless it is there without the file.
            Err(_) if !thread.path().exists() => {}
            Err(_) => return None,
        }
    }
    Some(children)
}

fn processes() -> impl Iterator<Item = ProcessEntry> {
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|folder| {
        // Fails if the process has ended in the meantime.
        process(folder.file_name().to_str()?.parse().ok()?)
    })
}

/// `stat` is: pid, name in parentheses (with any bytes in it), state, parent, group, session, and
/// more. Counted from the state, fields 12 to 15 are the four times, 20 is the start time, 22 the
/// resident pages, 24 and 26 the start addresses of code and stack.
fn parse(pid: i32, stat: &[u8]) -> Option<ProcessEntry> {
    let name_end = memchr::memrchr(b')', stat)?;
    let fields: Vec<_> =
        std::str::from_utf8(&stat[name_end + 1..]).ok()?.split_whitespace().collect();
    let id = |at: usize| fields.get(at)?.parse::<i32>().ok();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(ProcessEntry {
        pid,
        parent: id(1)?,
        group: id(2)?,
        session: id(3)?,
        cpu: [number(11)? + number(12)?, number(13)? + number(14)?],
        started: number(19)?,
        resident_pages: number(21)?,
        layout: [number(23)?, number(25)?],
        is_dead: matches!(*fields.first()?, "Z" | "X"),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_name_is_not_parsed_as_fields() {
        let stat =
            b"7 (a) S 1 1 1 (\xff) R 3 4 5 0 -1 4194560 1 0 0 0 20 3 7 1 20 0 1 0 99 4096 12 9 64 65 66 0";
        let entry = ProcessEntry {
            pid: 7,
            parent: 3,
            group: 4,
            session: 5,
            cpu: [23, 8],
            resident_pages: 12,
            layout: [64, 66],
            started: 99,
            is_dead: false,
        };
        assert_eq!(parse(7, stat), Some(entry));
        assert_eq!(parse(7, b"7 (a"), None);
        assert_eq!(parse(7, b"7 (a) S 1"), None);
    }

    #[test]
    fn what_a_thread_started_is_own_also_after_its_end() {
        use std::process::{Command, Stdio};
        let start = || {
            let mut command = Command::new("cat");
            command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
        };
        let mut children = [start(), std::thread::spawn(start).join().unwrap()];
        let own = getpid().as_raw();
        let found: Vec<_> = ProcessTable::take_below([own])
            .descendants(own)
            .iter()
            .map(|entry| entry.pid)
            .collect();
        for child in &mut children {
            assert!(found.contains(&child.id().cast_signed()), "{found:?}");
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let parent = nix::unistd::getppid().as_raw();
        assert!(ProcessTable::take_below([own]).pids().all(|pid| pid != parent));
    }

    #[test]
    fn this_process_is_seen() {
        let own = getpid().as_raw();
        let parent = nix::unistd::getppid().as_raw();
        assert!(processes().any(|entry| entry.pid == own && entry.parent == parent));
    }
}
