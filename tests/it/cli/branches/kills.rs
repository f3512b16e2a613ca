//! Commands are killed at any moment: nothing is lost, and git works.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use super::{command, eisen, git, git_in, listed, repository, run_args, tree};
use crate::harness::{Stage, program};

/// Contents that nothing may lose, by the path in the worktree.
fn contents(round: usize) -> BTreeMap<String, String> {
    ["untracked.txt", "src/cart.js", ".env", "staged.txt"]
        .map(|path| (path.to_owned(), format!("{path} of round {round}\n")))
        .into()
}

/// Whether a content is in the worktree, or in an object that a ref leads to.
fn is_kept(stage: &Stage, path: &str, content: &str) -> bool {
    if fs::read_to_string(tree(stage, "fix").join(path)).is_ok_and(|now| now == content) {
        return true;
    }
    let folder = stage.path("hashed");
    fs::write(&folder, content).unwrap();
    let name = git(stage, &["hash-object", "--no-filters", folder.to_str().unwrap()]);
    let all = git(stage, &["rev-list", "--all", "--objects"]);
    all.lines().any(|line| line.split(' ').next() == Some(&name))
}

/// How often commands are killed: `.ci/long` does it more often.
fn rounds() -> usize {
    std::env::var("EISEN_TEST_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(25)
}

/// A command, and how long it takes here and now.
struct Step<'a> {
    args: &'a [&'a str],
    takes: Duration,
}

impl Step<'_> {
    /// Kills the command at a part of the time that it takes, with all that it started or alone. Returns whether that
    /// came before its end.
    fn kill(&mut self, stage: &Stage, percent: u32, with_all: bool) -> bool {
        let began = Instant::now();
        let mut started = command(stage, self.args);
        started.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut started = started.spawn().unwrap();
        std::thread::sleep(self.takes * percent / 100);
        if started.try_wait().unwrap().is_some() {
            // It is faster now.
            self.takes = self.takes * percent / 100;
            return false;
        }
        let pid = Pid::from_raw(i32::try_from(started.id()).unwrap());
        let _ = if with_all { killpg(pid, Signal::SIGKILL) } else { kill(pid, Signal::SIGKILL) };
        started.wait().unwrap();
        // So that kills near its end stay there.
        self.takes = self.takes.max(began.elapsed());
        true
    }

    fn finish(&mut self, stage: &Stage) -> i32 {
        let began = Instant::now();
        let code = eisen(stage, self.args).code;
        if code == 0 {
            self.takes = began.elapsed();
        }
        code
    }
}

/// Git works, and nobody has to tidy up behind the kill.
fn is_sound(stage: &Stage, what: &str, are_all_dead: bool) {
    let ended = eisen(stage, &["branches"]);
    assert_eq!(ended.code, 0, "{what}: {}", ended.stderr);
    assert!(!ended.stderr.contains("stays so"), "{what}: {}", ended.stderr);
    git(stage, &["fsck", "--strict", "--no-dangling"]);
    assert_eq!(git(stage, &["status", "--porcelain"]), "", "{what}");
    if are_all_dead {
        let mut find = program("find");
        let found = find.arg(stage.path("shop/.git")).args(["-name", "*.lock"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout), "", "{what}");
    }
}

#[test]
fn nothing_is_lost_by_kills_at_any_moment() {
    let stage = repository();
    stage.file("shop/.worktreeinclude", ".env\n");
    git(&stage, &["add", "-A"]);
    git(&stage, &["commit", "-qm", "a list"]);
    stage.file("shop/.env", "KEY=1\n");
    let make = run_args(&stage, &["--branch", "fix", "where"]);
    let make: Vec<_> = make.iter().map(String::as_str).collect();
    let clean = ["branches", "clean", "fix", "--yes"];
    let restore = ["branches", "restore", "fix"];
    // Twice without a commit of its own, then with one.
    let (merge, undo) = (["merge", "fix", "--commit"], ["merge", "--undo", "fix"]);
    let order: [&[&str]; 7] = [&make, &clean, &restore, &clean, &restore, &merge, &undo];
    let mut steps = order.map(|args| Step { args, takes: Duration::ZERO });
    let mut known = BTreeMap::new();
    let mut killed = 0;
    for round in 0..rounds() + order.len() {
        let top = tree(&stage, "fix");
        let is_there = || listed(&stage).iter().any(|it| it["state"] != "cleaned");
        if top.join(".git").exists() && is_there() {
            known = contents(round);
            for (path, content) in &known {
                fs::write(top.join(path), content).unwrap();
            }
            git_in(&top, &["add", "staged.txt"]);
        }
        let step = &mut steps[round % order.len()];
        let (percent, with_all) = (u32::try_from(round * 37 % 100).unwrap(), round % 2 == 0);
        let what = format!("round {round}, {:?}, {percent} %, group: {with_all}", step.args);
        if round < order.len() {
            // The first time it shows how long it takes.
            assert_eq!(step.finish(&stage), 0, "{what}");
        } else if step.takes.is_zero() || round % 5 == 0 {
            step.finish(&stage);
        } else {
            killed += usize::from(step.kill(&stage, percent, with_all));
        }
        is_sound(&stage, &what, with_all);
        for (path, content) in &known {
            assert!(is_kept(&stage, path, content), "{what}: {path}");
        }
        if round >= order.len() && round % 3 == 0 && !known.is_empty() && !is_there() {
            let ended = eisen(&stage, &restore);
            assert_eq!(ended.code, 0, "{what}: {}", ended.stderr);
            for (path, content) in &known {
                let now = fs::read_to_string(top.join(path)).unwrap_or_default();
                assert_eq!(now, *content, "{what}: {path}");
            }
        }
    }
    assert!(killed > rounds() / 3, "{killed} commands were killed before their end");
}
