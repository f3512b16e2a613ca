//! Commands behind a wall and a doorbell, as the kernel holds them.

use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use eisen_core::confine::{Attempt, Confinement, Doorkeeper};
use eisen_core::model::Action;
use eisen_core::zone::{Bounds, Confine, Grant, Reach, Rule, Zone, ZoneSpec};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::*;

/// A workspace with a zone of `mine`, and what a supervisor keeps beside it.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["ws/mine", "ws/other", "eisen", "private"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        for name in ["ws/mine/a", "ws/other/a"] {
            std::fs::write(folder.path().join(name), "text\n").unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn bounds(&self) -> Arc<Bounds> {
        let zone = Zone::compile(&ZoneSpec::new(
            self.path("ws"),
            vec!["mine/**".into()],
            self.path("eisen"),
        ));
        let reach = Reach {
            // A server that does not belong to the team.
            sockets: vec![self.path("ws/mine/socket").display().to_string()],
            ..Reach::new(Confine::Workspace, self.path("private"))
        };
        Arc::new(Bounds::new(Arc::new(zone.unwrap()), reach).unwrap())
    }

    fn confinement(&self) -> Arc<Confinement> {
        let bounds = self.bounds();
        let keeper = Arc::new(Strict(bounds.clone(), Mutex::default(), Mutex::default()));
        Arc::new(Confinement::build(&bounds, &self.path("eisen/run"), keeper).unwrap())
    }

    /// One whose wall is of these rules alone.
    fn behind(&self, rules: &[Rule]) -> Arc<Confinement> {
        let keeper = Arc::new(Strict(self.bounds(), Mutex::default(), Mutex::default()));
        Arc::new(Confinement::behind(rules, &self.path("eisen/run"), keeper).unwrap())
    }

    fn launcher(&self) -> Launcher {
        launcher().confined(self.confinement())
    }

    /// Runs a script in the workspace, and returns all it said and how it ended.
    async fn run(&self, launcher: &Launcher, script: &str) -> (String, Exit) {
        let command = Command { cwd: self.path("ws"), ..sh(&format!("exec 2>&1; {script}")) };
        let (process, stdio) = launcher.spawn(&command).await.unwrap();
        drop(stdio.stdin);
        let said = read_all(stdio.stdout).await;
        (said, process.wait().await)
    }
}

/// Lets nothing through that the bounds do not, and notes what was tried.
struct Strict(Arc<Bounds>, Mutex<Vec<Attempt>>, Mutex<Vec<Duration>>);

impl Doorkeeper for Strict {
    fn bounds(&self) -> Arc<Bounds> {
        self.0.clone()
    }

    fn passed(&self, _: Arc<str>, _: Action) {}

    fn times_calls(&self) -> bool {
        true
    }

    fn took(&self, time: Duration) {
        self.2.lock().unwrap().push(time);
    }

    fn blocked(&self, attempt: Attempt, _: oneshot::Sender<bool>) {
        self.1.lock().unwrap().push(attempt);
    }
}

fn whole(path: &str) -> Rule {
    Rule { path: path.into(), grant: Grant::Whole }
}

#[tokio::test]
async fn what_is_outside_cannot_be_written_nor_read_by_anyone_it_starts() {
    let place = Place::new();
    let launcher = place.launcher();
    for (script, expect) in [
        ("echo x >mine/a && cat mine/a", "x\n"),
        ("echo x >mine/new && cat mine/new", "x\n"),
        ("echo x >other/a || echo no", "no"),
        ("cat other/a || echo no", "no"),
        ("sh -c 'sh -c \"echo x >other/a\"' || echo no", "no"),
        ("setsid sh -c 'echo x >other/a' || echo no", "no"),
        ("python3 -c 'open(\"other/a\", \"a\")' || echo no", "no"),
        ("echo x >../eisen/run/canary || echo no", "no"),
    ] {
        let (said, exit) = place.run(&launcher, script).await;
        assert!(exit.success(), "{script}: {said}");
        assert_eq!(said.trim_end().lines().last(), expect.lines().last(), "{script}: {said}");
    }
    assert_eq!(std::fs::read_to_string(place.path("ws/other/a")).unwrap(), "text\n");
    assert!(place.path("ws/mine/new").is_file());
}

#[tokio::test]
async fn a_terminal_is_confined_as_well() {
    let place = Place::new();
    let command = Command { cwd: place.path("ws"), ..sh("cat other/a") };
    let (process, output) = place.launcher().spawn_merged(&command).await.unwrap();
    assert!(read_all(output).await.contains("denied"));
    assert!(!process.wait().await.success());
}

#[tokio::test]
async fn a_start_that_the_wall_does_not_hold_is_none() {
    let place = Place::new();
    let launcher = launcher().confined(place.behind(&[whole("/")]));
    let touched = place.path("ws/other/touched");
    let command = command("touch", &[touched.to_str().unwrap()]);
    expect![[r#"cannot start `touch`: inside its wall it could still open a file outside: this kernel does not enforce the Landlock rules it accepted; `eisen-core check` tests what this kernel can enforce, and `enforce = "protocol"` needs no kernel support"#]]
        .assert_eq(&launcher.spawn(&command).await.unwrap_err().to_string());
    assert!(!touched.exists());
}

#[tokio::test]
async fn a_wall_that_cannot_be_tried_is_none() {
    let place = Place::new();
    let confinement = place.confinement();
    std::fs::remove_file(confinement.canary()).unwrap();
    let launcher = launcher().confined(confinement);
    expect![[r#"cannot start `true`: the file for testing its wall cannot be opened: No such file or directory; `eisen-core check` tests what this kernel can enforce, and `enforce = "protocol"` needs no kernel support"#]]
        .assert_eq(&launcher.spawn(&command("true", &[])).await.unwrap_err().to_string());
}

#[tokio::test]
async fn a_program_outside_of_the_wall_is_named() {
    let place = Place::new();
    let launcher = launcher().confined(place.behind(&[whole("/usr/lib"), whole("/proc")]));
    let error = launcher.spawn(&command("/bin/true", &[])).await.unwrap_err().to_string();
    expect![[r#"cannot start `/bin/true`: `/bin/true` is outside the paths this agent may execute; add it to the readable paths of its profile or zone, or set `confine = "workspace"`"#]]
        .assert_eq(&error);
    let error = place.launcher().spawn(&command("no-such-program", &[])).await.unwrap_err();
    expect!["cannot start `no-such-program`: not found on PATH; install it or give its full path"]
        .assert_eq(&error.to_string());
}

#[tokio::test]
async fn nothing_of_the_confinement_is_left_open_in_a_child() {
    let place = Place::new();
    let (open, _) = place.run(&place.launcher(), "cd /proc/self/fd; echo *").await;
    assert_eq!(open, "0 1 2 3\n");
}

const SYS_PTRACE: u64 = 1 << 19;
const SYS_ADMIN: u64 = 1 << 21;

#[tokio::test]
async fn rights_that_reach_around_a_wall_are_given_up() {
    let place = Place::new();
    let (status, _) = place.run(&place.launcher(), "cat /proc/self/status").await;
    let field = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        u64::from_str_radix(value.trim(), 16).unwrap()
    };
    for name in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        // Without the right to it an ordinary user keeps a bounding set that gives nothing.
        let privileged = name != "CapBnd:" || nix::unistd::geteuid().is_root();
        assert!(!privileged || field(name) & (SYS_ADMIN | SYS_PTRACE) == 0, "{name} {status}");
    }
    assert_eq!(field("NoNewPrivs:"), 1);
}

#[tokio::test]
async fn a_process_outside_cannot_be_signalled_nor_traced() {
    let place = Place::new();
    let (outside, _stdio) = spawn(&command("cat", &[])).await;
    let pid = outside.pid();
    let script = format!("kill -TERM {pid} || echo no; cat /proc/{pid}/mem || echo no");
    let (said, _) = place.run(&place.launcher(), &script).await;
    assert_eq!(said.lines().filter(|line| *line == "no").count(), 2, "{said}");
    assert_eq!(outside.kill().await, Exit::KILLED);
}

/// Passes a file on that it opened among mounts of its own.
const PASSES: &str = r#"
import os, socket
server = socket.socket(socket.AF_UNIX); server.bind("ws/mine/socket"); server.listen(1)
print("listens", flush=True)
client = server.accept()[0]
socket.send_fds(client, [b"x"], [os.open("ws/mine/a", os.O_PATH)])
client.recv(1)
"#;

/// Opens what it is passed.
const OPENS: &str = r#"
import os, socket
client = socket.socket(socket.AF_UNIX); client.connect("mine/socket")
fd = socket.recv_fds(client, 1, 1)[1][0]
open(f"/proc/self/fd/{fd}")
"#;

#[tokio::test]
async fn a_file_whose_path_is_not_believed_is_shown_as_denied() {
    let place = Place::new();
    let args = ["--user", "--map-root-user", "--mount", "python3", "-c", PASSES];
    let elsewhere = Command { cwd: place.path(""), ..command("unshare", &args) };
    let (elsewhere, stdio) = spawn(&elsewhere).await;
    let (listens, _rest) = line(stdio.stdout).await;
    if listens.is_empty() {
        // Some kernels and some machines forbid it.
        return;
    }
    let keeper = Arc::new(Strict(place.bounds(), Mutex::default(), Mutex::default()));
    let confinement =
        Confinement::build(&place.bounds(), &place.path("eisen/run"), keeper.clone()).unwrap();
    let launcher = launcher().confined(Arc::new(confinement));
    let script = format!("python3 -c '{OPENS}'");
    let (said, exit) = place.run(&launcher, &script).await;
    assert!(!exit.success() && said.contains("Permission denied"), "{said}");
    let attempts = keeper.1.lock().unwrap().clone();
    let shown = attempts.iter().find(|attempt| &*attempt.path == "mine/a");
    let shown = shown.unwrap_or_else(|| panic!("{attempts:?}"));
    assert_eq!((shown.action, shown.grantable), (Action::Read, false));
    elsewhere.kill().await;
}

#[tokio::test]
async fn the_time_of_stopped_calls_is_told() {
    let place = Place::new();
    let keeper = Arc::new(Strict(place.bounds(), Mutex::default(), Mutex::default()));
    let confinement =
        Confinement::build(&place.bounds(), &place.path("eisen/run"), keeper.clone()).unwrap();
    let (said, exit) = place.run(&launcher().confined(Arc::new(confinement)), "cat mine/a").await;
    assert!(exit.success(), "{said}");
    let times = keeper.2.lock().unwrap().clone();
    let all: Duration = times.iter().sum();
    assert!(!times.is_empty() && !all.is_zero(), "{times:?}");
}

#[tokio::test]
async fn an_ordinary_user_is_confined_too() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    // All of it again, by a supervisor of the user `nobody`.
    let copy = tempfile::tempdir().unwrap();
    std::fs::set_permissions(copy.path(), PermissionsExt::from_mode(0o755)).unwrap();
    // This user may not reach the folder in which both were built.
    let [tests, program] = ["tests", "eisen-core"].map(|name| copy.path().join(name));
    std::fs::copy(std::env::current_exe().unwrap(), &tests).unwrap();
    std::fs::copy(EISEN_CORE, &program).unwrap();
    let name = "process::confined::what_is_outside_cannot_be_written_nor_read_by_anyone_it_starts";
    let mut again = crate::harness::program("setpriv");
    again.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    again.arg(&tests).args(["--exact", name, "--test-threads", "1"]);
    again.env("TMPDIR", "/tmp").env(COPY, &program).current_dir(copy.path());
    let output = again.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&output.stderr));
}
