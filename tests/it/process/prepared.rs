//! Wardens that are started before their command.

use nix::sys::signal::kill;
use nix::unistd::Pid;

use super::*;

/// A launcher whose wardens note their pids in a file.
fn noting(folder: &Path) -> (Launcher, PathBuf) {
    let (started, program) = (folder.join("started"), env!("CARGO_BIN_EXE_eisen-core"));
    let script = format!("#!/bin/sh\necho $$ >>'{}'\nexec '{program}' \"$@\"\n", started.display());
    (Launcher::new(write(&folder.join("warden"), &script, "755")), started)
}

fn pids(started: &Path) -> Vec<i32> {
    let noted = std::fs::read_to_string(started).unwrap_or_default();
    noted.lines().map(|pid| pid.parse().unwrap()).collect()
}

/// The pid of the first warden, once it has started.
async fn first_of(started: &Path) -> i32 {
    let noted = async {
        while pids(started).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENT, noted).await.unwrap();
    pids(started)[0]
}

/// The warden of a command that has run.
async fn warden_of_one(launcher: &Launcher) -> i32 {
    let (process, stdio) = launcher.spawn(&sh("echo $PPID")).await.unwrap();
    let said = read_all(stdio.stdout).await;
    assert!(process.wait().await.success());
    said.trim().parse().unwrap()
}

#[tokio::test]
async fn the_next_command_takes_the_prepared_warden() {
    let folder = tempfile::tempdir().unwrap();
    let (launcher, started) = noting(folder.path());
    launcher.prepare().unwrap();
    let first = warden_of_one(&launcher).await;
    let second = warden_of_one(&launcher).await;
    assert_eq!(pids(&started), [first, second]);
}

#[tokio::test]
async fn a_prepared_warden_that_was_killed_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (launcher, started) = noting(folder.path());
    launcher.prepare().unwrap();
    let first = first_of(&started).await;
    kill(Pid::from_raw(first), Signal::SIGKILL).unwrap();
    let ended = async {
        while kill(Pid::from_raw(first), None).is_ok() && !is_zombie(first) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENT, ended).await.unwrap();
    let second = warden_of_one(&launcher).await;
    assert_eq!(pids(&started), [first, second]);
}

fn is_zombie(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| stat.contains(") Z "))
}

#[tokio::test]
async fn a_warden_that_gets_no_command_ends_with_the_launcher() {
    let folder = tempfile::tempdir().unwrap();
    let (launcher, started) = noting(folder.path());
    launcher.prepare().unwrap();
    let warden = Pid::from_raw(first_of(&started).await);
    // Even if it was stopped.
    kill(warden, Signal::SIGSTOP).unwrap();
    timeout(PATIENT, launcher.drained()).await.unwrap();
    // It was reaped, too.
    assert!(kill(warden, None).is_err());
}
