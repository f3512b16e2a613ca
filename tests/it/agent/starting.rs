//! When a team comes up, and when it must not.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::harness::{Program, Stage, agent};

/// A team whose agent leaves a file when it is started.
fn marked(stage: &Stage) {
    let mark = format!("touch {}; ", stage.path("started").display());
    stage.configure("", vec![agent("ui").behind(&mark)]);
}

#[test]
fn the_run_file_has_the_address_and_only_its_owner_reads_it() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    assert_eq!(team.run_file["pid"], json!(team.program.id()));
    assert_eq!(team.run_file["port"], json!(team.program.port));
    let mode = stage.run_path("shop").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let resolve = stage.run(&["resolve", "b1", "allow"]);
    assert_eq!((resolve.code, resolve.stderr.contains("b1")), (1, true), "{resolve:?}");
    assert_eq!(team.stop().code, 0);
    assert!(!stage.run_path("shop").exists());
    let resolve = stage.run(&["resolve", "b1", "allow"]);
    assert!(resolve.code == 1 && resolve.stderr.contains("does not run"), "{resolve:?}");
}

#[test]
fn a_team_of_the_same_name_is_refused_while_it_runs() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui")]);
    let second = stage.run(&["up", "-c", "eisen.toml"]);
    assert_eq!(second.code, 1, "{second:?}");
    assert!(second.stderr.contains("`shop` runs already"), "{second:?}");
    // The first does not care, and its run file is its own.
    // (What it would leave behind is noted there as it comes.)
    let mut run_file = stage.run_file("shop").unwrap();
    run_file["remains"] = team.run_file["remains"].clone();
    assert_eq!(run_file, team.run_file);
    assert_eq!(team.steer_when_ready(&["ui"]).prompt("ui", "hello"), "hello");
    team.program.signal(Signal::SIGKILL);
    team.program.wait();
    stage.up().steer_when_ready(&["ui"]);
}

#[test]
fn a_busy_port_is_an_error_that_names_the_team_that_has_it() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("other")]);
    let port = team.program.port.to_string();
    marked(&stage);
    stage.file(
        "second.toml",
        &stage.read("eisen.toml").replace("\"shop\"\nworkspace", "\"second\"\nworkspace"),
    );
    let second = stage.run(&["up", "-c", "second.toml", "--port", &port]);
    assert_eq!(second.code, 1, "{second:?}");
    assert!(second.stderr.contains(&port) && second.stderr.contains("shop"), "{second:?}");
    assert!(!second.stderr.contains("tcp port:"), "{second:?}");
    assert!(!stage.has("started"));

    let foreign = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = foreign.local_addr().unwrap().port().to_string();
    let second = stage.run(&["up", "-c", "second.toml", "--port", &port]);
    assert!(second.code == 1 && second.stderr.contains(&port), "{second:?}");
    assert!(!stage.has("started") && stage.run_file("second").is_none());
}

#[test]
fn the_port_can_be_said_before_and_behind_the_command() {
    let stage = Stage::new();
    marked(&stage);
    for args in
        [["--port", "0", "up", "-c", "eisen.toml"], ["up", "-c", "eisen.toml", "--port", "0"]]
    {
        let program: Program = stage.start(&args);
        program.connect().agent_is("ui", "ready");
        program.signal(Signal::SIGINT);
        assert_eq!(program.wait().code, 0);
    }
    // The folder to work in is where the configuration is looked for.
    let cwd = stage.path("").display().to_string();
    let program = crate::harness::Program::start(
        stage.eisen_core(&["--cwd", &cwd, "up", "--port", "0"]).current_dir("/"),
    );
    program.connect().agent_is("ui", "ready");
}

#[test]
fn a_mistake_in_the_configuration_starts_nothing() {
    let stage = Stage::new();
    marked(&stage);
    stage.file(
        "eisen.toml",
        &stage.read("eisen.toml").replace("[[agents]]", "[[agents]]\ncolour = 1"),
    );
    let up = stage.run(&["up", "-c", "eisen.toml"]);
    assert_eq!(up.code, 2, "{up:?}");
    assert!(up.stderr.contains("colour") && !up.stderr.contains("tcp port:"), "{up:?}");
    assert!(!stage.has("started"));
    let missing = stage.run(&["up", "-c", "no-such.toml"]);
    assert!(missing.code == 2 && missing.stderr.contains("no-such.toml"), "{missing:?}");
    assert_eq!(stage.run(&["up", "--colour"]).code, 2);
}

#[test]
fn a_team_inside_a_team_inside_a_team_ends_somewhere() {
    let stage = Stage::new();
    marked(&stage);
    for args in
        [&["up", "-c", "eisen.toml"][..], &["observe", "--port", "0", "--", "touch", "started"]]
    {
        for (depth, code) in [("5", 2), ("6", 2)] {
            let ended = crate::harness::run(stage.eisen_core(args).env("EISEN_DEPTH", depth));
            assert_eq!(ended.code, code, "{depth}: {ended:?}");
            assert!(ended.stderr.contains("EISEN_DEPTH"), "{ended:?}");
            assert!(!stage.has("started"));
        }
    }
    let fourth =
        Program::start(stage.eisen_core(&["up", "-c", "eisen.toml"]).env("EISEN_DEPTH", "4"));
    let mut port = fourth.connect();
    port.auth(stage.run_file("shop").unwrap()["token"].as_str().unwrap());
    port.agent_is("ui", "ready");
    assert_eq!(port.prompt("ui", "run echo $EISEN_DEPTH"), "5\n");
}

#[test]
fn a_scratch_team_leaves_the_workspace_as_it_was() {
    let stage = Stage::new();
    let team = stage.team("scratch = true", vec![agent("ui")]);
    let mut port = team.steer_when_ready(&["ui"]);
    assert_eq!(port.prompt("ui", "write src/ui/app.ts changed"), "written");
    assert_eq!(port.prompt("ui", "read src/ui/app.ts"), "got changed");
    let copy = port.prompt("ui", "run pwd");
    assert!(std::path::Path::new(copy.trim()).exists());
    assert_eq!(team.stop().code, 0);
    assert!(!std::path::Path::new(copy.trim()).exists());
    assert_eq!(stage.read("shop/src/ui/app.ts"), "ui\n");
}

/// Answers with an unknown protocol version, and ends late.
const OF_ANOTHER_VERSION: &str = r#"
trap '' TERM
read -r line
id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":9}}\n' "$id"
sleep 1000
"#;

#[test]
fn what_is_no_agent_of_this_protocol_is_reported_before_it_is_stopped() {
    for (script, why) in [
        (OF_ANOTHER_VERSION, "speaks protocol version 9"),
        ("trap '' TERM; cat; sleep 1000", "sends back what it is sent"),
    ] {
        let stage = Stage::new();
        stage.file("agent.sh", script);
        let agent = stage.path("agent.sh").display().to_string();
        stage.file(
            "eisen.toml",
            &format!(
                "[team]\nname = \"shop\"\nworkspace = \"shop\"\nlisten = \"127.0.0.1:0\"\n\
                 stop_grace_s = 1\n[[agents]]\nid = \"ui\"\ncommand = [\"sh\", {agent:?}]\n\
                 autostart = false\n"
            ),
        );
        let team = stage.up();
        let mut port = team.steer();
        port.ask("start_agent", &json!({"agent_id": "ui"}));
        for state in ["connecting", "error"] {
            port.expect_that(why, |line| {
                line["type"] == "agent"
                    && line["state"] == state
                    && line["reason"].as_str().is_some_and(|reason| reason.contains(why))
            });
        }
    }
}

#[test]
fn an_agent_that_asks_for_a_login_is_heard_at_once() {
    let stage = Stage::new();
    stage.file("agent.sh", "echo 'Please log in with `agent login`' >&2\ncat >/dev/null\n");
    let agent = stage.path("agent.sh").display().to_string();
    stage.file(
        "eisen.toml",
        &format!(
            "[team]\nname = \"shop\"\nworkspace = \"shop\"\nlisten = \"127.0.0.1:0\"\n\
             [[agents]]\nid = \"ui\"\ncommand = [\"sh\", {agent:?}]\n"
        ),
    );
    let team = stage.up();
    loop {
        let line = team.program.stderr.next().expect("the log ended");
        if line.contains("Please log in with") {
            assert!(line.contains("ui"), "{line}");
            break;
        }
    }
}
