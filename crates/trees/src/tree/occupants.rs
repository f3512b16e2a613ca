//! Finds the processes that are in a folder: that work in it, or have a file of it open.

use std::fs;
use std::path::Path;

/// A process in a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Occupant {
    pub pid: u32,
    /// The name of its program.
    pub name: String,
}

/// The processes in a folder. Those of other users are not seen, and none are where there is no `/proc`.
pub fn occupants(folder: &Path) -> Vec<Occupant> {
    let own = std::process::id();
    let mut found: Vec<_> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own && is_in(*pid, folder))
        .map(|pid| Occupant { pid, name: name_of(pid) })
        .collect();
    found.sort_by_key(|occupant| occupant.pid);
    found
}

/// Ancestors of a process that are looked at.
const MOST_ABOVE: usize = 100;

/// Whether a process is one, or was started below it.
pub fn is_below(pid: u32, above: u32) -> bool {
    let parent = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may have blanks and brackets.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    std::iter::successors(Some(pid), parent).take(MOST_ABOVE).any(|pid| pid == above)
}

fn is_in(pid: u32, folder: &Path) -> bool {
    let process = Path::new("/proc").join(pid.to_string());
    let leads = |link: &Path| fs::read_link(link).is_ok_and(|place| place.starts_with(folder));
    if ["cwd", "root", "exe"].iter().any(|name| leads(&process.join(name))) {
        return true;
    }
    let open = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    open.map(|entry| entry.path()).any(|link| leads(&link))
}

fn name_of(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}
