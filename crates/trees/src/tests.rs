//! Worktrees in real repositories.
#![allow(clippy::unwrap_used)]

mod cleaning;
mod conflicts;
mod kills;
mod landing;
mod making;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::lifecycle::{Bringing, Made, WorktreeRequest, make};
use crate::recovery::RecoveryError;
use crate::repository::GitRepository;
use crate::tree::{Worktree, Worktrees};

/// A repository with a few files, and an `$EISEN_DIR`.
struct Bed {
    folder: TempDir,
}

impl Bed {
    fn new() -> Self {
        let bed = Self { folder: TempDir::new().unwrap() };
        fs::create_dir_all(bed.main().join("src/deep")).unwrap();
        bed.git(&["init", "-q", "-b", "main"]);
        bed.git(&["config", "user.name", "Ann"]);
        // A process of git that goes on by itself would be somebody in a worktree.
        bed.git(&["config", "maintenance.auto", "false"]);
        bed.git(&["config", "user.email", "ann@example.com"]);
        bed.write("README.md", "shop\n");
        bed.write("src/cart.js", "one\ntwo\nthree\nfour\nfive\nsix\n");
        bed.write("src/deep/ünïcode \"quoted\".txt", "x\n");
        bed.write("run.sh", "#!/bin/sh\n");
        bed.write(".gitignore", "node_modules/\n.env\n*.log\n");
        fs::set_permissions(bed.main().join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("src/cart.js", bed.main().join("link")).unwrap();
        // Older than the index, as the files of a day's work are.
        for path in files_of(&bed.main()).into_keys() {
            age(&bed.main().join(path));
        }
        bed.git(&["add", "-A"]);
        bed.git(&["commit", "-q", "-m", "first"]);
        bed
    }

    fn top(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn main(&self) -> PathBuf {
        self.top().join("shop")
    }

    fn trees(&self) -> Worktrees {
        Worktrees::new(&self.top().join("eisen"))
    }

    fn repository(&self) -> GitRepository {
        GitRepository::find(&self.main()).unwrap()
    }

    fn write(&self, path: &str, text: &str) {
        write(&self.main(), path, text);
    }

    fn git(&self, args: &[&str]) -> String {
        git(&self.main(), args)
    }

    fn request(branch: &str) -> WorktreeRequest {
        WorktreeRequest {
            branch: branch.to_owned(),
            base: None,
            place: None,
            only: Vec::new(),
            bringing: Bringing::default(),
            build: vec!["node_modules".to_owned()],
            owner: "run-1".to_owned(),
            task: Some("Fix the cart".to_owned()),
        }
    }

    fn make(&self, branch: &str) -> Result<Made, RecoveryError> {
        make(&self.trees(), &self.repository(), &Self::request(branch))
    }

    /// A worktree that nothing holds.
    fn tree(&self, branch: &str) -> Worktree {
        self.make(branch).unwrap().held.tree
    }
}

fn write(top: &Path, path: &str, text: &str) {
    let file = top.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn git(folder: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(args).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let done = git.output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}

/// Makes a file look as if it had been changed an hour ago.
fn age(file: &Path) {
    let done = Command::new("touch").args(["-h", "-d", "1 hour ago"]).arg(file).status().unwrap();
    assert!(done.success());
}

/// Kind, permissions and content of each file and empty folder, but for git's own.
fn files_of(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let (mut files, mut ahead) = (BTreeMap::new(), vec![PathBuf::new()]);
    while let Some(folder) = ahead.pop() {
        for entry in fs::read_dir(top.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if path == Path::new(".git") {
                continue;
            }
            let found = entry.path().symlink_metadata().unwrap();
            if found.is_dir() {
                if fs::read_dir(entry.path()).unwrap().next().is_none() {
                    files.insert(path.clone(), (0, Vec::new()));
                }
                ahead.push(path);
            } else if found.is_symlink() {
                let named = fs::read_link(entry.path()).unwrap();
                files.insert(path, (found.mode(), named.as_os_str().as_bytes().to_vec()));
            } else {
                files.insert(path, (found.mode(), fs::read(entry.path()).unwrap()));
            }
        }
    }
    files
}

/// A name that is no text.
fn no_text() -> &'static OsStr {
    OsStr::from_bytes(b"caf\xe9.txt")
}
