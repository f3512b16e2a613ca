//! Children under their wardens. All processes of a test inherit the end of a pipe: the end of the pipe
//! shows that all are gone.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod confined;
#[cfg(target_os = "linux")]
mod prepared;
mod survivors;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use eisen_core::process::{Command, Exit, Launcher, Process, Stdio, Stopped};
use expect_test::{Expect, expect};
use nix::sys::signal::Signal;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::time::timeout;

use crate::harness::EISEN_CORE;

const GRACE: Duration = Duration::from_millis(50);
/// Never reached by a child that does what is tested.
const PATIENT: Duration = Duration::from_secs(30);

/// Names a copy of the program under test, for a user who may not reach the program itself.
const COPY: &str = "EISEN_TEST_COPY";

fn launcher() -> Launcher {
    let copy = std::env::var_os(COPY).map(PathBuf::from);
    Launcher::new(copy.unwrap_or_else(|| EISEN_CORE.into()))
}

fn command(program: &str, args: &[&str]) -> Command {
    Command {
        program: program.into(),
        args: args.iter().map(OsString::from).collect(),
        cwd: "/".into(),
        env: BTreeMap::new(),
    }
}

fn sh(script: &str) -> Command {
    command("sh", &["-c", script])
}

async fn spawn(command: &Command) -> (Process, Stdio) {
    launcher().spawn(command).await.unwrap()
}

async fn read_all(mut from: impl AsyncReadExt + Unpin) -> String {
    let mut all = String::new();
    let read = timeout(PATIENT, from.read_to_string(&mut all)).await;
    read.expect("somebody still holds the pipe").unwrap();
    all
}

/// Runs `command` to its end, and returns what it wrote to standard output.
async fn output(command: &Command) -> String {
    let (process, stdio) = spawn(command).await;
    drop(stdio.stdin);
    let output = read_all(stdio.stdout).await;
    assert!(process.wait().await.success(), "{output}");
    output
}

/// Writes a file by another process: one that this process has open for writing could not be
/// executed, and children that are just being forked have it open a little longer.
fn write(path: &Path, text: &str, mode: &str) -> String {
    let path = path.to_str().unwrap();
    let script = "printf %s \"$2\" >\"$1\" && chmod \"$3\" \"$1\"";
    let mut writer = crate::harness::program("sh");
    assert!(writer.args(["-c", script, "sh", path, text, mode]).status().unwrap().success());
    path.to_owned()
}

/// Waits for the line by which a script says that it has come so far.
async fn line(from: pipe::Receiver) -> (String, BufReader<pipe::Receiver>) {
    let mut from = BufReader::new(from);
    let mut line = String::new();
    from.read_line(&mut line).await.unwrap();
    (line.trim_end().to_owned(), from)
}

#[tokio::test]
async fn it_reports_how_a_child_ended() {
    for (script, exit, text) in [
        ("exit 0", Exit::Code(0), "exited with status 0"),
        ("exit 3", Exit::Code(3), "exited with status 3"),
        ("kill -KILL $$", Exit::Signal(9), "was killed by signal 9 (SIGKILL)"),
        ("kill -34 $$", Exit::Signal(34), "was killed by signal 34"),
    ] {
        let (process, _stdio) = spawn(&sh(script)).await;
        assert_eq!(process.wait().await, exit, "{script}");
        assert_eq!(process.wait().await, exit, "{script}, asked again");
        assert_eq!(exit.to_string(), text);
        assert_eq!(process.kill().await, exit, "{script}, killed afterwards");
    }
}

#[tokio::test]
async fn bytes_pass_and_the_end_of_input_arrives() {
    let (process, mut stdio) = spawn(&sh("cat; echo done >&2")).await;
    stdio.stdin.write_all(b"a\0\xff\n").await.unwrap();
    drop(stdio.stdin);
    let mut bytes = Vec::new();
    stdio.stdout.read_to_end(&mut bytes).await.unwrap();
    assert_eq!(bytes, b"a\0\xff\n");
    assert_eq!(read_all(stdio.stderr).await, "done\n");
    assert!(process.wait().await.success());
}

#[tokio::test]
async fn a_child_that_does_not_read_is_no_obstacle() {
    let (process, mut stdio) = spawn(&sh("exec <&-; echo closed; read x")).await;
    let (closed, _stdout) = line(stdio.stdout).await;
    assert_eq!(closed, "closed");
    let error = stdio.stdin.write_all(b"x").await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    process.kill().await;
}

#[tokio::test]
async fn a_terminal_has_one_output_and_no_input() {
    let script = sh("echo one; echo two >&2; cat; echo three");
    let (process, output) = launcher().spawn_merged(&script).await.unwrap();
    assert_eq!(read_all(output).await, "one\ntwo\nthree\n");
    assert!(process.wait().await.success());
}

#[tokio::test]
async fn a_child_starts_clean() {
    let leaked = std::fs::File::open("/dev/null").unwrap();
    let leaked = nix::fcntl::fcntl(&leaked, nix::fcntl::FcntlArg::F_DUPFD(100)).unwrap();
    let open = output(&sh("cd /proc/self/fd; echo *")).await;
    // The shell's own descriptor for the listing is the one beside the standard three.
    assert_eq!(open, "0 1 2 3\n", "{leaked} was leaked");

    // As under `nohup`, and worse.
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_eisen-core");
    let script = format!("#!/bin/sh\ntrap '' HUP ALRM PIPE\nexec {program} \"$@\"\n");
    let deaf = Launcher::new(write(&folder.path().join("deaf"), &script, "755"));
    let command = command("cat", &["/proc/self/status"]);
    let (_process, stdio) = deaf.spawn(&command).await.unwrap();
    let status = read_all(stdio.stdout).await;
    for field in ["SigBlk", "SigIgn", "SigCgt"] {
        let set = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(":\t"));
        let set = u64::from_str_radix(set.unwrap(), 16).unwrap();
        // Signals 32 and 33 belong to the C library, whose `posix_spawn` ignores them.
        assert_eq!(set & !(0b11 << 31), 0, "{field} in {status}");
    }
}

#[tokio::test]
async fn a_child_leads_a_group_in_another_session() {
    let (process, stdio) = spawn(&sh("cat /proc/$$/stat; read x")).await;
    let (stat, _stdout) = line(stdio.stdout).await;
    let fields: Vec<&str> = stat.split(' ').collect();
    let (pid, group, session) = (fields[0], fields[4], fields[5]);
    assert_eq!((pid, group), (process.pid().to_string().as_str(), pid));
    assert_ne!(session, nix::unistd::getsid(None).unwrap().to_string());
    process.kill().await;
}

#[tokio::test]
async fn the_working_directory_and_the_environment_are_those_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut command =
        sh("pwd -P; echo \"$EISEN_AGENT_ID\"; echo ${#HUGE}; echo ${PATH:+inherited}");
    command.cwd = folder.path().canonicalize().unwrap();
    command.env.insert("EISEN_AGENT_ID".into(), "ui äöü\n".into());
    command.env.insert("HUGE".into(), "x".repeat(100_000));
    let expected = format!("{}\nui äöü\n\n100000\ninherited\n", command.cwd.display());
    assert_eq!(output(&command).await, expected);
}

#[tokio::test]
async fn a_megabyte_of_arguments_arrives() {
    let args = vec!["x".repeat(99_999); 10];
    let mut all = vec!["%s\n"];
    all.extend(args.iter().map(String::as_str));
    assert_eq!(output(&command("printf", &all)).await.len(), 1_000_000);
}

#[tokio::test]
async fn a_failed_start_says_what_to_mend() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let file = |name: &str, text: &str, mode: &str| write(&folder.join(name), text, mode);
    let check = async |command: Command, expect: Expect| {
        let error = launcher().spawn(&command).await.unwrap_err().to_string();
        expect.assert_eq(&error.replace(folder.to_str().unwrap(), "DIR"));
    };
    let in_folder = |mut command: Command, cwd: PathBuf| {
        command.cwd = cwd;
        command
    };

    check(
        command("no-such-agent", &[]),
        expect![
            "cannot start `no-such-agent`: not found on PATH; install it or give its full path"
        ],
    )
    .await;
    check(
        command("/no/such/agent", &[]),
        expect!["cannot start `/no/such/agent`: there is no such file"],
    )
    .await;
    check(
        command(&file("plain", "text", "644"), &[]),
        expect!["cannot start `DIR/plain`: not permitted; it must be an executable file"],
    )
    .await;
    check(
        command(&file("script", "#!/no/such/node\n", "755"), &[]),
        expect!["cannot start `DIR/script`: `DIR/script` exists, but its interpreter does not (its `#!` line, or the loader it was linked for)"],
    )
    .await;
    check(
        command("true", &["x".repeat(200_000).as_str()]),
        expect![
            "cannot start `true`: its arguments and environment are longer than the system allows"
        ],
    )
    .await;
    check(
        in_folder(sh("true"), folder.join("missing")),
        expect!["cannot start `sh` in `DIR/missing`: No such file or directory"],
    )
    .await;
    check(
        in_folder(sh("true"), folder.join("plain")),
        expect!["cannot start `sh` in `DIR/plain`: Not a directory"],
    )
    .await;
    let missing = Launcher::new(Path::new("/no/such/eisen-core")).spawn(&sh("true")).await;
    expect!["cannot start `sh`: its warden failed: No such file or directory"]
        .assert_eq(&missing.unwrap_err().to_string());
}

#[tokio::test]
async fn a_program_is_looked_for_on_the_path_of_its_own_environment() {
    let mut command = sh("true");
    command.env.insert("PATH".into(), "/no/such/folder".into());
    let error = launcher().spawn(&command).await.unwrap_err();
    assert!(matches!(error, eisen_core::process::SpawnError::NotOnPath { .. }), "{error}");
}

#[tokio::test]
async fn a_signal_reaches_the_whole_group() {
    let script = sh("trap 'echo outer; exit 7' TERM
        sh -c 'trap \"echo inner; exit\" TERM; echo ready; while :; do sleep 0.01; done' &
        while :; do wait; done");
    let (process, stdio) = spawn(&script).await;
    let (ready, stdout) = line(stdio.stdout).await;
    assert_eq!(ready, "ready");
    process.signal(Signal::SIGTERM).await;
    assert_eq!(process.wait().await, Exit::Code(7));
    let mut said: Vec<_> = read_all(stdout).await.lines().map(str::to_owned).collect();
    said.sort();
    assert_eq!(said, ["inner", "outer"]);
}

#[tokio::test]
async fn one_task_can_wait_while_another_signals() {
    let (process, _stdio) = spawn(&sh("read x")).await;
    let waiting = tokio::spawn(process.exit());
    process.signal(Signal::SIGTERM).await;
    assert_eq!(waiting.await.unwrap(), Exit::Signal(15));
    // Nobody is left to be hit.
    process.signal(Signal::SIGKILL).await;
}

#[tokio::test]
async fn an_orderly_stop_goes_only_as_far_as_it_must() {
    let ready = async |script: &str| {
        let (process, stdio) = spawn(&sh(script)).await;
        let (ready, stdout) = line(stdio.stdout).await;
        assert_eq!(ready, "ready");
        drop(stdio.stdin);
        // A shell that finds them closed could end by that.
        (process, (stdout, stdio.stderr))
    };
    let (process, _open) = ready("echo ready; cat; exit 4").await;
    assert_eq!(process.stop(PATIENT, PATIENT).await, Stopped::OnEof(Exit::Code(4)));

    let (process, _open) =
        ready("trap 'exit 5' TERM; echo ready; while :; do sleep 0.01; done").await;
    let mut stop = pin!(process.stop(PATIENT, PATIENT));
    assert!(timeout(Duration::ZERO, stop.as_mut()).await.is_err());
    // The first grace is over at once, the second is as long as it must be on a busy machine.
    tokio::time::pause();
    tokio::time::advance(PATIENT).await;
    tokio::time::resume();
    assert_eq!(stop.await, Stopped::OnTerm(Exit::Code(5)));

    let (process, _open) = ready("trap '' TERM; echo ready; while :; do sleep 1000; done").await;
    assert_eq!(process.stop(GRACE, GRACE).await, Stopped::Killed);
}

#[cfg(target_os = "linux")]
#[test]
fn unused_memory_goes_back_within_a_second() {
    let stage = crate::harness::Stage::new();
    let mut version = stage.eisen_core(&["--version"]);
    let shown = crate::harness::run(version.env("MALLOC_CONF", "stats_print:true"));
    assert!(shown.stderr.contains("opt.dirty_decay_ms: 1000 "), "{shown:?}");
}
