//! Worktrees are measured against git in the same run: one of 10,000 files against `git worktree add`, a sparse one
//! of 500 of them, and merges in memory of 20 branches with one another against `git merge-tree`. The results are medians
//! of ratios. As root, where `mkfs.btrfs` is installed, the first two once more on a file system that shares contents,
//! beside two programs that share the contents of all files and do nothing else: no worktree is made in less.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::figures::median;
use eisen_core::landing::between;
use eisen_core::lifecycle::{Bringing, WorktreeRequest, make};
use eisen_core::repository::GitRepository;
use eisen_core::tree::Worktrees;

const FOLDERS: usize = 100;
const FILES: usize = 100;
const PART: usize = 5;
const BRANCHES: usize = 20;
const ROUNDS: usize = 5;

/// Ratios that are aimed at.
const SHARED: f64 = 0.6;
const COPIED: f64 = 1.05;
const SPARSE: f64 = 0.25;
const MERGED: f64 = 1.2;

pub(crate) fn run() {
    let folder = tempfile::tempdir().unwrap();
    let bench = TreeBench::new(folder.path());
    println!("{} files, to `git worktree add`, {ROUNDS} rounds", FOLDERS * FILES);
    bench.worktrees("here", COPIED);
    bench.merges();
    drop(folder);
    match Btrfs::mount() {
        Some(volume) => {
            let bench = TreeBench::new(&volume.place);
            bench.worktrees("contents shared", SHARED);
            bench.least();
        }
        None => println!("{:<34}       - it needs root and mkfs.btrfs", "contents shared"),
    }
}

/// A repository, and what is made of it.
struct TreeBench {
    main: PathBuf,
    repository: GitRepository,
    trees: Worktrees,
}

impl TreeBench {
    fn new(folder: &Path) -> Self {
        let folder = folder.canonicalize().unwrap();
        let main = folder.join("main");
        for at in 0..FOLDERS {
            let part = main.join(format!("part{at}"));
            fs::create_dir_all(&part).unwrap();
            for file in 0..FILES {
                let text = format!("{at} {file}\n").repeat(if file == 0 { 20_000 } else { 200 });
                fs::write(part.join(format!("{file}.txt")), text).unwrap();
            }
        }
        git(&main, &["init", "-q", "-b", "main"]);
        git(&main, &["config", "user.name", "Bench"]);
        git(&main, &["config", "user.email", "bench@localhost"]);
        git(&main, &["add", "-A"]);
        git(&main, &["commit", "-qm", "first"]);
        // What git wrote in the same moment as its index is read again each time.
        std::thread::sleep(Duration::from_secs(2));
        git(&main, &["update-index", "--refresh", "-q"]);
        let repository = GitRepository::find(&main).unwrap();
        Self { main, repository, trees: Worktrees::new(&folder.join("eisen")) }
    }

    /// Makes worktrees, whole and sparse, in turns with git's own.
    fn worktrees(&self, place: &str, bound: f64) {
        let (mut whole, mut sparse) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let bare = self.bare(round);
            whole.push(self.own(&format!("own{round}"), Vec::new()).div_duration_f64(bare));
            let part = (0..PART).map(|at| format!("part{at}")).collect();
            sparse.push(self.own(&format!("part{round}"), part).div_duration_f64(bare));
        }
        row(&format!("a worktree, {place}"), median(whole), bound);
        row(&format!("a sparse one of 500, {place}"), median(sparse), SPARSE);
    }

    /// Has two programs share the contents of all files, in turns with git's own worktrees.
    fn least(&self) {
        let ratios = (ROUNDS..2 * ROUNDS).map(|round| {
            let bare = self.bare(round);
            let place = self.main.join("../least").join(round.to_string());
            fs::create_dir_all(&place).unwrap();
            let took = timed(|| {
                let halves = [0..FOLDERS / 2, FOLDERS / 2..FOLDERS].map(|half| {
                    let mut copy = Command::new("cp");
                    copy.args(["-r", "--reflink=always", "-t"]).arg(&place);
                    copy.args(half.map(|at| self.main.join(format!("part{at}")))).spawn().unwrap()
                });
                for mut half in halves {
                    assert!(half.wait().unwrap().success());
                }
            });
            took.div_duration_f64(bare)
        });
        println!("{:<34}{:>8.2}   the least", "contents shared, and no more", median(ratios));
    }

    fn bare(&self, round: usize) -> Duration {
        let name = format!("bare{round}");
        let place = self.main.join("../bare").join(&name);
        let place = place.to_str().unwrap();
        let took = timed(|| git(&self.main, &["worktree", "add", "-q", "-b", &name, place]));
        git(&self.main, &["worktree", "remove", "--force", place]);
        took
    }

    fn own(&self, branch: &str, only: Vec<String>) -> Duration {
        let request = WorktreeRequest {
            branch: branch.to_owned(),
            base: None,
            place: None,
            only,
            bringing: Bringing::default(),
            build: Vec::new(),
            owner: String::new(),
            task: None,
        };
        let began = Instant::now();
        let made = make(&self.trees, &self.repository, &request).unwrap();
        let took = began.elapsed();
        assert_eq!(git(&made.held.tree.path, &["status", "--porcelain"]), "");
        made.held.discard().unwrap();
        took
    }

    /// Merges all branches with one another.
    fn merges(&self) {
        for at in 0..BRANCHES {
            let name = format!("b{at}");
            git(&self.main, &["checkout", "-q", "-b", &name, "main"]);
            fs::write(self.main.join(format!("part{at}/0.txt")), "changed\n").unwrap();
            git(&self.main, &["commit", "-qam", "one"]);
        }
        git(&self.main, &["checkout", "-q", "main"]);
        let pairs: Vec<_> = (0..BRANCHES)
            .flat_map(|one| (one + 1..BRANCHES).map(move |other| [one, other]))
            .map(|pair| pair.map(|at| format!("refs/heads/b{at}")))
            .collect();
        let ratios = (0..ROUNDS).map(|_| {
            let bare = timed(|| {
                for [one, other] in &pairs {
                    git(&self.main, &["merge-tree", "--write-tree", one, other]);
                }
            });
            let own = timed(|| {
                for [one, other] in &pairs {
                    assert!(
                        between(&self.repository, one, other, None).unwrap().conflicts.is_empty()
                    );
                }
            });
            own.div_duration_f64(bare)
        });
        row(&format!("{} merges in memory", pairs.len()), median(ratios), MERGED);
    }
}

fn row(name: &str, ratio: f64, bound: f64) {
    println!("{name:<34}{ratio:>8.2}   at most {bound}");
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

fn git(folder: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    let done = git.args(args).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}

/// A file system in a file, which is mounted until this is dropped.
struct Btrfs {
    _file: tempfile::TempDir,
    place: PathBuf,
}

impl Btrfs {
    fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().ok()?;
        let (image, place) = (folder.path().join("image"), folder.path().join("volume"));
        fs::create_dir(&place).ok()?;
        fs::File::create(&image).ok()?.set_len(4 << 30).ok()?;
        let is_done = |command: &mut Command| {
            let silent = command.stdout(Stdio::null()).stderr(Stdio::null());
            silent.status().is_ok_and(|end| end.success())
        };
        let is_there = is_done(Command::new("mkfs.btrfs").arg("-q").arg(&image))
            && is_done(Command::new("mount").args(["-o", "loop"]).args([&image, &place]));
        is_there.then_some(Self { _file: folder, place })
    }
}

impl Drop for Btrfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.place).status();
    }
}
