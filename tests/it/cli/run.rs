//! `run`, and the commands for runs: one agent, one turn, an answer and a code that don't lie.

use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::harness::{EISEN_CORE, Ended, Stage, agent, eventually, program, run};

const SCRIPT: &str = r#"
[agent]
name = "one"
[[on]]
prompt = "look"
steps = [{ say = "I look." }, { read = "src/ui/app.ts" }, { say = "It says " }, { say = "{last}" }]
[[on]]
prompt = "ask"
steps = [{ say = "I ask." }, { ask = "edit", path = "src/ui/app.ts" }, { say = "I was allowed." }]
[[on]]
prompt = "silent"
steps = [{ say = "I look." }, { read = "src/ui/app.ts" }, { say = "  \n" }]
[[on]]
prompt = "refuse"
steps = [{ say = "No." }, { stop = "refusal" }]
[[on]]
prompt = "crash"
steps = [{ say = "So far." }, { exit = 3 }]
[[on]]
prompt = "outside"
steps = [{ disk_read = ".env", on_error = [{ say = "I may not" }] }]
[[on]]
prompt = "save"
steps = [{ write = "src/ui/new.ts", content = "one\\n" }, { write = "docs/new.md", content = "no" }, { say = "Done." }]
[[on]]
prompt = "hang"
steps = [{ say = "So far." }, { hang = true }]
"#;

/// A stage whose workspace is a git repository.
pub(super) fn repository() -> Stage {
    let stage = Stage::new();
    let made = program("git").args(["init", "-q"]).arg(stage.path("shop")).status().unwrap();
    assert!(made.success());
    stage.with_any_memory();
    stage.file("one.toml", SCRIPT);
    stage
}

/// A command in the repository; `args` ends before the agent's own command.
pub(super) fn command(stage: &Stage, args: &[&str]) -> Command {
    let mut command = stage.eisen_core(args);
    command.current_dir(stage.path("shop/src"));
    command
}

pub(super) fn run_agent(stage: &Stage, args: &[&str]) -> Ended {
    let script = stage.path("one.toml").display().to_string();
    let agent = ["--", EISEN_CORE, "scripted-agent", &script];
    run(&mut command(stage, &[&["run"], args, &agent].concat()))
}

/// Starts a run in the background; returns its id.
fn detached(stage: &Stage, prompt: &str) -> String {
    let ended = run_agent(stage, &["--detach", prompt]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended.stdout.trim().to_owned()
}

/// What `runs --json` says of a run.
pub(super) fn listed(stage: &Stage, id: &str) -> Value {
    let all = stage.run(&["runs", "--all", "--json"]).stdout;
    let all: Vec<Value> = serde_json::from_str(&all).unwrap();
    all.into_iter().find(|run| run["id"] == id).unwrap()
}

#[test]
fn the_last_message_is_the_answer_and_nothing_else_is_printed() {
    let stage = repository();
    let ended = run_agent(&stage, &["look"]);
    assert_eq!((ended.code, &*ended.stdout), (0, "It says ui\n"), "{}", ended.stderr);
    assert!(ended.stderr.starts_with("run 0"), "{}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    let told: Value = serde_json::from_str(&run_agent(&stage, &["--json", "look"]).stdout).unwrap();
    assert_eq!((&told["status"], &told["text"]), (&"succeeded".into(), &"It says ui".into()));
    let run = listed(&stage, told["id"].as_str().unwrap());
    assert_eq!((&run["status"], &run["exit_code"]), (&"succeeded".into(), &0.into()));
    assert!(stage.run(&["ps"]).stderr.contains("no team"), "its team has ended");
}

#[test]
fn the_exit_code_says_how_it_ended() {
    let stage = repository();
    for (args, code, status, answer) in [
        (&["ask"][..], 0, "succeeded", "I was allowed."),
        (&["silent"], 1, "failed", ""),
        (&["refuse"], 5, "failed", "No."),
        (&["crash"], 1, "failed", "So far."),
        (&["--timeout", "1", "hang"], 124, "timed_out", "So far."),
        (&["--deny", ".env", "outside"], 0, "succeeded", "I may not"),
        (&["--zone", "src/**", "outside"], 0, "succeeded", "I may not"),
    ] {
        let ended = run_agent(&stage, &[args, &["--json"]].concat());
        let told: Value = serde_json::from_str(&ended.stdout).unwrap();
        let found = (ended.code, told["status"].as_str(), told["text"].as_str());
        assert_eq!(found, (code, Some(status), Some(answer)), "{args:?}: {told}");
    }
    let missing = run(&mut command(&stage, &["run", "look", "--", "no-such-agent"]));
    assert_eq!((missing.code, &*missing.stdout), (125, ""), "{}", missing.stderr);
    assert!(missing.stderr.contains("not found on PATH"), "{}", missing.stderr);
    // Nothing is started by wrong usage.
    for args in [&["--budget", "sheep=1", "look"][..], &["--profile", "nobody", "look"], &[" "]] {
        let folders = || std::fs::read_dir(stage.path("home/runs")).unwrap().count();
        let before = folders();
        assert_eq!(run_agent(&stage, args).code, 2, "{args:?}");
        assert_eq!(folders(), before, "{args:?}");
    }
    let nowhere = run(stage.eisen_core(&["run", "look"]).current_dir(stage.path("home")));
    assert_eq!(nowhere.code, 2, "{}", nowhere.stderr);
    assert!(nowhere.stderr.contains("git init"), "{}", nowhere.stderr);
}

#[test]
fn a_run_in_the_background_is_waited_for_as_often_as_one_likes() {
    let stage = repository();
    let (first, second) = (detached(&stage, "look"), detached(&stage, "crash"));
    for _ in 0..2 {
        assert_eq!(stage.run(&["wait", &first]).code, 0);
        assert_eq!(stage.run(&["wait", &first, &second]).code, 1);
        let result = stage.run(&["result", &first.to_lowercase()]);
        assert_eq!((result.code, &*result.stdout), (0, "It says ui\n"));
    }
    // It is done once.
    assert_eq!(stage.run(&["run", "--prepared", &first]).code, 2);
    assert_eq!(stage.run(&["result", &first]).stdout, "It says ui\n");
    let any = stage.run(&["wait", "--any", &second]);
    assert_eq!((any.code, any.stdout.trim()), (1, &*second));
    let ambiguous = stage.run(&["result", "0"]);
    assert_eq!(ambiguous.code, 2);
    assert!(ambiguous.stderr.contains(&first) && ambiguous.stderr.contains(&second));
}

#[test]
fn a_result_never_lies() {
    let stage = repository();
    let id = detached(&stage, "hang");
    let early = stage.run(&["result", &id]);
    assert_eq!((early.code, &*early.stdout), (1, ""));
    assert_eq!(stage.run(&["wait", "--timeout", "0.1", &id]).code, 124);
    assert_eq!(stage.run(&["kill", &id]).code, 0);
    assert_eq!(stage.run(&["wait", &id]).code, 137);
    assert_eq!(listed(&stage, &id)["status"], "killed");

    let id = detached(&stage, "hang");
    let supervisor = listed(&stage, &id)["pid"].as_i64().unwrap();
    kill(Pid::from_raw(supervisor.try_into().unwrap()), Signal::SIGKILL).unwrap();
    assert_eq!(stage.run(&["wait", &id]).code, 1);
    assert_eq!(listed(&stage, &id)["status"], "lost");
    let result = stage.run(&["result", &id]);
    assert_eq!((result.code, &*result.stdout), (1, ""));
}

#[test]
fn a_run_is_no_team_that_commands_find_by_themselves() {
    let stage = repository();
    let team = stage.team("", vec![agent("ui")]);
    team.steer_when_ready(&["ui"]);
    let id = detached(&stage, "hang");
    let agents = stage.run(&["ps"]);
    assert!(agents.stdout.contains("ui"), "{} {}", agents.stdout, agents.stderr);
    // It may begin only now.
    let own = ["ps", "--team", &["run-", &id].concat()];
    eventually("its own team is found by name", || stage.run(&own).stdout.contains("agent"));
    assert_eq!(stage.run(&["kill", &id]).code, 0);
}

#[test]
fn a_strict_run_tells_by_its_code_that_something_was_refused() {
    let stage = repository();
    let ended = run_agent(&stage, &["--zone", "src/**", "save"]);
    assert_eq!((ended.code, &*ended.stdout), (0, "Done.\n"), "{}", ended.stderr);
    let told: Vec<_> = ended.stderr.lines().collect();
    let [changed, refused, _] = told[..] else { panic!("{told:?}") };
    assert!(changed.starts_with("1 file, +1 \u{2212}0: "), "{changed}");
    assert!(changed.contains("eisen-core diff --run "), "{changed}");
    assert!(refused.starts_with("1 refused: "), "{refused}");
    assert!(refused.contains("eisen-core history --run "), "{refused}");
    let id = &changed.rsplit(' ').next().unwrap()[..22];
    let diff = stage.run(&["diff", "--run", id]);
    assert!(diff.stdout.contains("+++ b/src/ui/new.ts"), "{diff:?}");
    let history = stage.run(&["history", "--run", id, "--type", "blocked"]);
    assert!(history.stdout.contains("docs/new.md"), "{history:?}");
    assert!(stage.run(&["history", "--run", "01NONE"]).stderr.contains("01NONE"));

    let strict = ["--strict-exit", "--json", "--zone", "src/**"];
    let ended = run_agent(&stage, &[&strict[..], &["save"]].concat());
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &result["status"]), (7, &"succeeded".into()));
    assert_eq!(result["exit_code"], 7);
    let blocked = &result["blocked"][0];
    assert_eq!((&blocked["path"], &blocked["stops_work"]), (&"docs/new.md".into(), &true.into()));
    let waited = stage.run(&["wait", result["id"].as_str().unwrap()]);
    assert_eq!(waited.code, 7, "{}", waited.stderr);
    // What is denied by name is meant to be.
    let ended = run_agent(&stage, &["--strict-exit", "--deny", "docs/**", "save"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}
