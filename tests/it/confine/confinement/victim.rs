use std::fs;
use std::io::Read as _;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

use super::table::Shows;
use crate::harness::Lines;

/// A process outside that escapes are after: `victim.c`.
pub(super) struct Victim {
    child: Child,
    reported: Lines,
    /// What it said of itself.
    itself: String,
    state: Vec<String>,
}

impl Victim {
    pub(super) fn start(command: &mut Command) -> Self {
        let command = command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let reported = Lines::of(child.stdout.take().unwrap());
        let Some(itself) = reported.next() else {
            let mut complaint = String::new();
            child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
            panic!("{complaint}");
        };
        let state = state(child.id());
        Self { child, reported, itself, state }
    }

    /// The variables by which an escape finds it.
    pub(super) fn environment(&self) -> impl Iterator<Item = (&'static str, String)> {
        let names = [
            "VICTIM",
            "ADDRESS",
            "DESCRIPTOR",
            "TYPED_AT",
            "PUSHED_AT",
            "MEMORY",
            "NAMELESS",
            "VIEWER",
        ];
        names.into_iter().zip(self.itself.split(' ').map(str::to_owned))
    }

    /// Ends it; returns what was done to it before.
    pub(super) fn end(mut self) -> Vec<(Shows, String)> {
        let mut seen = Vec::new();
        let state = state(self.child.id());
        for (was, is) in self.state.iter().zip(&state).filter(|(was, is)| was != is) {
            seen.push((Shows::Harmed, format!("the process outside was {was}, is {is}")));
        }
        drop(self.child.stdin.take());
        for line in self.reported.rest() {
            seen.push((Shows::Reached, format!("the process outside says: {line}")));
        }
        if let Some(signal) = self.child.wait().unwrap().signal() {
            seen.push((Shows::Harmed, format!("the process outside died of signal {signal}")));
        }
        seen
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a process is treated: its limits, and how it is scheduled.
fn state(pid: u32) -> Vec<String> {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let stat = read("stat");
    let field = |number: usize| stat.split(' ').nth(number - 1).unwrap_or_default().to_owned();
    let status = read("status");
    let allowed = status.lines().find(|line| line.starts_with("Cpus_allowed_list"));
    vec![
        read("limits"),
        format!("nice {}", field(19)),
        format!("policy {}", field(41)),
        allowed.unwrap_or_default().to_owned(),
        format!("oom_score_adj {}", read("oom_score_adj")),
    ]
}
