//! The descendants of this process, as `/proc` shows them.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, SysconfVar, getpgrp, getpid, sysconf};

use super::{memory, sys};

/// One process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ProcessEntry {
    pub(super) pid: i32,
    parent: i32,
    group: i32,
    pub(super) session: i32,
    /// In clock ticks: of the process, and of those of its children that it reaped.
    cpu: [u64; 2],
    resident_pages: u64,
    /// Where its code and its stack begin, which `exec` puts elsewhere; zeros where that is hidden.
    layout: [u64; 2],
    /// In clock ticks since the machine came up.
    pub(super) started: u64,
    /// It has ended, and was not reaped yet.
    pub(super) is_dead: bool,
}

/// Sends SIGKILL to this process's children but those that `spare` names, and to all their
/// descendants. Answers with the children among them, which are to be reaped.
///
/// Groups are killed whole: against a group's signal no fork can win. That never reaches beyond
/// the descendants, since a group lies within one session and each command's session began with
/// its warden. What is started between the look and the kill is left for the next look.
pub(super) fn kill_descendants(spare: impl Fn(&ProcessEntry) -> bool) -> Vec<i32> {
    let mut of_parent: HashMap<i32, Vec<ProcessEntry>> = HashMap::new();
    for entry in processes() {
        of_parent.entry(entry.parent).or_default().push(entry);
    }
    let mut children = of_parent.remove(&getpid().as_raw()).unwrap_or_default();
    children.retain(|child| !spare(child));
    let pids = children.iter().map(|child| child.pid).collect();

    let own_group = getpgrp().as_raw();
    let mut groups = BTreeSet::new();
    let mut queue = children;
    while let Some(entry) = queue.pop() {
        if entry.group != own_group && groups.insert(entry.group) {
            // What is gone already is an error that does not matter, here and below.
            let _ = killpg(Pid::from_raw(entry.group), Signal::SIGKILL);
        }
        let _ = kill(Pid::from_raw(entry.pid), Signal::SIGKILL);
        queue.extend(of_parent.remove(&entry.pid).unwrap_or_default());
    }
    pids
}

/// All processes at one time.
pub(super) struct ProcessTable {
    all: HashMap<i32, ProcessEntry>,
    children: HashMap<i32, Vec<i32>>,
}

/// What all below a process use.
#[derive(Clone, Copy, Default)]
pub(super) struct Sum {
    pub(super) memory_bytes: u64,
    pub(super) cpu_ms: u64,
    pub(super) processes: u64,
}

impl ProcessTable {
    pub(super) fn take() -> Self {
        let all: HashMap<i32, ProcessEntry> = processes().map(|entry| (entry.pid, entry)).collect();
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for entry in all.values() {
            children.entry(entry.parent).or_default().push(entry.pid);
        }
        Self { all, children }
    }

    /// Adds up what came of a child of this process, without itself; `pids` gets who that is and
    /// what is resident of each. A warden adopts what its command leaves behind, and reaps what
    /// ends.
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
                // Between vfork and exec it runs in its parent's memory, which is there once.
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

    /// A process and its parent, of which it is a copy: all that is resident of the one may be
    /// resident of the other, too. None once it has become another program.
    fn fork_of(&self, entry: &ProcessEntry) -> Option<[i32; 2]> {
        let parent = self.all.get(&entry.parent)?;
        let is_copy = entry.layout != [0, 0] && entry.layout == parent.layout;
        is_copy.then_some([entry.pid, parent.pid])
    }

    /// Sends SIGKILL to all that came of a child of this process, but not to itself.
    pub(super) fn kill_below(&self, warden: i32) {
        let Some(warden) = self.child(warden) else { return };
        let mut groups = BTreeSet::new();
        for entry in self.descendants(warden.pid) {
            // One may have joined its warden's group.
            if entry.group != warden.group && groups.insert(entry.group) {
                let _ = killpg(Pid::from_raw(entry.group), Signal::SIGKILL);
            }
            let _ = kill(Pid::from_raw(entry.pid), Signal::SIGKILL);
        }
    }

    /// All that came of a process as far as it is there, zombies left out.
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

    pub(super) fn pids(&self) -> impl Iterator<Item = i32> {
        self.all.values().filter(|entry| !entry.is_dead).map(|entry| entry.pid)
    }

    pub(super) fn parent(&self, pid: i32) -> Option<i32> {
        self.all.get(&pid).map(|entry| entry.parent)
    }

    /// A child of this process: another may have its number by now.
    fn child(&self, pid: i32) -> Option<&ProcessEntry> {
        self.all.get(&pid).filter(|entry| entry.parent == getpid().as_raw())
    }
}

/// A time since the machine came up, of clock ticks.
pub(super) fn since_boot(ticks: u64) -> Duration {
    Duration::from_millis(ticks.saturating_mul(1000) / units().0)
}

/// Clock ticks a second, and bytes a page.
fn units() -> (u64, u64) {
    let constant = |name| u64::try_from(sysconf(name).ok()??).ok().filter(|unit| *unit > 0);
    (constant(SysconfVar::CLK_TCK).unwrap_or(100), constant(SysconfVar::PAGE_SIZE).unwrap_or(4096))
}

/// One process; None if there is none of this number.
pub(super) fn process(pid: i32) -> Option<ProcessEntry> {
    parse(pid, &std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn processes() -> impl Iterator<Item = ProcessEntry> {
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|folder| {
        let pid = folder.file_name().to_str()?.parse().ok()?;
        // A process that ended meanwhile has no file any more.
        let stat = std::fs::read(folder.path().join("stat")).ok()?;
        parse(pid, &stat)
    })
}

/// `stat` is: pid, name in brackets (which may hold brackets and spaces, and any bytes), state,
/// parent, group, session, and more; counted from the state on, the four times are the 12th to
/// 15th, the start the 20th, the resident pages the 22nd, the starts of code and stack the 24th and
/// 26th.
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
    use super::*;

    #[test]
    fn a_name_cannot_pass_for_numbers() {
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
    fn this_process_is_seen() {
        let own = getpid().as_raw();
        let parent = nix::unistd::getppid().as_raw();
        assert!(processes().any(|entry| entry.pid == own && entry.parent == parent));
    }
}
