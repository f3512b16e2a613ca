//! The commands that talk to a running team, as a user would run them.

mod acp;
mod batch;
mod blocked;
mod branches;
mod branching;
mod compress;
mod cost;
mod detached;
mod diff;
mod doctor;
mod finding;
mod history;
mod hub;
mod hub_requests;
mod learn;
mod logs;
mod model_server;
mod nested;
mod opencode;
mod outside;
mod prompt;
mod ps;
mod remote;
mod replay;
mod run;
mod run_progress;
mod run_prompt;
mod runs_kept;
mod sessions;
mod slots;
mod streams;
mod team_branches;
mod team_tiers;
mod tiers;
mod tokens;
mod top;
mod troubles;
mod undo;
mod upkeep;
mod watch;

use std::process::{Child, ChildStdout, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::harness::{Ended, Lines, Stage};

/// A command that goes on.
struct Running {
    child: Child,
    stderr: Lines,
}

impl Running {
    fn start(stage: &Stage, args: &[&str]) -> (Self, ChildStdout) {
        let mut command = stage.eisen_core(args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let stderr = Lines::of(child.stderr.take().unwrap());
        (Self { child, stderr }, stdout)
    }

    fn read(stage: &Stage, args: &[&str]) -> (Self, Lines) {
        let (running, stdout) = Self::start(stage, args);
        (running, Lines::of(stdout))
    }

    fn interrupt(&self) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), Signal::SIGINT).unwrap();
    }

    /// Waits for its end; returns its exit code and what it said on standard error.
    fn end(mut self) -> (Option<i32>, String) {
        let stderr = self.stderr.rest().join("\n");
        (self.child.wait().unwrap().code(), stderr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn assert_ended(ended: &Ended, code: i32, stdout: &str, stderr: &str) {
    assert_eq!(
        (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
        (code, stdout, stderr),
        "{ended:?}"
    );
}
