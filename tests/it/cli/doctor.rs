//! `doctor`: what it finds with a PATH of scripts, and what it mends.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::harness::{Ended, Stage, agent, run};

/// A machine whose PATH has only these programs, with a home of its own.
struct Machine {
    stage: Stage,
}

impl Machine {
    fn with(programs: &[(&str, &str)]) -> Self {
        let stage = Stage::new();
        fs::create_dir_all(stage.path("user")).unwrap();
        fs::create_dir_all(stage.path("bin")).unwrap();
        for (name, script) in programs {
            stage.file(&format!("bin/{name}"), &format!("#!/bin/sh\n{script}\n"));
            let file = stage.path(&format!("bin/{name}"));
            fs::set_permissions(file, Permissions::from_mode(0o755)).unwrap();
        }
        Self { stage }
    }

    fn doctor(&self, args: &[&str], env: &[(&str, &str)]) -> Ended {
        let mut command = self.stage.eisen_core(&[&["doctor"][..], args].concat());
        command.env("PATH", self.stage.path("bin")).env("HOME", self.stage.path("user"));
        command.envs(env.iter().copied());
        run(&mut command)
    }

    fn found(&self, args: &[&str], env: &[(&str, &str)]) -> Vec<Value> {
        let ended = self.doctor(&[&["--json"][..], args].concat(), env);
        let found: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
        let has_errors = found.iter().any(|finding| finding["state"] == "error");
        assert_eq!(ended.code, i32::from(has_errors), "{}{}", ended.stdout, ended.stderr);
        found
    }
}

#[track_caller]
fn finding<'a>(found: &'a [Value], check: &str) -> (&'a str, &'a str) {
    let finding = found.iter().find(|finding| finding["check"] == check);
    let finding = finding.unwrap_or_else(|| panic!("no {check} in {found:#?}"));
    (finding["state"].as_str().unwrap(), finding["message"].as_str().unwrap())
}

#[test]
fn agents_are_started_as_far_as_initialize_if_that_is_asked_for() {
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"agentInfo":{"version":"7.8"}}}"#;
    let machine = Machine::with(&[
        ("opencode", &format!("[ \"$1\" = acp ] && read line && echo '{answer}' && read more")),
        ("kimi", "echo 'kimi is no longer maintained: install kimi2'"),
        ("goose", "echo starting; echo 'no node found' >&2; exit 1"),
        ("git", "echo git version 2.47.3"),
    ]);
    let found = machine.found(&["--deep"], &[]);
    let (state, message) = finding(&found, "start/opencode");
    assert!(state == "ok" && message.ends_with(", as version 7.8"), "{message}");
    for (check, part) in [
        ("start/kimi", "its last line: kimi is no longer maintained: install kimi2"),
        ("start/goose", "its last line: no node found"),
    ] {
        let (state, message) = finding(&found, check);
        assert!(state == "warning" && message.ends_with(part), "{check}: {message}");
    }
    let found = machine.found(&[], &[]);
    assert!(found.iter().all(|finding| !finding["check"].as_str().unwrap().starts_with("start/")));
}

#[test]
fn programs_that_misbehave_are_named_and_ended() {
    let machine = Machine::with(&[
        ("opencode", "echo 1.2.3"),
        ("gemini", "echo $$ > \"$HOME/pid\"; while :; do sleep 1000; done"),
        ("codex-acp", "while :; do echo 123456789012345678901234567890; done"),
        ("goose", "echo 'no node found' >&2; exit 1"),
        ("kimi", r"printf '\033]0;title\007\033[2Jkimi 9.9.9\n'"),
        ("git", "(sleep 1000) & echo git version 2.47.3"),
        ("sleep", "exec /bin/sleep \"$@\""),
    ]);
    let found = machine.found(&[], &[("CODEX_API_KEY", "hidden-key")]);
    let (state, message) = finding(&found, "agent/opencode");
    assert!(state == "ok" && message.starts_with("OpenCode 1.2.3, /"), "{message}");
    for (check, part) in [
        ("agent/gemini", "no answer to `--version` in 2 s"),
        ("agent/codex", "answered `--version` with 65536 bytes"),
        ("agent/goose", "exited with status 1: no node found"),
    ] {
        let (state, message) = finding(&found, check);
        assert!(state == "warning" && message.contains(part), "{check}: {message}");
    }
    let (state, message) = finding(&found, "agent/kimi");
    assert!(state == "ok" && message.starts_with("Kimi Code 9.9.9, /"), "{message:?}");
    let (state, message) = finding(&found, "git");
    assert!(state == "ok" && message.starts_with("git 2.47.3, /"), "{message}");
    // What hung is gone.
    let pid = machine.stage.read("user/pid");
    assert!(!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists());

    let (state, message) = finding(&found, "login/codex");
    assert!(state == "ok" && message.contains("$CODEX_API_KEY is set"), "{message}");
    let (state, message) = finding(&found, "login/gemini");
    assert!(state == "warning" && message.contains("/user/.gemini/oauth_creds.json"), "{message}");
    assert_eq!(finding(&found, "login/goose").0, "ok");
    assert!(!serde_json::to_string(&found).unwrap().contains("hidden-key"));
}

#[test]
fn a_login_is_seen_by_its_file_and_never_printed() {
    let machine = Machine::with(&[("claude-agent-acp", "echo 0.16.2"), ("codex", "echo 0.46.0")]);
    let found = machine.found(&[], &[]);
    assert_eq!(finding(&found, "login/claude-code").0, "warning");
    let (state, message) = finding(&found, "agent/codex");
    assert!(state == "warning" && message.contains("not its ACP adapter"), "{message}");
    // A logout leaves an empty table.
    for (content, state) in [("{}", "warning"), (r#"{"token":"hidden-key"}"#, "ok")] {
        machine.stage.file("user/.claude/.credentials.json", content);
        let ended = machine.doctor(&["--json"], &[]);
        let found: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(finding(&found, "login/claude-code").0, state);
        assert!(!ended.stdout.contains("hidden-key") && !ended.stderr.contains("hidden-key"));
    }
}

#[test]
fn what_is_wrong_is_an_error_until_it_is_mended() {
    let machine = Machine::with(&[("git", "echo git version 2.47.3")]);
    let home = machine.stage.path("home");
    fs::create_dir_all(home.join("run")).unwrap();
    fs::set_permissions(&home, Permissions::from_mode(0o777)).unwrap();
    let run = serde_json::json!({
        "team": "gone", "pid": 1_999_999_999, "port": 4711, "address": "127.0.0.1:4711", "token": "t",
    });
    machine.stage.file("home/run/gone.json", &run.to_string());

    let found = machine.found(&[], &[]);
    assert_eq!(finding(&found, "eisen-dir").0, "error");
    assert_eq!(finding(&found, "stale-runs/gone").0, "warning");
    assert_eq!(finding(&found, "agents").0, "warning");
    assert_eq!(finding(&found, "teams"), ("ok", "no team runs"));
    assert!(machine.stage.has("home/run/gone.json"));

    let shown = machine.doctor(&[], &[]);
    assert_eq!(shown.code, 1, "{}", shown.stdout);
    assert!(shown.stdout.contains("fix: chmod 700 /"), "{}", shown.stdout);
    assert!(shown.stderr.contains("1 error, "), "{}", shown.stderr);

    let found = machine.found(&["--fix"], &[]);
    for check in ["eisen-dir", "stale-runs/gone"] {
        let mended = found.iter().find(|finding| finding["check"] == check).unwrap();
        assert_eq!(mended["state"], "ok");
        assert!(mended["fixed"].is_string() && mended.get("fix").is_none(), "{mended}");
    }
    assert_eq!(fs::metadata(&home).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(!machine.stage.has("home/run/gone.json"));
    assert_eq!(finding(&machine.found(&[], &[]), "eisen-dir").0, "ok");
    assert_eq!(machine.doctor(&["--fxi"], &[]).code, 2);
}

#[test]
fn a_configuration_with_errors_is_pointed_out() {
    let machine = Machine::with(&[]);
    machine.stage.file("eisen.toml", "[team]\nnmae = \"shop\"\n");
    let found = machine.found(&["-c", "eisen.toml"], &[]);
    let (state, message) = finding(&found, "configuration");
    assert!(state == "error" && message.ends_with("has an error"), "{message}");
    let fix = found.iter().find(|it| it["check"] == "configuration").unwrap()["fix"].clone();
    assert!(fix.as_str().unwrap().contains(" check -c "), "{fix}");
}

#[test]
fn a_team_that_runs_is_named_with_its_port() {
    let machine = Machine::with(&[]);
    let team = machine.stage.team("", vec![agent("ui")]);
    let _port = team.steer_when_ready(&["ui"]);
    let found = machine.found(&["-c", "eisen.toml"], &[]);
    let (state, message) = finding(&found, "team/shop");
    assert!(state == "ok" && message.contains("(pid "), "{message}");
    assert_eq!(finding(&found, "stale-runs").0, "ok");
}
