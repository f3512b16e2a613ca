//! The CPU time of `top` in a terminal of tmux, while an agent changes ten files a second and while
//! nothing happens. Without tmux there is nothing to measure.

use std::fmt::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::team::{RunningTeam, eisen_core};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

const CHANGES: usize = 300;
const BETWEEN: Duration = Duration::from_millis(100);

/// How long `top` is left alone, and then looked at.
const SETTLES: Duration = Duration::from_secs(5);
const IDLES: Duration = Duration::from_secs(20);

/// Columns and lines of the terminals.
const SIZES: [(&str, &str); 2] = [("80", "24"), ("200", "60")];

pub(crate) fn run() {
    if Command::new("tmux").arg("-V").output().is_err() {
        println!("skipped: tmux is not installed");
        return;
    }
    println!("{:<26} {:>10} {:>16}", "CPU of top, % of a core", "idle", "10 changes a s");
    for (columns, lines) in SIZES {
        let team = Team::up();
        let top = team.top(columns, lines);
        std::thread::sleep(SETTLES);
        let idle = share(top, || std::thread::sleep(IDLES));
        let busy = share(top, || team.prompt());
        println!("{:<26} {idle:>10.2} {busy:>16.2}", format!("{columns} by {lines}"));
    }
}

/// The part of a core that a process takes while something is done, in percent.
fn share(process: Pid, work: impl FnOnce()) -> f64 {
    let clock = || Duration::from(clock_gettime(clock_getcpuclockid(process).unwrap()).unwrap());
    let (since, before) = (Instant::now(), clock());
    work();
    clock().saturating_sub(before).as_secs_f64() / since.elapsed().as_secs_f64() * 100.0
}

struct Team {
    _program: RunningTeam,
    folder: tempfile::TempDir,
}

impl Team {
    fn up() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("work")).unwrap();
        std::fs::write(at("agent.toml"), script()).unwrap();
        let command = [env!("CARGO_BIN_EXE_eisen-core"), "scripted-agent", "agent.toml"];
        let config = format!(
            "[team]\nname = \"bench\"\nworkspace = \".\"\nlisten = \"127.0.0.1:0\"\ntools = false\n\
             [[agents]]\nid = \"ui\"\ncommand = {command:?}\n\
             [agents.zone]\nallowed = [\"**\"]\nenforce = \"protocol\"\n"
        );
        std::fs::write(at("eisen.toml"), config).unwrap();
        Self { _program: RunningTeam::ready(folder.path()), folder }
    }

    /// Starts `top` in a terminal of this size.
    fn top(&self, columns: &str, lines: &str) -> Pid {
        let line = format!("exec '{}' top", env!("CARGO_BIN_EXE_eisen-core"));
        let begun = self.tmux(&["new-session", "-d", "-x", columns, "-y", lines, &line]);
        assert!(begun.is_empty(), "{begun}");
        Pid::from_raw(self.tmux(&["list-panes", "-F", "#{pane_pid}"]).trim().parse().unwrap())
    }

    fn tmux(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.folder.path().join("tmux")).args(["-f", "/dev/null", "-u"]);
        command.env("EISEN_DIR", self.folder.path().join("eisen")).env_remove("TMUX");
        String::from_utf8(command.args(args).output().unwrap().stdout).unwrap()
    }

    /// Has all changes made.
    fn prompt(&self) {
        let mut prompt = eisen_core(self.folder.path(), &["prompt", "ui", "change"]);
        assert!(prompt.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

fn script() -> String {
    let mut script = "[agent]\nname = \"ui\"\n[[on]]\nprompt = \"change\"\nsteps = [\n".to_owned();
    for number in 0..CHANGES {
        let (file, wait) = (number % 40, BETWEEN.as_millis());
        let _ = writeln!(
            script,
            "{{ write = \"src/f{file}.ts\", content = \"export const f = {number};\\n\" }}, {{ wait_ms = {wait} }},"
        );
    }
    script + "{ say = \"Done.\" },\n]\n"
}
