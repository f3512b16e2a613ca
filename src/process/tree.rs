//! The descendants of this process, as `/proc` shows them.

use std::collections::{BTreeSet, HashMap};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, SysconfVar, getpgrp, getpid, sysconf};

use super::Resources;

/// One process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) pid: i32,
    parent: i32,
    group: i32,
    pub(super) session: i32,
    /// In clock ticks: of the process, and of those of its children that it reaped.
    cpu: [u64; 2],
    resident_pages: u64,
}

/// Sends SIGKILL to this process's children but those that `spare` names, and to all their
/// descendants. Answers with the children among them, which are to be reaped.
///
/// Groups are killed whole: against a group's signal no fork can win. That never reaches beyond
/// the descendants, since a group lies within one session and each command's session began with
/// its warden. What is started between the look and the kill is left for the next look.
pub(super) fn kill_descendants(spare: impl Fn(&Entry) -> bool) -> Vec<i32> {
    let mut of_parent: HashMap<i32, Vec<Entry>> = HashMap::new();
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

/// What each of our commands, named by the pid of its process, takes with all that came of it. One
/// that is gone, or not ours, is left out.
pub(super) fn resources(commands: &[u32]) -> HashMap<u32, Resources> {
    let all: HashMap<i32, Entry> = processes().map(|entry| (entry.pid, entry)).collect();
    let mut of_parent: HashMap<i32, Vec<&Entry>> = HashMap::new();
    for entry in all.values() {
        of_parent.entry(entry.parent).or_default().push(entry);
    }
    let measure = |&command: &u32| {
        let process = all.get(&i32::try_from(command).ok()?)?;
        let warden = all.get(&process.parent)?;
        (warden.parent == getpid().as_raw()).then_some(())?;
        // The warden adopted what its command left behind, and reaped what ended since; it is not
        // counted itself.
        let (mut ticks, mut pages) = (warden.cpu[1], 0);
        let mut queue = vec![warden.pid];
        while let Some(parent) = queue.pop() {
            for child in of_parent.get(&parent).into_iter().flatten() {
                ticks += child.cpu[0] + child.cpu[1];
                pages += child.resident_pages;
                queue.push(child.pid);
            }
        }
        Some((command, resources_of(ticks, pages)?))
    };
    commands.iter().filter_map(measure).collect()
}

fn resources_of(ticks: u64, pages: u64) -> Option<Resources> {
    let constant = |name| u64::try_from(sysconf(name).ok()??).ok();
    let per_second = constant(SysconfVar::CLK_TCK)?;
    let page = constant(SysconfVar::PAGE_SIZE)?;
    Some(Resources { memory_bytes: pages * page, cpu_ms: ticks * 1000 / per_second })
}

fn processes() -> impl Iterator<Item = Entry> {
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|folder| {
        let pid = folder.file_name().to_str()?.parse().ok()?;
        // A process that ended meanwhile has no file any more.
        let stat = std::fs::read(folder.path().join("stat")).ok()?;
        parse(pid, &stat)
    })
}

/// `stat` is: pid, name in brackets (which may hold brackets and spaces, and any bytes), state,
/// parent, group, session, and more; counted from the state on, the four times are the 12th to
/// 15th, and the resident pages the 22nd.
fn parse(pid: i32, stat: &[u8]) -> Option<Entry> {
    let name_end = memchr::memrchr(b')', stat)?;
    let fields: Vec<_> =
        std::str::from_utf8(&stat[name_end + 1..]).ok()?.split_whitespace().collect();
    let id = |at: usize| fields.get(at)?.parse::<i32>().ok();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Entry {
        pid,
        parent: id(1)?,
        group: id(2)?,
        session: id(3)?,
        cpu: [number(11)? + number(12)?, number(13)? + number(14)?],
        resident_pages: number(21)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_pass_for_numbers() {
        let stat =
            b"7 (a) S 1 1 1 (\xff) R 3 4 5 0 -1 4194560 1 0 0 0 20 3 7 1 20 0 1 0 99 4096 12 0";
        let entry =
            Entry { pid: 7, parent: 3, group: 4, session: 5, cpu: [23, 8], resident_pages: 12 };
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
