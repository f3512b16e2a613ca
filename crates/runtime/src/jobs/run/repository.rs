//! Which commit a workspace is at, read from the files of git.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Bytes of a file that are read.
const LONGEST: u64 = 4 << 20;

pub(super) struct Repository {
    folder: PathBuf,
}

impl Repository {
    pub(super) fn new(workspace: &Path) -> Self {
        let folder = workspace.join(".git");
        // Of a further working tree it is a file that names the folder.
        let named = read(&folder).and_then(|text| {
            let place = text.strip_prefix("gitdir:")?.trim();
            Some(workspace.join(place))
        });
        Self { folder: named.unwrap_or(folder) }
    }

    /// The commit that is checked out; None if there is none.
    pub(super) fn head(&self) -> Option<String> {
        let head = read(&self.folder.join("HEAD"))?;
        let Some(name) = head.trim().strip_prefix("ref:") else { return hash(&head) };
        let name = name.trim();
        if !name.starts_with("refs/") || name.contains("..") {
            return None;
        }
        let common = read(&self.folder.join("commondir"));
        let common = common.map_or_else(|| self.folder.clone(), |it| self.folder.join(it.trim()));
        let loose = |folder: &Path| hash(&read(&folder.join(name))?);
        loose(&self.folder).or_else(|| loose(&common)).or_else(|| {
            let packed = read(&common.join("packed-refs"))?;
            let of_name = |line: &&str| line.split_once(' ').is_some_and(|(_, it)| it == name);
            hash(packed.lines().find(of_name)?.split(' ').next()?)
        })
    }
}

fn hash(text: &str) -> Option<String> {
    let text = text.trim();
    let is_hash = (40..=64).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_hexdigit());
    is_hash.then(|| text.to_owned())
}

fn read(file: &Path) -> Option<String> {
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(file).ok()?.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_commit_is_found_wherever_git_keeps_it() {
        let dir = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let file = dir.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        let (one, other) = ("a".repeat(40), "b".repeat(40));
        let head = |workspace: &str| Repository::new(&dir.path().join(workspace)).head();
        assert_eq!(head(""), None);
        write(".git/HEAD", "ref: refs/heads/main\n");
        assert_eq!(head(""), None, "nothing is committed yet");
        write(".git/packed-refs", &format!("# pack-refs\n{one} refs/heads/main\n"));
        assert_eq!(head(""), Some(one.clone()));
        write(".git/refs/heads/main", &format!("{other}\n"));
        assert_eq!(head(""), Some(other.clone()));
        write(".git/worktrees/w/HEAD", "ref: refs/heads/main\n");
        write(".git/worktrees/w/commondir", "../..\n");
        write("w/.git", &format!("gitdir: {}/.git/worktrees/w\n", dir.path().display()));
        assert_eq!(head("w"), Some(other));
        write(".git/HEAD", &one);
        assert_eq!(head(""), Some(one));
        write(".git/HEAD", "ref: refs/../../secret\n");
        assert_eq!(head(""), None);
    }
}
