//! Files that `denied` patterns match and git tracks: an agent that may read the git folder reads
//! them by `git show`. Parses git's index directly: a repository can make git run programs.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::zone::{GitAccess, Zone, ZoneSpec};

/// Bytes of an index that are read; a million files take half of that.
const LONGEST: u64 = 256 * 1024 * 1024;

/// Files that are checked.
const MOST: usize = 200_000;

/// Files that are listed.
const MOST_NAMED: usize = 5;

/// Returns a warning about denied files that git tracks; None without any, or if no agent may read
/// the git folder.
pub fn remembered(config: &Config) -> Option<String> {
    if config.zones.git == GitAccess::None {
        return None;
    }
    let (top, tracked) = tracked(&config.team.workspace)?;
    // Most zones have the same patterns.
    let mut lists: Vec<&ZoneSpec> = Vec::new();
    for spec in config.agents.iter().map(|agent| &agent.zone.spec) {
        if !spec.denied.is_empty() && !lists.iter().any(|known| known.denied == spec.denied) {
            lists.push(spec);
        }
    }
    let zones: Vec<Zone> = lists.iter().filter_map(|spec| Zone::compile(spec).ok()).collect();
    let mut denied = Vec::new();
    let mut count = 0_usize;
    for path in tracked.into_iter().take(MOST) {
        let path = top.join(path);
        let Ok(inside) = path.strip_prefix(&config.team.workspace) else { continue };
        let Some(inside) = inside.to_str() else { continue };
        let pattern = zones.iter().find_map(|zone| zone.denies(inside));
        if let Some(pattern) = pattern {
            count += 1;
            if denied.len() < MOST_NAMED {
                denied.push(format!("{inside} (`{pattern}`)"));
            }
        }
    }
    let more = count - denied.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (count > 0).then(|| {
        format!(
            "denied files that git tracks: {}{more}. Whoever may read the git folder reads them by \
             `git show HEAD:FILE`, and what older commits have: take them out by `git rm --cached FILE`, \
             change what was secret in them, or set `[zones] git = \"none\"`",
            denied.join(", ")
        )
    })
}

/// Returns the top of the workspace's repository, and the paths of its index.
fn tracked(workspace: &Path) -> Option<(PathBuf, Vec<PathBuf>)> {
    let top = workspace.ancestors().find(|folder| folder.join(".git").exists())?;
    let git = top.join(".git");
    let folder = if git.is_dir() {
        git
    } else {
        let text = read(&git, 4096)?;
        let text = String::from_utf8(text).ok()?;
        top.join(text.strip_prefix("gitdir: ")?.trim_end_matches(['\n', '\r']))
    };
    let index = read(&folder.join("index"), LONGEST)?;
    Some((top.to_owned(), paths(&index).unwrap_or_default()))
}

/// Reads a regular file of at most `longest` bytes.
fn read(file: &Path, longest: u64) -> Option<Vec<u8>> {
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > longest {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(longest).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns the paths of an index of version 2, 3 or 4; None if it is malformed.
fn paths(index: &[u8]) -> Option<Vec<PathBuf>> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    /// Bytes of an entry before its flags.
    const STAT: usize = 60;
    const EXTENDED: u16 = 0x4000;
    let word = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    if index.get(..4)? != b"DIRC" {
        return None;
    }
    let (version, count) = (word(4)?, word(8)?);
    if !(2..=4).contains(&version) {
        return None;
    }
    let (mut at, mut last, mut found) = (12, Vec::new(), Vec::new());
    for _ in 0..count {
        let flags = u16::from_be_bytes(index.get(at + STAT..at + STAT + 2)?.try_into().ok()?);
        let name = at + STAT + if flags & EXTENDED == 0 { 2 } else { 4 };
        if version == 4 {
            // The number of bytes to drop from the previous name, then the rest.
            let (cut, rest) = varint(index, name)?;
            let end = rest + memchr::memchr(0, index.get(rest..)?)?;
            last.truncate(last.len().checked_sub(cut)?);
            last.extend_from_slice(&index[rest..end]);
            at = end + 1;
        } else {
            let end = name + memchr::memchr(0, index.get(name..)?)?;
            last = index[name..end].to_vec();
            // Padded with at least one NUL to a multiple of eight.
            at += (end - at + 8) / 8 * 8;
        }
        found.push(PathBuf::from(OsStr::from_bytes(&last)));
    }
    Some(found)
}

/// Decodes git's variable-length integer; returns it with the offset after it.
fn varint(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
    }
    Some((value, at + 1))
}
