//! Frees resident pages of the program itself, such as parsers and tables used only at the start.

#![allow(unsafe_code)]

use std::path::Path;
use std::ptr::with_exposed_provenance_mut;

use nix::libc;

/// Lets the kernel drop the pages of the program's code and constants. Pages that are needed again
/// are read from the file, usually from the page cache. Does nothing without `/proc/self/smaps`.
pub fn give_back_program() {
    let Ok(program) = std::fs::read_link("/proc/self/exe") else { return };
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    for (start, length) in unchanged(&maps, &program) {
        // SAFETY: the range is one mapping of this program's own file, private, not writable, and
        // without a page that was changed: dropped pages are read from the file when needed again.
        // Nothing unmaps the program while it runs.
        unsafe { libc::madvise(with_exposed_provenance_mut(start), length, libc::MADV_DONTNEED) };
    }
}

/// The read-only mappings of a file without changed pages, as start and length. (Relocated sections
/// are read-only, too, but changed.)
fn unchanged(maps: &str, file: &Path) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = None;
    for line in maps.lines() {
        if let Some((start, length, rest)) = mapping(line) {
            let is_constant = rest.starts_with("r--p") || rest.starts_with("r-xp");
            let path = rest.split_once('/').map(|(_, path)| Path::new("/").join(path));
            at = (is_constant && path.as_deref() == Some(file)).then_some((start, length));
        } else if let Some(changed) = line.strip_prefix("Anonymous:")
            && changed.trim() == "0 kB"
        {
            found.extend(at.take());
        }
    }
    found
}

/// Parses the first line of a mapping, `start-end rights offset device inode path` with start and
/// end in hexadecimal: returns start, length and the rest. None for other lines.
fn mapping(line: &str) -> Option<(usize, usize, &str)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let [start, end] = [start, end].map(|at| usize::from_str_radix(at, 16));
    let (start, end) = (start.ok()?, end.ok()?);
    Some((start, end.checked_sub(start)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unchanged_mappings_are_given_back() {
        let of = |rights, path, changed| {
            format!(
                "1000-3000 {rights} 00000000 fd:00 7     {path}\nSize: 8 kB\nRss: 8 kB\n\
                 Anonymous:  {changed} kB\nVmFlags: rd mr\n"
            )
        };
        let file = Path::new("/bin/a program");
        let found = |rights, path, changed| unchanged(&of(rights, path, changed), file);
        assert_eq!(found("r-xp", "/bin/a program", 0), [(0x1000, 0x2000)]);
        assert_eq!(found("r--p", "/bin/a program", 0), [(0x1000, 0x2000)]);
        assert_eq!(found("r--p", "/bin/a program", 4), []);
        assert_eq!(found("rw-p", "/bin/a program", 0), []);
        assert_eq!(found("r--p", "/bin/another", 0), []);
        assert_eq!(found("r-xp", "", 0), []);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_program_goes_on_and_has_less_in_memory() {
        let resident = || -> u64 {
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("RssFile:"));
            line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or_default()
        };
        let before = resident();
        give_back_program();
        let after = resident();
        assert!(after < before, "{before} kB before, {after} kB after");
    }
}
