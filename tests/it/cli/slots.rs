//! Slots, sessions and memory that runs and teams of a user share: who waits says for whom, and is next.

use serde_json::Value;

use super::run::{command, listed};
use crate::harness::{EISEN_CORE, Ended, Stage, program, run};

const SCRIPT: &str = r#"
[agent]
name = "one"
load = []
[[on]]
prompt = "hang"
steps = [{ say = "So far." }, { hang = true }]
[[on]]
steps = [{ say = "Done." }]
"#;

/// A git repository, and a user's file with the profiles `one`, and `two` that is based on it.
fn stage(config: &str) -> Stage {
    let stage = Stage::new();
    let made = program("git").args(["init", "-q"]).arg(stage.path("shop")).status().unwrap();
    assert!(made.success());
    stage.file("one.toml", SCRIPT);
    let script = stage.path("one.toml").display().to_string();
    let profiles = format!(
        "[profiles.one]\ncommand = [\"{EISEN_CORE}\", \"scripted-agent\", \"{script}\"]\n\
         [profiles.two]\nbase = \"one\"\n"
    );
    let any_memory = if config.contains("[runs]") { "" } else { Stage::ANY_MEMORY };
    stage.file("home/config.toml", &(profiles + config + any_memory));
    stage
}

fn run_as(stage: &Stage, profile: &str, args: &[&str]) -> Ended {
    run(&mut command(stage, &[&["run", "--profile", profile], args].concat()))
}

/// Starts a run in the background; returns its id once this is so of it.
fn detached(stage: &Stage, profile: &str, args: &[&str], is_so: impl Fn(&Value) -> bool) -> String {
    let ended = run_as(stage, profile, &[&["--detach"], args].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let id = ended.stdout.trim().to_owned();
    while !is_so(&listed(stage, &id)) {
        let status = listed(stage, &id)["status"].as_str().unwrap().to_owned();
        assert!(["waiting", "running"].contains(&&*status), "{}", listed(stage, &id));
    }
    id
}

fn runs(run: &Value) -> bool {
    run["status"] == "running"
}

/// Whether a run waits for another one.
fn waits_for(other: &str) -> impl Fn(&Value) -> bool {
    move |run| {
        run["status"] == "waiting" && run["waits_for"].as_str().is_some_and(|it| it.contains(other))
    }
}

#[test]
fn a_run_waits_for_the_slot_of_its_profile_and_says_for_whom() {
    let stage = stage("[slots]\none = 1\n");
    let first = detached(&stage, "one", &["hang"], runs);
    // Its base has the slot.
    let refused = run_as(&stage, "two", &["--no-wait", "look"]);
    assert_eq!((refused.code, &*refused.stdout), (125, ""), "{}", refused.stderr);
    let named = format!("waits for a slot of `one`: held by the run {first}");
    assert!(refused.stderr.contains(&named), "{}", refused.stderr);
    let late = run_as(&stage, "one", &["--slot-timeout", "1", "--json", "look"]);
    let told: Value = serde_json::from_str(&late.stdout).unwrap();
    assert_eq!((late.code, &told["status"]), (124, &"timed_out".into()), "{told}");
    assert!(late.stderr.contains(&named), "{}", late.stderr);
    let late = run_as(&stage, "one", &["--timeout", "1", "look"]);
    assert_eq!(late.code, 124, "{}", late.stderr);

    let second = detached(&stage, "two", &["look"], waits_for(&first));
    let third = detached(&stage, "one", &["look"], waits_for("1 more waits before it"));
    assert_eq!(stage.run(&["result", &second]).code, 1);
    let table = stage.run(&["runs"]).stdout;
    let row = table.lines().find(|line| line.starts_with(&second)).unwrap();
    assert!(table.contains("WAITS FOR"), "{table}");
    assert!(row.contains(&format!("a slot of `one`: held by the run {first}")), "{table}");
    assert_eq!(stage.run(&["kill", &second]).code, 0);
    assert_eq!(listed(&stage, &second)["status"], "killed");
    assert_eq!(stage.run(&["wait", &second]).code, 137);
    assert!(waits_for(&first)(&listed(&stage, &third)), "the first has the slot");
    assert_eq!(stage.run(&["kill", &first]).code, 0);
    assert_eq!(stage.run(&["wait", "--timeout", "20", &third]).code, 0);
    assert_eq!(stage.run(&["result", &third]).stdout, "Done.\n");
}

#[test]
fn a_killed_holder_frees_its_slot() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    let stage = stage("[slots]\none = 1\n");
    let first = detached(&stage, "one", &["hang"], runs);
    let second = detached(&stage, "one", &["look"], waits_for(&first));
    let supervisor = listed(&stage, &first)["pid"].as_i64().unwrap();
    kill(Pid::from_raw(supervisor.try_into().unwrap()), Signal::SIGKILL).unwrap();
    assert_eq!(stage.run(&["wait", "--timeout", "20", &second]).code, 0);
}

#[test]
fn an_agent_of_a_team_waits_for_the_slot_that_a_run_has() {
    let stage = stage("[slots]\none = 1\n");
    let first = detached(&stage, "one", &["hang"], runs);
    stage.configure("", Vec::new());
    let agents = "[[agents]]\nid = \"ui\"\nprofile = \"two\"\n";
    stage.file("eisen.toml", &(stage.read("eisen.toml") + agents));
    let team = stage.up();
    let named = format!("waits for a slot of `one`: held by the run {first}");
    while !stage.run(&["ps", "--json"]).stdout.contains(&named) {}
    assert_eq!(stage.run(&["kill", &first]).code, 0);
    let _port = team.steer_when_ready(&["ui"]);
    let refused = run_as(&stage, "one", &["--no-wait", "look"]);
    assert_eq!(refused.code, 125, "{}", refused.stderr);
    assert!(refused.stderr.contains("held by `ui` of the team"), "{}", refused.stderr);
    assert_eq!(stage.run(&["stop", "ui"]).code, 0);
    let free = run_as(&stage, "one", &["--slot-timeout", "20", "look"]);
    assert_eq!((free.code, &*free.stdout), (0, "Done.\n"), "{}", free.stderr);
}

#[test]
fn one_run_at_a_time_uses_a_session() {
    let stage = stage("");
    assert_eq!(run_as(&stage, "one", &["look"]).code, 0);
    let first = detached(&stage, "one", &["--session", "last", "hang"], runs);
    let refused = run_as(&stage, "one", &["--session", "last", "--no-wait", "look"]);
    assert_eq!(refused.code, 125, "{}", refused.stderr);
    let named = format!("waits for the session: held by the run {first}");
    assert!(refused.stderr.contains(&named), "{}", refused.stderr);
    assert_eq!(stage.run(&["kill", &first]).code, 0);
    let free = run_as(&stage, "one", &["--session", "last", "--slot-timeout", "20", "look"]);
    assert_eq!(free.code, 0, "{}", free.stderr);
}

#[test]
fn a_run_that_would_leave_too_little_memory_waits() {
    let stage = stage("[runs]\nmin_free_mb = 1000000000\n");
    let refused = run_as(&stage, "one", &["--no-wait", "look"]);
    assert_eq!(refused.code, 125, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("`min_free_mb` = 1000000000 would be left"),
        "{}",
        refused.stderr
    );
    let late = run_as(&stage, "one", &["--slot-timeout", "1", "look"]);
    assert_eq!(
        (late.code, late.stderr.matches("waits for memory").count()),
        (124, 2),
        "{}",
        late.stderr
    );
    let waits = detached(&stage, "one", &["look"], waits_for("waits for memory"));
    assert_eq!(stage.run(&["kill", &waits]).code, 0);
}
