//! The descendants of this process, as `/proc` shows them.

use std::collections::{BTreeSet, HashMap};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpgrp, getpid};

/// One process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    pub(super) pid: i32,
    parent: i32,
    group: i32,
    pub(super) session: i32,
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

fn processes() -> impl Iterator<Item = Entry> {
    std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|folder| {
        let pid = folder.file_name().to_str()?.parse().ok()?;
        // A process that ended meanwhile has no file any more.
        let stat = std::fs::read(folder.path().join("stat")).ok()?;
        parse(pid, &stat)
    })
}

/// `stat` is: pid, name in brackets (which may hold brackets and spaces, and any bytes), state,
/// parent, group, session, and more.
fn parse(pid: i32, stat: &[u8]) -> Option<Entry> {
    let name_end = memchr::memrchr(b')', stat)?;
    let mut numbers = std::str::from_utf8(&stat[name_end + 1..]).ok()?.split_whitespace().skip(1);
    let mut next = || numbers.next()?.parse().ok();
    Some(Entry { pid, parent: next()?, group: next()?, session: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_pass_for_numbers() {
        let stat = b"7 (a) S 1 1 1 (\xff) R 3 4 5 0 -1 4194560 1";
        assert_eq!(parse(7, stat), Some(Entry { pid: 7, parent: 3, group: 4, session: 5 }));
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
