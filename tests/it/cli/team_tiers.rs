//! Agents of a team that have a tier: the next candidate takes over, in the same zone, and is told what was
//! done.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::harness::{EISEN_CORE, Port, Stage, eventually};

const FIRST: &str = r#"
[agent]
name = "first"
[[on]]
steps = [
  { say = "I begin with the header." },
  { disk_write = "src/ui/new.ts", content = "half of it" },
  { fail = "429 Too Many Requests, retry after SECONDS s" },
]
"#;

/// Says whether it was told of the one before, and tries to leave its zone.
const SECOND: &str = r#"
[agent]
name = "second"
[[on]]
prompt = "leave"
steps = [{ read = "src/api/secret.ts", on_ok = [{ say = "I left." }], on_error = [{ say = "I stay." }] }]
[[on]]
prompt = "*I begin with the header*"
steps = [{ disk_read = "src/ui/new.ts", on_ok = [{ say = "I go on with {last}." }], on_error = [{ say = "I begin anew." }] }]
[[on]]
steps = [{ say = "Done at once." }]
"#;

const BOTH: &str = "candidates = [{ profile = \"first\" }, { profile = \"second\" }]\n";

/// A stage with a team whose agent `ui` has the tier `smart`.
fn stage(seconds: &str, tier: &str, agents: &[&str]) -> Stage {
    let stage = Stage::new();
    stage.file("first.toml", &FIRST.replace("SECONDS", seconds));
    stage.file("second.toml", SECOND);
    stage.file("shop/src/api/secret.ts", "secret");
    let mut keys = format!(
        "[[tiers]]\nname = \"smart\"\n{tier}[profiles.gone]\ncommand = [\"no-such-agent\"]\n"
    );
    for name in ["first", "second"] {
        let script = stage.path(&format!("{name}.toml")).display().to_string();
        write!(
            keys,
            "[profiles.{name}]\ncommand = [\"{EISEN_CORE}\", \"scripted-agent\", \"{script}\"]\n"
        )
        .unwrap();
    }
    for id in agents {
        write!(keys, "[[agents]]\nid = \"{id}\"\ntier = \"smart\"\n[agents.zone]\nallowed = [\"src/ui/**\"]\n").unwrap();
    }
    stage.configure(&keys, Vec::new());
    stage
}

fn profile_of(port: &mut Port, agent: &str) -> Value {
    let all = port.call("list_agents", &json!({})).unwrap();
    let all = all.as_array().unwrap();
    all.iter().find(|it| it["agent_id"] == agent).unwrap()["candidate"]["profile"].clone()
}

fn tiers(stage: &Stage) -> Value {
    let shown = stage.eisen_core(&["tiers", "--json"]);
    let mut shown = shown;
    shown.current_dir(stage.path(""));
    serde_json::from_str(&crate::harness::run(&mut shown).stdout).unwrap()
}

#[test]
fn the_next_candidate_of_a_member_goes_on_in_its_zone() {
    let stage = stage("300", BOTH, &["ui"]);
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(profile_of(&mut port, "ui"), "first");
    assert_eq!(port.prompt("ui", "Rename it"), "I go on with half of it.");
    assert_eq!(profile_of(&mut port, "ui"), "second");
    assert_eq!(port.prompt("ui", "leave"), "I stay.");
    let kept = stage.read("home/cooldowns/state.json");
    assert!(kept.contains("rate limited"), "{kept}");
    let known = tiers(&stage);
    assert_eq!(known[0]["taken"]["profile"], "second", "{known}");
    let events = port.call("list_events", &json!({ "types": ["config.change"] })).unwrap();
    assert!(events.to_string().contains("failover"), "{events}");
    drop(port);
    team.stop();

    // The next team does not ask the first one.
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "Rename it"), "Done at once.");
    drop(port);
    team.stop();
}

#[test]
fn the_answer_of_the_next_candidate_is_streamed_from_its_beginning() {
    let stage = stage("300", BOTH, &["ui"]);
    // As many bytes as the first one said, and fewer, were said before.
    for answer in ["I am the second one now.", "Short."] {
        stage.file(
            "second.toml",
            &format!("[agent]\nname = \"second\"\n[[on]]\nsteps = [{{ say = \"{answer}\" }}]\n"),
        );
        let team = stage.up();
        drop(team.steer_when_ready(&["ui"]));
        let mut prompt = stage.eisen_core(&["prompt", "ui", "Rename it"]);
        prompt.current_dir(stage.path(""));
        let ended = crate::harness::run(&mut prompt);
        assert_eq!(
            ended.stdout,
            format!("I begin with the header.\n{answer}\n"),
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.contains("the prompt was sent again"), "{}", ended.stderr);
        team.stop();
        std::fs::remove_dir_all(stage.path("home/cooldowns")).unwrap();
    }
}

#[test]
fn a_member_that_is_silent_makes_room_and_the_last_one_has_all_time() {
    let bound = "[runs]\nsilence_s = 1\n";
    let stage = stage("300", &format!("{BOTH}{bound}"), &["ui"]);
    let silent = "[[on]]\nsteps = [{ wait = \"cancel\" }]\n";
    stage.file("first.toml", &format!("[agent]\nname = \"first\"\n{silent}"));
    let slow = "[[on]]\nsteps = [{ wait_ms = 2000 }, { say = \"At last.\" }]\n";
    stage.file("second.toml", &format!("[agent]\nname = \"second\"\n{slow}"));
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "Rename it"), "At last.");
    assert_eq!(profile_of(&mut port, "ui"), "second");
    let known = tiers(&stage);
    assert_eq!(known[0]["candidates"][0]["reason"], "silent", "{known}");
    drop(port);
    team.stop();
}

#[test]
fn a_member_without_another_candidate_says_why_and_tries_again() {
    let only = "candidates = [{ profile = \"first\" }, { profile = \"gone\" }]\n";
    let stage = stage("2", &format!("{only}[runs]\npatience_s = 0\n"), &["ui"]);
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    let refused = port.call("prompt", &json!({ "agent_id": "ui", "text": "Rename it" }));
    let refused = refused.unwrap_err().to_string();
    for part in ["first is rate limited", "gone is not installed", "try again at"] {
        assert!(refused.contains(part), "{refused}");
    }
    let out = port.agent_is("ui", "error");
    assert!(out["reason"].as_str().unwrap().starts_with("no candidate of the tier"), "{out}");
    // The hint of its vendor is over.
    port.agent_is("ui", "ready");
    drop(port);
    team.stop();
}

#[test]
fn a_member_that_can_not_start_moves_on() {
    let stage = stage("300", BOTH, &["ui"]);
    stage.file("first.toml", "[agent]\nname = \"first\"\nauth_methods = [\"key\"]\n");
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    eventually("the second one runs", || profile_of(&mut port, "ui") == "second");
    assert_eq!(port.prompt("ui", "Rename it"), "Done at once.");
    drop(port);
    team.stop();
}

#[test]
fn members_of_a_tier_take_turns_also_over_starts() {
    let stage = stage("300", &format!("pick = \"rotate\"\n{BOTH}"), &["ui", "api", "docs"]);
    let taken = |stage: &Stage| {
        let team = stage.up();
        let mut port = team.steer_when_ready(&["ui", "api", "docs"]);
        let taken = ["ui", "api", "docs"].map(|agent| profile_of(&mut port, agent));
        drop(port);
        team.stop();
        taken
    };
    assert_eq!(taken(&stage), ["first", "second", "first"]);
    assert_eq!(taken(&stage), ["second", "first", "second"]);
}
