//! Commits of a git repository, read by git's plumbing: no filter, hook or external program of the
//! repository runs.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

/// A file that a commit has.
pub(super) struct Committed {
    /// Relative to the root of the repository.
    pub(super) path: PathBuf,
    pub(super) content: Vec<u8>,
    /// The file in each parent that has it.
    pub(super) parents: Vec<Vec<u8>>,
}

pub(super) struct Repository {
    /// The root of the work tree.
    pub(super) root: PathBuf,
}

impl Repository {
    /// The repository that a folder is in.
    pub(super) fn of(folder: &Path) -> anyhow::Result<Self> {
        let root = git(folder, &["rev-parse", "--show-toplevel"])?;
        Ok(Self { root: PathBuf::from(OsStr::from_bytes(root.trim_ascii_end())) })
    }

    /// The id of a commit.
    pub(super) fn commit(&self, revision: &str) -> anyhow::Result<String> {
        let name = format!("{revision}^{{commit}}");
        let id = git(&self.root, &["rev-parse", "--verify", "--end-of-options", &name])?;
        Ok(String::from_utf8_lossy(id.trim_ascii()).into_owned())
    }

    /// The content of a file in a commit; None if it has no such file.
    pub(super) fn content(&self, commit: &str, path: &Path) -> Option<Vec<u8>> {
        let name = [commit.as_bytes(), b":", path.as_os_str().as_bytes()].concat();
        git(&self.root, &[OsStr::new("cat-file"), OsStr::new("blob"), OsStr::from_bytes(&name)])
            .ok()
    }

    /// The files that a commit changed in all its parents, below `path`.
    pub(super) fn changed(&self, commit: &str, path: &Path) -> anyhow::Result<Vec<Committed>> {
        let line = git(&self.root, &["rev-list", "--parents", "-n1", commit])?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let parents: Vec<_> = line.split_whitespace().skip(1).collect();
        let mut files: Vec<(Committed, usize)> = Vec::new();
        let trees: Vec<Vec<&str>> = match &parents[..] {
            [] => vec![vec!["--root", commit]],
            parents => parents.iter().map(|parent| vec![*parent, commit]).collect(),
        };
        for tree in &trees {
            let options =
                ["diff-tree", "-r", "-M", "-z", "--raw", "--no-commit-id", "--no-ext-diff"];
            let raw = git(&self.root, &[&options[..], tree].concat())?;
            for (blobs, new) in entries(&raw) {
                let [old_blob, new_blob] = blobs;
                if !new.starts_with(path) {
                    continue;
                }
                if !files.iter().any(|(file, _)| file.path == new) {
                    let Some(content) = self.blob(&new_blob) else { continue };
                    let path = new.clone();
                    files.push((Committed { path, content, parents: Vec::new() }, 0));
                }
                let of_path = files.iter_mut().find(|(file, _)| file.path == new);
                if let Some((file, changed)) = of_path {
                    file.parents.extend(self.blob(&old_blob));
                    *changed += 1;
                }
            }
        }
        files.retain(|(_, changed)| *changed == trees.len());
        Ok(files.into_iter().map(|(file, _)| file).collect())
    }

    fn blob(&self, id: &str) -> Option<Vec<u8>> {
        let is_none = id.bytes().all(|byte| byte == b'0');
        (!is_none).then(|| git(&self.root, &["cat-file", "blob", id]).ok()).flatten()
    }
}

/// The blobs before and after, and the path, of each file that exists after.
fn entries(raw: &[u8]) -> Vec<([String; 2], PathBuf)> {
    let mut fields = raw.split(|byte| *byte == 0);
    let mut entries = Vec::new();
    while let Some(header) = fields.next().filter(|header| header.starts_with(b":")) {
        let header = String::from_utf8_lossy(header).into_owned();
        let parts: Vec<_> = header.split(' ').collect();
        let [_, new_mode, old, new, status] = parts[..] else { break };
        let mut path = fields.next().unwrap_or_default();
        if status.starts_with(['R', 'C']) {
            path = fields.next().unwrap_or_default();
        }
        // No symlink, no submodule, no removed file.
        if new_mode.starts_with("100") {
            let blobs = [old.to_owned(), new.to_owned()];
            entries.push((blobs, PathBuf::from(OsStr::from_bytes(path))));
        }
    }
    entries
}

fn git<S: AsRef<OsStr>>(folder: &Path, args: &[S]) -> anyhow::Result<Vec<u8>> {
    let mut git = Command::new("git");
    git.arg("--no-pager").args(["-c", "core.fsmonitor=false"]).args(args).current_dir(folder);
    git.env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C");
    let output = git.output().context("cannot run git")?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        let why = why.lines().next().unwrap_or("it failed").to_owned();
        bail!("git in {}: {}", folder.display(), why.trim_start_matches("fatal: "));
    }
    Ok(output.stdout)
}
