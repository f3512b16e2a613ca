//! Places of profiles, which strictly confined agents get: where their names lead elsewhere, and what runs of
//! other profiles get of them.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::harness::{EISEN_CORE, Port, Stage, Team, agent};

/// A stage with two profiles that have a place each, and an agent of the first one.
fn stage() -> Stage {
    let stage = Stage::new();
    for (path, text) in [("mine.json", "{}"), ("other/login", "key\n"), ("notes", "private\n")] {
        stage.file(&format!("user/.{path}"), text);
    }
    let command = stage.command(&agent("ui"));
    let script = stage.path("ui.toml").display().to_string();
    let text = format!(
        r#"
        [team]
        name = "shop"
        workspace = "shop"
        listen = "127.0.0.1:0"
        [profiles.mine]
        command = {command:?}
        writable = ["~/.mine.json"]
        [profiles.other]
        command = {command:?}
        env = {{ KEY = "secret" }}
        writable = ["~/.other"]
        [[agents]]
        id = "ui"
        profile = "mine"
        restart = {{ policy = "never" }}
        [agents.zone]
        allowed = ["src/ui/**"]
        readable = [{script:?}]
        enforce = "kernel"
        confine = "strict"
        "#
    );
    stage.file("eisen.toml", &text);
    stage
}

/// What a script prints; the line that starts it names nothing.
fn does(stage: &Stage, port: &mut Port, script: &str) -> String {
    let script = script.replace("eisen-core", EISEN_CORE);
    stage.file("shop/src/ui/do.sh", &format!("{script}\ntrue\n"));
    port.prompt("ui", "run sh src/ui/do.sh 2>&1")
}

/// Stops a team, and starts it again, with an agent that comes to rest.
fn again(stage: &Stage, team: Team) -> (Team, Port) {
    team.stop();
    let team = stage.up();
    let port = team.steer();
    (team, port)
}

#[test]
fn an_agent_whose_place_became_a_link_starts_when_a_person_trusts_that() {
    let stage = stage();
    let (place, notes) = (stage.path("user/.mine.json"), stage.path("user/.notes"));
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    let write = "echo x >>$HOME/.mine.json && echo done";
    assert_eq!(does(&stage, &mut port, write), "done\n");
    // It may replace what is its own, by a rename and by a link.
    assert_eq!(
        does(&stage, &mut port, "rm ~/.mine.json && ln -s ~/.notes ~/.mine.json && echo done"),
        "done\n"
    );
    assert!(does(&stage, &mut port, "cat ~/.mine.json").contains("denied"));
    // Its run, a reload, and its next start get no more.
    stage.file("shop/src/ui/inner.sh", "cat ~/.notes\n");
    let run = does(&stage, &mut port, "eisen-core run 'run sh src/ui/inner.sh'");
    assert!(run.contains("trust-place") && !run.contains("private"), "{run}");
    port.call("reload", &json!({})).unwrap();
    assert!(does(&stage, &mut port, "cat ~/.notes").contains("denied"));
    let (team, mut port) = again(&stage, team);
    let failed = port.expect(&json!({"type": "agent", "agent_id": "ui", "state": "error"}));
    let reason = failed["reason"].as_str().unwrap();
    let (place, notes) = (place.display(), notes.display());
    for part in [
        format!("`{place}` leads to `{notes}`"),
        format!("`{place}` is trusted"),
        format!("eisen-core team trust-place {place}"),
    ] {
        assert!(reason.contains(&part), "{reason}");
    }
    // Nobody is asked here, and an agent's word does not count.
    let refused = stage.run(&["team", "trust-place", "~/.mine.json"]);
    assert_eq!((refused.code, refused.stderr.contains("--yes")), (2, true), "{}", refused.stderr);
    let mut of_agent = stage.eisen_core(&["team", "trust-place", "~/.mine.json", "--yes"]);
    let refused = crate::harness::run(of_agent.env("EISEN_TOKEN", "x"));
    assert_eq!(refused.code, 2, "{}", refused.stderr);

    let trusted = stage.run(&["team", "trust-place", "~/.mine.json", "--yes"]);
    assert_eq!(trusted.code, 0, "{}", trusted.stderr);
    for part in [format!("{place}\n"), format!("trusted to lead to  {place}"), format!("{notes}\n")]
    {
        assert!(trusted.stdout.contains(&part), "{}", trusted.stdout);
    }
    port.call("reload", &json!({})).unwrap();
    port.call("start_agent", &json!({"agent_id": "ui"})).unwrap();
    port.expect(&json!({"type": "agent", "agent_id": "ui", "state": "ready"}));
    assert_eq!(does(&stage, &mut port, "cat ~/.notes"), "private\n");
    team.stop();
}

#[test]
fn a_link_that_was_there_at_first_is_a_place_as_any_other() {
    let stage = stage();
    stage.file("user/dotfiles/mine.json", "{}");
    fs::remove_file(stage.path("user/.mine.json")).unwrap();
    symlink("dotfiles/mine.json", stage.path("user/.mine.json")).unwrap();
    let mut team = stage.up();
    for _ in 0..2 {
        let mut port = team.steer_when_ready(&["ui"]);
        assert_eq!(does(&stage, &mut port, "echo x >>$HOME/.mine.json && echo done"), "done\n");
        assert!(does(&stage, &mut port, "cat ~/.notes").contains("denied"));
        (team, _) = again(&stage, team);
    }
    assert_eq!(stage.read("user/dotfiles/mine.json"), "{}x\nx\n");
}

#[test]
fn a_run_of_another_profile_gets_no_more_than_the_agent_that_starts_it() {
    let stage = stage();
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    let inner = "cat ~/.other/login; echo x >~/.other/new; echo key=$KEY\n";
    stage.file("shop/src/ui/inner.sh", inner);
    let said =
        does(&stage, &mut port, "eisen-core run --profile other 'run sh src/ui/inner.sh 2>&1'");
    let other = stage.path("user/.other").display().to_string();
    let without =
        format!("it goes without what the agent that starts it does not have: {other}, $KEY");
    assert!(said.contains(&without), "{said}");
    assert!(said.contains("denied") && !said.contains("secret"), "{said}");
    assert!(
        said.contains("key=\n") && !said.contains("key=s") && !stage.has("user/.other/new"),
        "{said}"
    );
    let cut = json!({"parent": "ui", "task": "x", "zone": ["src/ui/**"], "profile": "other"});
    let helper = port.call("start_helper", &cut).unwrap();
    assert_eq!(helper["without"], json!([other, "$KEY"]));
    // What names a variable of the team is a pattern as any other.
    let cut = json!({"parent": "ui", "task": "x", "zone": ["${HOME}/**"]});
    let refused = format!("{:?}", port.call("start_helper", &cut));
    assert!(!refused.contains(&stage.path("user").display().to_string()), "{refused}");
}
