//! SIGKILL of supervisor, wardens and sweeper, alone and together: no process is left, or none after
//! the next start.

use std::collections::BTreeSet;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::harness::{Held, Stage, Team, agent, eventually};

/// A shell line that leaves a daemon behind: in a session of its own, an orphan, deaf to what can
/// be ignored.
const DAEMON: &str =
    "setsid sh -c 'sh -c \"trap : HUP TERM INT; while :; do sleep 1000; done\" & exit'; ";

/// The processes of a run, by the mark that they carry.
struct Run {
    mark: String,
}

impl Run {
    fn of(team: &Team) -> Self {
        Self { mark: format!("EISEN_MARK={}", team.run_file["remains"]["mark"].as_str().unwrap()) }
    }

    fn processes(&self) -> BTreeSet<i32> {
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let carries = |pid: &i32| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|one| one == self.mark.as_bytes())
        };
        pids.filter(carries).collect()
    }

    /// The wardens among them.
    fn wardens(&self) -> Vec<i32> {
        let mut pids: Vec<_> = self.processes().into_iter().collect();
        pids.retain(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with(b"eisen-core\0warden\0")
        });
        pids
    }

    /// Waits until there are none.
    #[track_caller]
    fn end(&self) {
        eventually("no process is left", || self.processes().is_empty());
    }
}

/// The sweeper that stands behind the wardens.
fn sweeper_of(team: &Team) -> i32 {
    let children = format!("/proc/{0}/task/{0}/children", team.program.id());
    let children = std::fs::read_to_string(children).unwrap_or_default();
    let mut pids = children.split_whitespace().filter_map(|pid| pid.parse().ok());
    pids.find(|pid: &i32| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.contains("\0sweep\0")
    })
    .unwrap()
}

fn signal(pid: i32, signal: Signal) {
    // What has ended already is no matter.
    let _ = kill(Pid::from_raw(pid), signal);
}

/// Kills these and the supervisor in what is the same moment to all of them.
fn kill_together(team: Team, pids: &[i32]) {
    team.program.signal(Signal::SIGSTOP);
    for pid in pids {
        signal(*pid, Signal::SIGSTOP);
    }
    for pid in pids {
        signal(*pid, Signal::SIGKILL);
    }
    team.program.signal(Signal::SIGKILL);
    team.program.wait();
}

/// Draws moments. The seed is in the output of a test that fails; `EISEN_SEED` replays it.
fn moments() -> fastrand::Rng {
    let seed = std::env::var("EISEN_SEED").ok().map(|seed| seed.parse().unwrap());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("EISEN_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

#[test]
fn nothing_survives_a_supervisor_that_is_killed_at_any_moment() {
    let stage = Stage::new();
    let prompt = "prompt = \"run sleep 1000\"";
    let agents = || ["one", "two", "three"].map(|id| agent(id).behind(DAEMON).with(prompt)).into();
    stage.configure("", agents());
    let mut moments = moments();
    for _ in 0..30 {
        let team = stage.up();
        let run = Run::of(&team);
        // From the first spawn to the terminals' daemons.
        std::thread::sleep(Duration::from_millis(moments.u64(..250)));
        team.program.signal(Signal::SIGKILL);
        team.program.wait();
        run.end();
    }
}

#[test]
fn wardens_that_are_killed_leave_nothing() {
    let stage = Stage::new();
    let held = Held::new(&stage);
    let team = stage.team("", vec![agent("ui").behind(&held.by("ui"))]);
    let run = Run::of(&team);
    let mut port = team.steer_when_ready(&["ui"]);
    port.begin("ui", &format!("run {} sleep 1000", held.by("terminal")));
    held.is_by(&["ui", "terminal"]);
    for warden in run.wardens() {
        signal(warden, Signal::SIGKILL);
    }
    held.end();
    port.agent_is("ui", "restarting");
    assert_eq!(team.stop().code, 0);
    run.end();
}

#[test]
fn wardens_and_supervisor_that_are_killed_together_leave_nothing() {
    let stage = Stage::new();
    let held = Held::new(&stage);
    let team = stage.team("", vec![agent("ui").behind(&held.by("ui"))]);
    let run = Run::of(&team);
    let mut port = team.steer_when_ready(&["ui"]);
    port.begin("ui", &format!("run {} sleep 1000", held.by("terminal")));
    held.is_by(&["ui", "terminal"]);
    let wardens = run.wardens();
    assert!(wardens.len() >= 2, "{wardens:?}");
    kill_together(team, &wardens);
    held.end();
    run.end();
}

#[test]
fn a_command_that_keeps_its_warden_from_working_survives_nobody() {
    let stage = Stage::new();
    let held = Held::new(&stage);
    let team = stage.team("", vec![agent("ui")]);
    let run = Run::of(&team);
    let mut port = team.steer_when_ready(&["ui"]);
    let stop = "W=$PPID; setsid sh -c \"while kill -STOP $W; do :; done\" & sleep 1000";
    port.begin("ui", &format!("run {} {stop}", held.by("terminal")));
    held.is_by(&["terminal"]);
    team.program.signal(Signal::SIGKILL);
    held.end();
    run.end();
}

#[test]
fn what_all_guards_left_when_they_were_killed_together_is_cleaned_by_the_next_start() {
    let stage = Stage::new();
    let held = Held::new(&stage);
    let team = stage.team("scratch = true", vec![agent("ui").behind(&held.by("ui"))]);
    let run = Run::of(&team);
    let mut port = team.steer_when_ready(&["ui"]);
    held.is_by(&["ui"]);
    let copy = port.prompt("ui", "run pwd");
    let copy = std::path::Path::new(copy.trim());
    let guards: Vec<_> = run.wardens().into_iter().chain([sweeper_of(&team)]).collect();
    kill_together(team, &guards);
    // The daemon is there still, and so is the copy: else this test would show nothing.
    assert!(!run.processes().is_empty() && copy.exists());

    // Any start of the same EISEN_DIR cleans up; commands that only read do not.
    assert_eq!(stage.run(&["ps"]).code, 1);
    assert!(stage.run_path("shop").exists());
    let ended = stage.run(&["observe", "--port", "0", "--", "true"]);
    held.end();
    run.end();
    assert!(!copy.exists() && !stage.run_path("shop").exists());
    assert!(ended.stderr.contains("a run that was killed"), "{ended:?}");
    assert!(ended.stderr.contains("shop"), "{ended:?}");
}

#[test]
fn what_only_looks_like_a_dead_run_is_left_alone() {
    let stage = Stage::new();
    let team = stage.team("scratch = true", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    // The lock was removed by hand; the process is there, since the same time.
    std::fs::remove_file(stage.path("home/run/shop.lock")).unwrap();
    let ended = stage.run(&["observe", "--port", "0", "--", "true"]);
    assert_eq!(port.prompt("ui", "hello"), "hello");
    assert!(ended.stderr.contains("left alone"), "{ended:?}");

    // A run file of another time: its pid is this process's by now, its folders are not ours.
    let precious = stage.path("precious");
    std::fs::create_dir(&precious).unwrap();
    let text = json!({
        "team": "old", "pid": std::process::id(), "port": 1, "address": "127.0.0.1:1", "token": "t",
        "remains": {"started": 1, "boot": "another", "mark": "", "folders": [precious]},
    });
    stage.file("home/run/old.json", &text.to_string());
    stage.run(&["observe", "--port", "0", "--", "true"]);
    assert!(!stage.run_path("old").exists() && precious.exists());
}

#[test]
fn the_exit_of_a_process_ends_it_whoever_holds_its_pipes() {
    let stage = Stage::new();
    // What is left in the background holds the agent's input and outputs.
    let ui = agent("ui").behind("sleep 1000 <&0 & ");
    let team = stage.team("", vec![ui]);
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "run sleep 1000 & echo done"), "done\n");
    port.begin("ui", "leave");
    port.agent_is("ui", "stopped");
}
