//! What is kept of runs: `gc` mends and removes them; `logs` and `attach` take their ids.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::Running;
use crate::harness::{EISEN_CORE, Editor, Stage, agent, eventually, program, run};

const SCRIPT: &str = r#"
[agent]
name = "one"
start = [{ stderr = "it begins" }]
[[on]]
prompt = "look"
steps = [{ say = "Done." }]
[[on]]
prompt = "spend"
steps = [{ say = "So far." }, { usage = { used = 5, size = 10, cost = 0.25 } }, { wait = "cancel" }]
[[on]]
prompt = "wait"
steps = [{ say = "So far." }, { wait = "cancel" }]
"#;

fn repository() -> Stage {
    let stage = Stage::new();
    let made = program("git").args(["init", "-q"]).arg(stage.path("shop")).status().unwrap();
    assert!(made.success());
    stage.with_any_memory();
    stage.file("one.toml", SCRIPT);
    stage
}

/// Starts a run in the background; returns its id.
fn detached(stage: &Stage, prompt: &str) -> String {
    let script = stage.path("one.toml").display().to_string();
    let args = ["run", "--detach", prompt, "--", EISEN_CORE, "scripted-agent", &script];
    let ended = run(stage.eisen_core(&args).current_dir(stage.path("shop")));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended.stdout.trim().to_owned()
}

fn state(stage: &Stage, id: &str) -> String {
    stage.read(&format!("home/runs/{id}/state.toml"))
}

/// Kills the supervisor of a run, which has no time to say so.
fn kill_supervisor(stage: &Stage, id: &str) {
    let all: Value = serde_json::from_str(&stage.run(&["runs", "--all", "--json"]).stdout).unwrap();
    let own = all.as_array().unwrap().iter().find(|run| run["id"] == id).unwrap();
    let pid = own["pid"].as_i64().unwrap();
    kill(Pid::from_raw(pid.try_into().unwrap()), Signal::SIGKILL).unwrap();
    assert_eq!(stage.run(&["wait", id]).code, 1);
}

#[test]
fn gc_mends_what_a_killed_run_left_and_removes_runs_by_their_age() {
    let stage = repository();
    let (ended, killed, running) =
        (detached(&stage, "look"), detached(&stage, "wait"), detached(&stage, "wait"));
    assert_eq!(stage.run(&["wait", &ended]).code, 0);
    kill_supervisor(&stage, &killed);
    let mend = format!("mend  state of the run {killed}");
    // Its threads hold the lock of its team until the last of them has ended.
    eventually("the run is left", || stage.run(&["gc", "--dry-run"]).stdout.contains(&mend));
    let listed = stage.run(&["gc", "--dry-run"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    assert!(!listed.stdout.contains(&running) && !listed.stdout.contains(&ended));
    assert!(state(&stage, &killed).contains("status = \"running\""));

    let done = stage.run(&["gc"]);
    assert!(done.code == 0 && done.stdout.contains(&mend), "{} {}", done.stdout, done.stderr);
    assert!(state(&stage, &killed).contains("status = \"lost\""));
    assert!(state(&stage, &running).contains("status = \"running\""));
    assert_eq!(stage.run(&["wait", &killed]).code, 1);
    assert_eq!(stage.run(&["result", &ended]).stdout, "Done.\n");
    assert_eq!(stage.run(&["gc"]).stdout, "");

    let done = stage.run(&["gc", "--max-age-days", "0"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    for id in [&ended, &killed] {
        assert!(done.stdout.contains(&format!("  run {id}: it ended on ")), "{}", done.stdout);
        let left = [format!("home/runs/{id}"), format!("home/teams/run-{id}")];
        assert!(left.iter().all(|place| !stage.has(place)), "{left:?}");
    }
    assert!(stage.has(format!("home/teams/run-{running}")));
    assert!(state(&stage, &running).contains("status = \"running\""));
    assert_eq!(stage.run(&["kill", &running]).code, 0);
    assert_eq!(stage.run(&["wait", &running]).code, 137);
}

#[test]
fn a_run_whose_state_is_damaged_keeps_its_answer() {
    let stage = repository();
    let id = detached(&stage, "look");
    assert_eq!(stage.run(&["wait", &id]).code, 0);
    stage.file(&format!("home/runs/{id}/state.toml"), "status = \"succ");
    // It may be in the making.
    assert_eq!(stage.run(&["gc"]).stdout, "");
    for file in std::fs::read_dir(stage.path(&format!("home/runs/{id}"))).unwrap() {
        let file = std::fs::File::options().write(true).open(file.unwrap().path()).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    }
    let done = stage.run(&["gc"]);
    assert!(done.stdout.contains("its state can't be read"), "{} {}", done.stdout, done.stderr);
    let result = stage.run(&["result", &id]);
    assert_eq!((result.code, &*result.stdout), (1, "Done.\n"), "{}", result.stderr);
    assert!(result.stderr.contains("lost"), "{}", result.stderr);
}

#[test]
fn logs_shows_and_follows_a_run_by_its_id() {
    let stage = repository();
    let id = detached(&stage, "wait");
    let (following, lines) = Running::read(&stage, &["logs", "-f", "--raw", &id[..20]]);
    assert_eq!(lines.next().unwrap(), "agent | it begins");
    assert_eq!(stage.run(&["kill", &id]).code, 0);
    assert_eq!(following.end(), (Some(0), String::new()));
    let shown = stage.run(&["logs", "--raw", &id.to_lowercase()]);
    assert_eq!((shown.code, &*shown.stdout), (0, "it begins\n"), "{}", shown.stderr);

    // A supervisor that is killed ends it, too.
    let id = detached(&stage, "wait");
    let (following, lines) = Running::read(&stage, &["logs", "-f", "--raw", &id]);
    assert_eq!(lines.next().unwrap(), "agent | it begins");
    kill_supervisor(&stage, &id);
    assert_eq!(following.end().0, Some(0));
    let ambiguous = stage.run(&["logs", "0"]);
    assert_eq!(ambiguous.code, 2);
    assert!(ambiguous.stderr.contains(&id), "{}", ambiguous.stderr);
}

#[test]
fn an_agent_comes_before_a_run_whose_id_begins_with_its_name() {
    let stage = repository();
    let id = detached(&stage, "look");
    assert_eq!(stage.run(&["wait", &id]).code, 0);
    let ui = agent("0").start("{ stderr = \"of the team\" }");
    let team = stage.team("", vec![ui]);
    team.steer_when_ready(&["0"]);
    assert_eq!(stage.run(&["logs", "--raw", "0"]).stdout, "of the team\n");
    assert_eq!(stage.run(&["logs", "--raw", "01"]).stdout, "it begins\n");
    let mut editor = stage.attach("0");
    assert_eq!(editor.initialize(&json!({}))["agentInfo"]["name"], "0");
}

#[test]
fn what_a_killed_run_said_and_used_is_kept_and_is_no_answer() {
    let stage = repository();
    let id = detached(&stage, "spend");
    let team = format!("run-{id}");
    eventually("its cost is known", || {
        stage.run(&["ps", "--team", &team, "--json"]).stdout.contains("0.25")
    });
    assert_eq!(stage.run(&["kill", &id]).code, 0);
    let plain = stage.run(&["result", &id]);
    assert_eq!((plain.code, &*plain.stdout), (137, ""), "{}", plain.stderr);
    let told: Value = serde_json::from_str(&stage.run(&["result", "--json", &id]).stdout).unwrap();
    assert_eq!((&told["status"], &told["text"]), (&"killed".into(), &"So far.".into()), "{told}");
    assert_eq!(told["cost"], json!({ "USD": 0.25 }));
    assert!(told["peak_memory_bytes"].is_u64() && told["session_id"].is_string(), "{told}");
}

#[test]
fn an_editor_is_attached_to_the_agent_of_a_run() {
    let stage = repository();
    let id = detached(&stage, "wait");
    let mut editor = Editor::start(&mut stage.eisen_core(&["attach", &id]));
    assert_eq!(editor.initialize(&json!({}))["agentInfo"]["name"], "one");
    drop(editor);
    assert_eq!(stage.run(&["kill", &id]).code, 0);
    let gone = stage.run(&["attach", &id]);
    assert_eq!(gone.code, 1);
    assert!(gone.stderr.contains("has ended (killed)"), "{}", gone.stderr);
    let nobody = stage.run(&["attach", "ui"]);
    assert!(nobody.code == 1 && nobody.stderr.contains("no team is running"), "{nobody:?}");
}
