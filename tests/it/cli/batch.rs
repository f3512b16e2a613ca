//! `batch`: tasks in the order of their dependencies, each done once, however the batch ends.

use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::Running;
use super::run::command;
use crate::harness::{EISEN_CORE, Ended, Lines, Stage, eventually, program, run};

/// `gate` works until there is a file `go`.
const SCRIPT: &str = r#"
[agent]
name = "one"
[[on]]
prompt = "sum"
steps = [{ say = "{prompt}" }]
[[on]]
prompt = "gate"
steps = [{ run = "while ! test -e go; do sleep 0.05; done" }, { say = "Through." }]
[[on]]
prompt = "begin"
steps = [
  { write = "half.txt", content = "half" },
  { run = "while ! test -e go; do sleep 0.05; done" },
  { say = "Done." },
]
[[on]]
prompt = "refuse"
steps = [{ say = "No." }, { stop = "refusal" }]
[[on]]
prompt = "hang"
steps = [{ hang = true }]
[[on]]
steps = [{ say = "Done." }]
"#;

fn stage() -> Stage {
    let stage = Stage::new();
    let made = program("git").args(["init", "-q"]).arg(stage.path("shop")).status().unwrap();
    assert!(made.success());
    stage.file("one.toml", SCRIPT);
    let script = stage.path("one.toml").display().to_string();
    let profile =
        format!("[profiles.one]\ncommand = [\"{EISEN_CORE}\", \"scripted-agent\", \"{script}\"]\n");
    stage.file("home/config.toml", &(profile + Stage::ANY_MEMORY));
    stage
}

/// Writes the file of a batch: each task by id, prompt and what it waits for.
fn tasks(stage: &Stage, keys: &str, tasks: &[(&str, &str, &[&str])]) {
    let task = |(id, prompt, after): &(&str, &str, &[&str])| {
        format!("[[tasks]]\nid = {id:?}\nprompt = {prompt:?}\nafter = {after:?}\n")
    };
    let tasks: Vec<_> = tasks.iter().map(task).collect();
    stage.file(
        "shop/tasks.toml",
        &format!("{keys}\n[defaults]\nprofile = \"one\"\n{}", tasks.concat()),
    );
}

fn batch_command(stage: &Stage, args: &[&str]) -> Command {
    command(stage, &[&["batch", "../tasks.toml"], args].concat())
}

fn batch(stage: &Stage, args: &[&str]) -> Ended {
    run(&mut batch_command(stage, args))
}

/// Performs the batch; returns the exit code, and what it says of each task.
fn told(stage: &Stage, args: &[&str]) -> (i32, Vec<Value>) {
    let ended = batch(stage, &[args, &["--json"]].concat());
    let told: Value =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stderr));
    assert_eq!(told["exit_code"], ended.code);
    (ended.code, told["tasks"].as_array().unwrap().clone())
}

/// Status of each task.
fn statuses(tasks: &[Value]) -> Vec<(&str, &str)> {
    tasks.iter().map(|it| (it["id"].as_str().unwrap(), it["status"].as_str().unwrap())).collect()
}

fn begun(stage: &Stage, args: &[&str]) -> (Running, Lines) {
    let mut command = batch_command(stage, args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdout = Lines::of(child.stdout.take().unwrap());
    let stderr = Lines::of(child.stderr.take().unwrap());
    (Running { child, stderr }, stdout)
}

fn runs(stage: &Stage) -> Vec<Value> {
    serde_json::from_str(&stage.run(&["runs", "--all", "--json"]).stdout).unwrap()
}

fn count(stage: &Stage, status: &str) -> usize {
    runs(stage).iter().filter(|run| run["status"] == status).count()
}

fn pid_of(run: &Value) -> Pid {
    Pid::from_raw(run["pid"].as_i64().unwrap().try_into().unwrap())
}

#[test]
fn a_task_gets_the_results_of_those_before_it() {
    let stage = stage();
    let all: [(&str, &str, &[&str]); 3] =
        [("sum", "Make the sum", &["b", "a"]), ("a", "Do a", &[]), ("b", "Do b", &["a"])];
    tasks(&stage, "max_running = 1", &all);
    let ended = batch(&stage, &[]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let ids: Vec<_> =
        ended.stdout.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(ids, ["TASK", "a", "b", "sum"], "{}", ended.stdout);
    assert_eq!(ended.stdout.matches(" succeeded ").count(), 3, "{}", ended.stdout);
    assert_eq!(ended.stderr.lines().count(), 3, "a line for each end: {}", ended.stderr);
    let (_, tasks) = told(&stage, &[]);
    let sum = stage.run(&["result", tasks[2]["run"].as_str().unwrap()]).stdout;
    assert!(sum.starts_with("Make the sum\n\nThe result of the task `a`"), "{sum}");
    assert_eq!(sum.matches("\n> Done.").count(), 2, "{sum}");
    assert_eq!(runs(&stage).len(), 3, "what is done is not done again");
}

#[test]
fn at_most_max_running_run_at_once() {
    let stage = stage();
    let all: [(&str, &str, &[&str]); 3] =
        [("a", "gate", &[]), ("b", "gate", &[]), ("c", "Do c", &[])];
    tasks(&stage, "max_running = 2", &all);
    let (batch, _) = begun(&stage, &[]);
    eventually("two run", || count(&stage, "running") == 2);
    assert_eq!(runs(&stage).len(), 2);
    stage.file("shop/go", "");
    let (code, stderr) = batch.end();
    assert_eq!(code, Some(0), "{stderr}");
    let runs = runs(&stage);
    let time = |at: usize, key: &str| runs[at][key].as_u64().unwrap();
    assert!(time(2, "started_at_ms") >= time(0, "ended_at_ms").min(time(1, "ended_at_ms")));
}

#[test]
fn what_waits_for_a_failed_task_is_skipped() {
    let stage = stage();
    let all: [(&str, &str, &[&str]); 4] = [
        ("bad", "refuse", &[]),
        ("next", "Do it", &["bad"]),
        ("last", "Do it", &["next"]),
        ("other", "Do it", &[]),
    ];
    tasks(&stage, "max_running = 1", &all);
    let (code, tasks_told) = told(&stage, &["--fail-fast"]);
    let skipped = [("bad", "failed"), ("next", "skipped"), ("last", "skipped")];
    assert_eq!(statuses(&tasks_told), [&skipped[..], &[("other", "skipped")]].concat());
    assert_eq!((code, &tasks_told[0]["exit_code"]), (1, &5.into()));
    assert_eq!(runs(&stage).len(), 1);
    let (code, tasks_told) = told(&stage, &[]);
    assert_eq!(statuses(&tasks_told), [&skipped[..], &[("other", "succeeded")]].concat());
    assert_eq!(tasks_told[1]["reason"], "`bad` is failed");
    // What has failed is tried again.
    assert_eq!((code, runs(&stage).len()), (1, 3));

    tasks(&stage, "", &[("late", "hang", &[])]);
    let text = stage.read("shop/tasks.toml").replace("[defaults]", "[defaults]\ntimeout_s = 1");
    stage.file("shop/tasks.toml", &text);
    let (code, tasks_told) = told(&stage, &[]);
    assert_eq!((code, statuses(&tasks_told)), (124, vec![("late", "timed_out")]));
}

#[test]
fn a_killed_batch_goes_on_and_does_nothing_twice() {
    let stage = stage();
    let all: [(&str, &str, &[&str]); 3] =
        [("a", "Do a", &[]), ("b", "gate", &["a"]), ("sum", "the sum", &["b"])];
    tasks(&stage, "", &all);
    let waits = || runs(&stage).len() == 2 && count(&stage, "running") == 1;
    let (mut first, _) = begun(&stage, &[]);
    eventually("the second task runs", waits);
    let refused = batch(&stage, &[]);
    assert_eq!((refused.code, &*refused.stdout), (2, ""), "{}", refused.stderr);
    let holder = format!("(pid {}", first.child.id());
    assert!(refused.stderr.contains(&holder), "{}", refused.stderr);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    assert_eq!(count(&stage, "running"), 1, "the run outlives the batch");

    let planned = batch(&stage, &["--dry-run"]);
    assert!(planned.stdout.contains("is waited for: the run"), "{}", planned.stdout);
    let (mut second, _) = begun(&stage, &[]);
    let told = [(); 2].map(|()| second.stderr.next().unwrap()).join("\n");
    assert!(
        told.contains("a: succeeded before") && told.contains("b: waits for the run"),
        "{told}"
    );
    // Now its run is killed, too.
    second.child.kill().unwrap();
    second.child.wait().unwrap();
    kill(pid_of(&runs(&stage)[1]), Signal::SIGKILL).unwrap();
    eventually("the run is lost", || count(&stage, "lost") == 1);
    let (third, _) = begun(&stage, &[]);
    eventually("it runs again", || runs(&stage).len() == 3 && count(&stage, "running") == 1);
    stage.file("shop/go", "");
    let (code, stderr) = third.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("b: runs again: its run") && stderr.contains("was lost"), "{stderr}");
    assert_eq!((count(&stage, "succeeded"), runs(&stage).len()), (3, 4));
}

#[test]
fn what_a_lost_attempt_wrote_is_told_or_taken_back() {
    let undo = "on_failover = \"undo\"\n";
    for (keys, sentence) in [("", "of the work of one: 1 file, "), (undo, "1 file taken back")] {
        let stage = stage();
        // Its last table is `[runs]`.
        stage.file("home/config.toml", &(stage.read("home/config.toml") + keys));
        tasks(&stage, "", &[("half", "begin", &[])]);
        let (mut first, _) = begun(&stage, &[]);
        let written = || {
            let Some(team) = runs(&stage).first().map(|run| run["team"].clone()) else {
                return false;
            };
            let history = ["history", "--team", team.as_str().unwrap(), "--type", "file"];
            stage.run(&history).stdout.contains("half.txt")
        };
        eventually("what it wrote is in the journal", written);
        first.child.kill().unwrap();
        first.child.wait().unwrap();
        kill(pid_of(&runs(&stage)[0]), Signal::SIGKILL).unwrap();
        eventually("the run is lost", || count(&stage, "lost") == 1);
        let (second, _) = begun(&stage, &[]);
        eventually("it runs again", || count(&stage, "running") == 1);
        stage.file("shop/go", "");
        let (code, stderr) = second.end();
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stderr.contains(sentence), "{stderr}");
    }
}

#[test]
fn a_task_that_has_changed_is_done_again_with_those_behind_it() {
    let stage = stage();
    let all = |b: &'static str| -> [(&str, &str, &[&str]); 3] {
        [("a", "Do a", &[]), ("b", b, &[]), ("sum", "the sum", &["b"])]
    };
    tasks(&stage, "", &all("Do b"));
    assert_eq!(told(&stage, &[]).0, 0);
    tasks(&stage, "max_running = 1", &all("Do b better"));
    let planned = batch(&stage, &["--dry-run"]).stdout;
    assert!(planned.contains("runs again: it has changed"), "{planned}");
    assert!(planned.contains("runs if what is before it succeeds"), "{planned}");
    assert_eq!(runs(&stage).len(), 3, "a dry run starts nothing");
    let (code, tasks_told) = told(&stage, &[]);
    let earlier: Vec<_> = tasks_told.iter().map(|task| task["earlier"] == true).collect();
    assert_eq!((code, earlier), (0, vec![true, false, false]));
    assert_eq!(runs(&stage).len(), 5);
    assert_eq!(told(&stage, &["--restart"]).0, 0);
    assert_eq!(runs(&stage).len(), 8);
    let kept = || std::fs::read_dir(stage.path("home/batches")).unwrap().count();
    assert_eq!((stage.run(&["gc"]).code, kept()), (0, 1));
    for left in [1, 0] {
        assert_eq!((stage.run(&["gc", "--max-age-days", "0"]).code, kept()), (0, left));
    }
}

#[test]
fn ctrl_c_ends_the_runs_and_shows_the_table() {
    let stage = stage();
    let all: [(&str, &str, &[&str]); 3] =
        [("a", "Do a", &[]), ("b", "gate", &["a"]), ("c", "Do c", &["b"])];
    tasks(&stage, "", &all);
    let (batch, stdout) = begun(&stage, &[]);
    eventually("the second task runs", || runs(&stage).len() == 2 && count(&stage, "running") == 1);
    batch.interrupt();
    let table = stdout.rest();
    let (code, stderr) = batch.end();
    assert_eq!(code, Some(130), "{stderr}");
    let ended = |at: usize| table[at].split_whitespace().nth(2).unwrap();
    assert_eq!([ended(1), ended(2), ended(3)], ["succeeded", "killed", "skipped"], "{table:?}");
    assert_eq!(count(&stage, "killed"), 1);
    stage.file("shop/go", "");
    assert_eq!(told(&stage, &[]).0, 0);
    assert_eq!(runs(&stage).len(), 4);
}

#[test]
fn mistakes_are_told_before_anything_is_started() {
    let stage = stage();
    for (text, told) in [
        ("[[tasks]]\nid = \"a\"\npromt = \"x\"\n", "did you mean `prompt`?"),
        ("[[tasks]]\nid = \"a\"\nprompt = \"x\"\nafter = [\"b\"]\n", "there is no task \"b\""),
        ("[[tasks]]\nid = \"a\"\nprompt = \"x\"\nafter = [\"a\"]\n", "wait for each other"),
        ("[[tasks]]\nid = \"a\"\nprompt = \"x\"\ntier = \"best\"\n", "there is no tier `best`"),
        (
            "\n[[tasks]]\nid = \"a\"\nprompt = \"x\"\nprofile = \"nobody\"\n",
            "tasks.toml:2: the task `a`",
        ),
        ("max_running = 3\n", "there are no tasks"),
    ] {
        stage.file("shop/tasks.toml", text);
        let ended = batch(&stage, &[]);
        assert_eq!((ended.code, &*ended.stdout), (2, ""), "{text}: {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{text}: {}", ended.stderr);
    }
    assert!(!stage.has("home/runs"), "no run was made");
}
