//! Tests that no process outlives its owner, whichever guard is killed.

use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio as StdStdio};

use eisen_core::process::become_subreaper;
use nix::errno::Errno;
use nix::libc::O_NONBLOCK;
use nix::sys::signal::kill;
use nix::sys::stat::Mode;
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, mkfifo};

use super::*;

/// A child with a daemon in a session of its own, orphaned, and a plain grandchild that ignores
/// what can be ignored. All hold standard output open.
const FAMILY: &str = "
    setsid sh -c 'sh -c \"trap : HUP TERM INT; echo daemon; while :; do sleep 1000; done\" & exit' 
    sh -c 'trap : HUP TERM INT; while :; do sleep 1000; done' &
    read end
    exit 6";

#[tokio::test]
async fn kill_ends_what_left_the_group() {
    let (process, stdio) = spawn(&sh(FAMILY)).await;
    let (daemon, stdout) = line(stdio.stdout).await;
    assert_eq!(daemon, "daemon");
    assert_eq!(process.kill().await, Exit::Signal(9));
    assert_eq!(read_all(stdout).await, "");
}

#[tokio::test]
async fn drop_ends_what_left_the_group() {
    let launcher = launcher();
    let (process, stdio) = launcher.spawn(&sh(FAMILY)).await.unwrap();
    let (daemon, stdout) = line(stdio.stdout).await;
    assert_eq!(daemon, "daemon");
    drop(process);
    assert_eq!(read_all(stdout).await, "");
    launcher.drained().await;
}

#[tokio::test]
async fn the_child_alone_decides_when_it_has_ended() {
    let (process, mut stdio) = spawn(&sh(FAMILY)).await;
    let (daemon, stdout) = line(stdio.stdout).await;
    assert_eq!(daemon, "daemon");
    stdio.stdin.write_all(b"end\n").await.unwrap();
    // The pipe is still held by the others.
    assert_eq!(process.wait().await, Exit::Code(6));
    assert_eq!(process.stop(PATIENT, PATIENT).await, Stopped::OnEof(Exit::Code(6)));
    assert_eq!(read_all(stdout).await, "");
}

#[tokio::test]
async fn a_start_that_nobody_waits_for_leaves_nothing() {
    let held = Held::new();
    let launcher = launcher();
    let command = held.by("sleep 1000");
    // Given up at once, soon, later, and at the latest when it has begun.
    for polls in [1, 2, 100, 10_000] {
        let mut start = Box::pin(launcher.spawn(&command));
        for _ in 0..polls {
            tokio::select! {
                biased;
                _ = &mut start => break,
                () = tokio::task::yield_now() => {}
            }
        }
        drop(start);
    }
    launcher.drained().await;
    assert!(held.by_nobody());
}

#[tokio::test]
async fn many_children_that_fork_all_the_time_are_ended() {
    let script = "echo ready; while :; do setsid sh -c 'sh -c : & :' & sh -c : ; done";
    let (process, stdio) = spawn(&sh(script)).await;
    let (ready, stdout) = line(stdio.stdout).await;
    assert_eq!(ready, "ready");
    process.kill().await;
    assert_eq!(read_all(stdout).await, "");
}

#[tokio::test]
async fn a_warden_does_not_die_of_what_ends_programs() {
    let (process, mut stdio) = spawn(&sh(FAMILY)).await;
    let (daemon, _stdout) = line(stdio.stdout).await;
    assert_eq!(daemon, "daemon");
    for signal in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM] {
        kill(warden_of(&process), signal).unwrap();
    }
    stdio.stdin.write_all(b"end\n").await.unwrap();
    assert_eq!(process.wait().await, Exit::Code(6));
}

#[tokio::test]
async fn a_child_does_not_outlive_its_warden_by_itself() {
    // This process is no subreaper.
    let (process, stdio) = spawn(&sh("echo ready; exec sleep 1000")).await;
    let (ready, stdout) = line(stdio.stdout).await;
    assert_eq!(ready, "ready");
    kill(warden_of(&process), Signal::SIGKILL).unwrap();
    assert_eq!(process.wait().await, Exit::Signal(9));
    assert_eq!(read_all(stdout).await, "");
}

#[tokio::test]
async fn a_warden_that_was_stopped_saves_nobody() {
    let script = "read go; kill -STOP $PPID; echo stopped; exec sleep 1000";
    let (process, mut stdio) = spawn(&sh(script)).await;
    stdio.stdin.write_all(b"go\n").await.unwrap();
    let (stopped, stdout) = line(stdio.stdout).await;
    assert_eq!(stopped, "stopped");
    // The time that a warden has is over as soon as nothing else happens.
    tokio::time::pause();
    assert_eq!(process.kill().await, Exit::Signal(9));
    tokio::time::resume();
    assert_eq!(read_all(stdout).await, "");
}

#[tokio::test]
async fn the_death_of_the_supervisor_ends_everything() {
    let held = Held::new();
    let mut supervisor = supervisor("is killed", &held);
    let output = pipe::Receiver::from_owned_fd(supervisor.stdout.take().unwrap().into()).unwrap();
    let mut lines = BufReader::new(output).lines();
    while lines.next_line().await.unwrap().unwrap() != "both run" {}
    supervisor.kill().unwrap();
    assert_eq!(supervisor.wait().unwrap().signal(), Some(9));
    held.end().await;
}

#[tokio::test]
async fn the_death_of_a_warden_ends_what_it_guarded() {
    let held = Held::new();
    let supervisor = supervisor("loses a warden", &held).wait_with_output().unwrap();
    let output = String::from_utf8_lossy(&supervisor.stdout);
    assert!(supervisor.status.success(), "{output}");
    assert!(output.contains("the warden was missed"), "{output}");
    held.end().await;
}

const ROLE: &str = "SUPERVISOR_ROLE";
const HELD: &str = "HELD";

/// This test again, in a process of its own that may be killed, and adopt others.
fn supervisor(role: &str, held: &Held) -> Child {
    crate::harness::program(std::env::current_exe().unwrap())
        .args(["process::survivors::as_a_supervisor_of_its_own", "--exact", "--nocapture"])
        .env(ROLE, role)
        .env(HELD, held.path())
        .stdout(StdStdio::piped())
        .spawn()
        .unwrap()
}

/// The supervisor that the tests above start; without a role there is nothing to do.
#[tokio::test]
async fn as_a_supervisor_of_its_own() {
    let Ok(role) = std::env::var(ROLE) else { return };
    become_subreaper().unwrap();
    let launcher = launcher();
    let family = sh(&format!("exec 3>\"${HELD}\"; {FAMILY}"));
    let (first, stdio) = launcher.spawn(&family).await.unwrap();
    let (daemon, first_output) = line(stdio.stdout).await;
    assert_eq!(daemon, "daemon");
    let (second, stdio) = launcher.spawn(&family).await.unwrap();
    let (daemon, mut second_output) = line(stdio.stdout).await;
    assert_eq!(daemon, "daemon");

    if role == "is killed" {
        // As a command may do that wants to outlive everything.
        kill(warden_of(&second), Signal::SIGSTOP).unwrap();
        println!("\nboth run");
        std::future::pending::<()>().await;
    }
    kill(warden_of(&first), Signal::SIGKILL).unwrap();
    assert_eq!(first.wait().await, Exit::Signal(9));
    assert_eq!(read_all(first_output).await, "");
    // The other family is not touched.
    let mut input = stdio.stdin;
    input.write_all(b"end\n").await.unwrap();
    assert_eq!(second.wait().await, Exit::Code(6));
    assert_eq!(second.kill().await, Exit::Code(6));
    assert_eq!(read_all(&mut second_output).await, "");
    launcher.drained().await;
    assert_eq!(waitpid(None, None), Err(Errno::ECHILD), "something was not reaped");
    println!("the warden was missed");
}

fn warden_of(process: &Process) -> Pid {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    Pid::from_raw(parent.trim().parse().unwrap())
}

/// A named pipe that commands hold open, to be found by processes that inherit nothing.
struct Held {
    reader: pipe::Receiver,
    folder: tempfile::TempDir,
}

impl Held {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        mkfifo(&folder.path().join(HELD), Mode::S_IRWXU).unwrap();
        let reader = pipe::OpenOptions::new().open_receiver(folder.path().join(HELD)).unwrap();
        Self { reader, folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(HELD)
    }

    fn by(&self, script: &str) -> Command {
        let mut command = sh(&format!("exec 3>\"${HELD}\"; {script}"));
        command.env.insert(HELD.into(), self.path().to_str().unwrap().into());
        command
    }

    fn by_nobody(&self) -> bool {
        let mut options = std::fs::File::options();
        let mut again = options.read(true).custom_flags(O_NONBLOCK).open(self.path()).unwrap();
        // With a writer it would be an error that says to try later.
        again.read(&mut [0]).is_ok_and(|read| read == 0)
    }

    /// Waits until a process held it and none holds it any more.
    async fn end(self) {
        assert_eq!(read_all(self.reader).await, "");
    }
}
