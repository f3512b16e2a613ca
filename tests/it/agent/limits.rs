//! Limits of agents' and teams' resources.

use serde_json::{Value, json};

use crate::harness::{Held, Port, Stage, agent, program, run};

/// A terminal whose processes hold a hundred megabytes until they are killed: `tail` keeps what it
/// is to show in memory.
const HOG: &str = "head -c 150000000 /dev/zero | tail | sleep 1000";

fn limits(keys: &str, policy: &str) -> String {
    format!("[agents.limits]\n{keys}\n[agents.restart]\npolicy = {policy:?}\nbackoff_ms = [1, 1]")
}

fn of_list(port: &mut Port, agent: &str) -> Value {
    let agents = port.call("list_agents", &json!({})).unwrap();
    agents.as_array().unwrap().iter().find(|one| one["agent_id"] == agent).unwrap().clone()
}

#[test]
fn an_agent_with_too_much_memory_is_ended_with_all_it_started_and_a_reason() {
    let stage = Stage::new();
    let held = Held::new(&stage);
    let ui = agent("ui").with(&limits("memory_mb = 100", "never"));
    let team = stage.team("", vec![ui.behind(&held.by("ui")), agent("api")]);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    held.is_by(&["ui"]);
    let running = port.begin("ui", &format!("run {} {HOG}", held.by("terminal")));
    let reason = port.agent_is("ui", "error")["reason"].as_str().unwrap().to_owned();
    let used = reason.strip_prefix("used ").and_then(|rest| {
        rest.strip_suffix(" MB of memory, more than memory_mb = 100 allows: killed")
    });
    assert!(used.and_then(|used| used.parse::<u64>().ok()).is_some_and(|mb| mb > 100), "{reason}");
    assert!(port.answer(running).unwrap_err()["message"].as_str().unwrap().contains(&reason));
    held.end();
    assert!(of_list(&mut port, "ui")["peak_memory_bytes"].as_u64().unwrap() > 100 << 20);
    // Who did not offend goes on.
    assert_eq!(port.prompt("api", "hello"), "hello");
}

#[test]
fn memory_that_has_no_name_counts_too() {
    let stage = Stage::new();
    let ui = agent("ui").with(&limits("memory_mb = 100", "never"));
    let team = stage.team("", vec![ui]);
    let mut port = team.steer_when_ready(&["ui"]);
    stage.file(
        "shop/hoard.py",
        "import os, signal\nfile = os.memfd_create('hoard')\n\
         for _ in range(150): os.write(file, bytes(1 << 20))\nsignal.pause()\n",
    );
    port.begin("ui", "run python3 hoard.py");
    let reason = port.agent_is("ui", "error")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("more than memory_mb = 100 allows: killed"), "{reason}");
}

#[test]
fn who_forks_too_much_is_ended_and_started_again_by_its_policy() {
    let stage = Stage::new();
    let held = Held::new(&stage);
    let team = stage.team("", vec![agent("ui").with(&limits("processes = 20", "on-failure"))]);
    let mut port = team.steer_when_ready(&["ui"]);
    // Daemons, in sessions of their own.
    let bomb = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do setsid sh -c \"sleep 1000 & sleep 1000 & exit\"; done; \
                sleep 1000";
    port.begin("ui", &format!("run {} {bomb}", held.by("terminal")));
    let reason = port.agent_is("ui", "restarting")["reason"].as_str().unwrap().to_owned();
    let ran = reason
        .strip_prefix("ran ")
        .and_then(|rest| rest.strip_suffix(" processes, more than processes = 20 allows: killed"));
    assert!(ran.and_then(|ran| ran.parse::<u64>().ok()).is_some_and(|ran| ran > 20), "{reason}");
    held.end();
    port.agent_is("ui", "ready");
    assert_eq!(port.prompt("ui", "hello"), "hello");
}

#[test]
fn a_limit_that_is_kept_is_not_felt() {
    let stage = Stage::new();
    let keys = limits("memory_mb = 1000\nprocesses = 50", "never");
    let team = stage.team("", vec![agent("ui").with(&keys)]);
    let mut port = team.steer_when_ready(&["ui"]);
    let line = "run head -c 50000000 /dev/zero | tail | wc -c";
    assert_eq!(port.prompt("ui", line).trim(), "50000000");
    // What was forked shares all of its memory, which counts once: each waits for a writer.
    nix::unistd::mkfifo(&stage.path("shop/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let line = "run a=$(head -c 60000000 /dev/zero | tr '\\0' x); i=0; \
                while [ $i -lt 25 ]; do { read x; echo $a; } < pipe & i=$((i+1)); done; wait";
    port.begin("ui", line);
    let now = std::iter::repeat_with(|| of_list(&mut port, "ui"));
    now.take(100_000).find(|ui| ui["peak_processes"].as_u64() >= Some(27)).unwrap();
    let now = of_list(&mut port, "ui");
    assert_eq!((&now["state"], &now["reason"]), (&json!("ready"), &Value::Null));
    assert!(now["peak_memory_bytes"].as_u64().unwrap() <= 1000 << 20, "{now}");
}

#[test]
fn the_peak_of_a_run_is_shown_after_it_too() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let much = |bytes: &Value| bytes.as_u64().is_some_and(|bytes| bytes > 100 << 20);
    port.begin("ui", &format!("run {HOG}"));
    let now = std::iter::repeat_with(|| of_list(&mut port, "ui"));
    let now = now.take(100_000).find(|ui| much(&ui["memory_bytes"])).unwrap();
    assert!(now["peak_memory_bytes"].as_u64() >= now["memory_bytes"].as_u64(), "{now}");
    assert!(now["peak_processes"].as_u64().unwrap() >= 4, "{now}");
    port.call("stop_agent", &json!({"agent_id": "ui"})).unwrap();
    let stopped = of_list(&mut port, "ui");
    assert!(stopped["memory_bytes"].is_null() && much(&stopped["peak_memory_bytes"]), "{stopped}");
    port.call("start_agent", &json!({"agent_id": "ui"})).unwrap();
    port.agent_is("ui", "ready");
    assert!(!much(&of_list(&mut port, "ui")["peak_memory_bytes"]));
}

#[test]
fn who_would_not_fit_waits_and_says_so() {
    let stage = Stage::new();
    let needs = |id, mb: u64| agent(id).with(&limits(&format!("memory_mb = {mb}"), "never"));
    let agents = || vec![needs("one", 500), needs("two", 300), needs("three", 100)];
    let team = stage.team("max_memory_mb = 700", agents());
    let mut port = team.steer_when_ready(&["one"]);
    let waiting = |port: &mut Port, agent: &str| {
        let waits = json!({"type": "agent", "agent_id": agent, "state": "initializing"});
        port.expect(&waits)["reason"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(
        waiting(&mut port, "two"),
        "waits for memory: the team uses 500 MB of max_memory_mb = 700, and `two` may use 300 MB"
    );
    // It would fit, but came later.
    assert_eq!(
        waiting(&mut port, "three"),
        "waits for memory: the team uses 500 MB of max_memory_mb = 700, and `two` may use 300 MB"
    );
    assert_eq!(of_list(&mut port, "three")["state"], "initializing");
    port.call("stop_agent", &json!({"agent_id": "one"})).unwrap();
    port.agent_is("two", "ready");
    port.agent_is("three", "ready");
    port.call("start_agent", &json!({"agent_id": "one"})).unwrap();
    let waits = of_list(&mut port, "one");
    assert_eq!(waits["state"], "initializing");
    stage.configure("max_memory_mb = 900", agents());
    let reloaded = port.call("reload", &json!({})).unwrap();
    assert_eq!(reloaded["applied"][0]["key"], "team.max_memory_mb", "{reloaded}");
    port.agent_is("one", "ready");
}

#[test]
fn agents_and_terminals_die_of_want_before_their_supervisor() {
    let stage = Stage::new();
    let score = |of: &str| {
        let path = stage.path(of).display().to_string();
        format!("cat /proc/self/oom_score_adj /proc/$PPID/oom_score_adj > {path}; ")
    };
    stage.file("shop/score.sh", &score("terminal"));
    let team = stage.team("", vec![agent("ui").behind(&score("ui"))]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "run . ./score.sh");
    let own = std::fs::read_to_string(format!("/proc/{}/oom_score_adj", team.program.id()));
    let own: i32 = own.unwrap().trim().parse().unwrap();
    for of in ["ui", "terminal"] {
        let scores = stage.read(of);
        let scores: Vec<i32> = scores.lines().map(|score| score.parse().unwrap()).collect();
        // Also before one that takes most of the memory.
        assert!(scores[0] >= (own + 900).min(1000), "{of}: {scores:?}");
        // Its warden is to go last, with the supervisor.
        assert_eq!(scores[1], own, "{of}");
    }
}

#[test]
fn what_waits_for_an_agent_counts_to_its_memory() {
    let stage = Stage::new();
    let mut puppet = stage.puppet("ui");
    let ui = agent("ui").puppet().with(&limits("memory_mb = 32", "never"));
    let team = stage.team("", vec![ui]);
    puppet.connect("s-ui");
    let mut port = team.steer_when_ready(&["ui"]);
    port.begin("ui", "go");
    puppet.prompted();
    for (name, mb) in [("large", 40), ("half", 20)] {
        let line = "x".repeat((1 << 20) - 1) + "\n";
        stage.file(&format!("shop/{name}"), &line.repeat(mb));
    }
    let read = |name: &str| json!({ "sessionId": "s-ui", "path": stage.in_shop(name) });
    let refused = puppet.call("fs/read_text_file", &read("large"))["error"].clone();
    let said = refused["message"].as_str().unwrap();
    assert!(said.contains("`memory_mb` is 32") && said.contains("ask for a part"), "{said}");
    let mut piece = read("large");
    (piece["line"], piece["limit"]) = (json!(3), json!(2));
    let content = puppet.call("fs/read_text_file", &piece)["result"]["content"].clone();
    assert_eq!(content.as_str().unwrap().len(), 2 << 20);
    // Together they would be too much; what was read counts no more.
    for _ in 0..3 {
        let answer = puppet.call("fs/read_text_file", &read("half"));
        assert_eq!(answer["result"]["content"].as_str().map(str::len), Some(20 << 20));
    }
    assert_eq!(of_list(&mut port, "ui")["state"], "ready");
}

#[test]
fn check_shows_limits_and_how_they_are_enforced() {
    let stage = Stage::new();
    let much = agent("ui").with(&limits("memory_mb = 2048\nprocesses = 256", "never"));
    stage.configure("max_memory_mb = 1000", vec![much, agent("api")]);
    let check = stage.run(&["check", "-c", "eisen.toml"]);
    let lines: Vec<_> = check.stdout.lines().filter(|line| line.contains("limits  ")).collect();
    assert_eq!(lines.len(), 1, "{check:?}");
    assert!(lines[0].contains("2048 MB of memory, 256 processes; held by "), "{check:?}");
    assert!(check.stdout.contains("ui may use 2048 MB of memory, and the whole team 1000 MB"));
    for key in ["memory_mb = 0", "processes = 0", "processes = -1"] {
        stage.configure("", vec![agent("ui").with(&limits(key, "never"))]);
        let check = stage.run(&["check", "-c", "eisen.toml"]);
        assert_eq!(check.code, 2, "{key}: {check:?}");
    }
}

/// Fills memory, and has a child that has become no other program yet: a copy of it, or, by vfork,
/// one in the same memory.
const FORKS: &str = r#"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    size_t size = 150 << 20;
    char *memory = malloc(size), end;
    memset(memory, count, size);
    pid_t child = strcmp(words[1], "vfork") ? fork() : vfork();
    if (child == 0) _exit(read(0, &end, 1) != 0);
    waitpid(child, 0, 0);
    return memory[size - 1];
}
"#;

#[test]
fn between_fork_and_exec_memory_counts_once() {
    for how in ["fork", "vfork"] {
        let stage = Stage::new();
        stage.file("shop/forks.c", FORKS);
        let mut cc = program("cc");
        let compiled = run(cc.args(["-o", "forks", "forks.c"]).current_dir(stage.path("shop")));
        assert_eq!(compiled.code, 0, "{}", compiled.stderr);
        nix::unistd::mkfifo(&stage.path("shop/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let team = stage.team("", vec![agent("ui")]);
        let mut port = team.steer_when_ready(&["ui"]);
        port.begin("ui", &format!("run exec ./forks {how} <> pipe"));
        let now = std::iter::repeat_with(|| of_list(&mut port, "ui"));
        let now = now.take(100_000).find(|ui| ui["peak_processes"].as_u64() >= Some(3)).unwrap();
        let bytes = now["peak_memory_bytes"].as_u64().unwrap();
        assert!((150 << 20..250 << 20).contains(&bytes), "{how}: {now}");
    }
}
