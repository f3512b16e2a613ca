//! The end of a team, orderly or not: no process and no file is left.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::harness::{EISEN_CORE, Held, Port, Program, Stage, agent};

/// What makes an agent outlast every polite request.
const DEAF: &str = "{ ignore_eof = true }, { ignore_term = true }";

#[test]
fn an_interrupt_ends_a_team_in_order() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let stage = Stage::new();
        let held = Held::new(&stage);
        let agents = vec![
            agent("ui").behind(&held.by("ui")),
            agent("api").behind(&held.by("api")).with("depends_on = [\"ui\"]"),
        ];
        let team = stage.team("", agents);
        let mut port = team.steer_when_ready(&["ui", "api"]);
        held.is_by(&["ui", "api"]);
        let running = port.begin_waiting("ui");
        team.program.signal(signal);

        for agent in ["ui", "api"] {
            port.agent_is(agent, "stopped");
        }
        port.expect(&json!({"type": "turn", "agent_id": "ui", "stop_reason": "error"}));
        port.answer(running).unwrap_err();
        port.until_end();
        let ended = team.program.wait();
        assert_eq!(ended.code, 0, "{ended:?}");
        assert!(!ended.stderr.contains("ERROR"), "{ended:?}");
        assert!(!stage.run_path("shop").exists());
        held.end();
    }
}

#[test]
fn an_interrupt_as_soon_as_the_port_is_printed_leaves_nothing() {
    let stage = Stage::new();
    stage.configure("scratch = true", vec![agent("ui")]);
    let scratch = stage.path("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let mut up = stage.eisen_core(&["up", "-c", "eisen.toml"]);
    let program = Program::start(up.env("TMPDIR", &scratch));
    program.signal(Signal::SIGINT);
    let ended = program.wait();
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(!stage.run_path("shop").exists());
    assert_eq!(std::fs::read_dir(scratch).unwrap().count(), 0);
}

#[test]
fn what_happened_is_shown_a_line_an_event_and_plain_when_piped() {
    let stage = Stage::new();
    let team = stage.team("", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.prompt("ui", "read src/ui/app.ts");
    port.prompt("ui", "read src/api/cart.rs");
    let ended = team.stop();
    assert_eq!(ended.code, 0, "{ended:?}");
    for part in
        ["ui", "ready", "src/ui/app.ts", "denied b1", "src/api/cart.rs", "end_turn", "stopped"]
    {
        assert!(ended.stdout.contains(part), "{part} is not in {}", ended.stdout);
    }
    assert!(!ended.stdout.contains('\x1b'), "{}", ended.stdout);
}

#[test]
fn an_agent_that_ignores_its_end_is_killed_in_time() {
    let stage = Stage::new();
    let held = Held::new(&stage);
    let deaf = agent("deaf").start(DEAF).behind(&held.by("deaf"));
    let team = stage.team("stop_grace_s = 1", vec![deaf, agent("ui")]);
    let mut port = team.steer_when_ready(&["deaf", "ui"]);
    held.is_by(&["deaf"]);
    team.program.signal(Signal::SIGINT);
    port.agent_is("ui", "stopped");
    port.agent_is("deaf", "stopped");
    let ended = team.program.wait();
    assert_eq!(ended.code, 0, "{ended:?}");
    let named = ended.stderr.lines().any(|line| line.contains("deaf") && line.contains("killed"));
    assert!(named, "who was late is not named: {ended:?}");
    held.end();
}

/// With the whole grace this would take ten minutes.
#[test]
fn an_agent_that_is_known_not_to_end_with_its_input_is_not_waited_for() {
    let stage = Stage::new();
    stage.file("script.toml", "[agent]\nname = \"stays\"\n");
    let line = "\"$@\"; exec sleep 100000";
    stage.file(
        "eisen.toml",
        &format!(
            "[team]\nname = \"shop\"\nworkspace = \"shop\"\nlisten = \"127.0.0.1:0\"\nstop_grace_s = 600\n\
             [profiles.stays]\ncommand = [\"sh\", \"-c\", {line:?}, \"sh\", {EISEN_CORE:?}, \"scripted-agent\", {:?}]\n\
             ends_on_eof = false\n[[agents]]\nid = \"ui\"\nprofile = \"stays\"\n",
            stage.path("script.toml")
        ),
    );
    let team = stage.start(&["up", "-c", "eisen.toml"]);
    let mut port = team.connect();
    port.agent_is("ui", "ready");
    team.signal(Signal::SIGINT);
    let ended = team.wait();
    assert!(ended.code == 0 && !ended.stderr.contains("killed"), "{ended:?}");
}

#[test]
fn an_agent_that_ignores_a_request_to_stop_is_killed_in_time() {
    let stage = Stage::new();
    let held = Held::new(&stage);
    let deaf = agent("deaf").start(DEAF).behind(&held.by("deaf"));
    let team = stage.team("stop_grace_s = 1", vec![deaf]);
    let mut port = team.steer_when_ready(&["deaf"]);
    held.is_by(&["deaf"]);
    port.call("stop_agent", &json!({"agent_id": "deaf"})).unwrap();
    port.agent_is("deaf", "stopped");
    held.end();
}

#[test]
fn what_an_agent_left_behind_goes_with_it() {
    let stage = Stage::new();
    let held = Held::new(&stage);
    let keys = "[agents.restart]\npolicy = \"never\"";
    let team = stage.team("", vec![agent("ui").behind(&held.by("ui")).with(keys)]);
    let mut port = team.steer_when_ready(&["ui"]);
    held.is_by(&["ui"]);
    port.begin("ui", "die");
    port.agent_is("ui", "error");
    held.end();
}

#[test]
fn nothing_survives_a_supervisor_that_is_killed_while_agents_connect() {
    let stage = Stage::new();
    let held = Held::new(&stage);
    let mute = |id| agent(id).start("{ hang = true }").behind(&held.by(id));
    let team = stage.team("", vec![mute("one"), mute("two")]);
    held.is_by(&["one", "two"]);
    team.program.signal(Signal::SIGKILL);
    held.end();
}

#[test]
fn nothing_survives_a_supervisor_that_is_killed_during_a_turn() {
    let stage = Stage::new();
    let held = Held::new(&stage);
    let team = stage.team("", vec![agent("ui").behind(&held.by("ui"))]);
    let mut port = team.steer_when_ready(&["ui"]);
    port.begin("ui", &format!("run {} sleep 1000", held.by("terminal")));
    held.is_by(&["ui", "terminal"]);
    team.program.signal(Signal::SIGKILL);
    held.end();
    port.until_end();
    assert_eq!(team.program.wait().code, 128 + 9);
    // Its remaining files disturb no later run.
    assert!(stage.run_path("shop").exists());
    stage.team("", vec![agent("ui")]).steer_when_ready(&["ui"]);
}

#[test]
fn nothing_survives_a_supervisor_that_is_killed_while_it_stops() {
    let stage = Stage::new();
    let held = Held::new(&stage);
    let deaf = agent("deaf").start(DEAF);
    let team = stage.team("stop_grace_s = 60", vec![deaf.behind(&held.by("deaf")), agent("ui")]);
    let mut port = team.steer_when_ready(&["deaf", "ui"]);
    held.is_by(&["deaf"]);
    team.program.signal(Signal::SIGINT);
    port.agent_is("ui", "stopped");
    team.program.signal(Signal::SIGKILL);
    held.end();
}

#[test]
fn nothing_survives_a_supervisor_that_is_killed_while_an_agent_waits_to_start_again() {
    let stage = Stage::new();
    let held = Held::new(&stage);
    let keys = "[agents.restart]\nbackoff_ms = [600000, 600000]";
    let agents = vec![agent("ui").with(keys), agent("api").behind(&held.by("api"))];
    let team = stage.team("", agents);
    let mut port = team.steer_when_ready(&["ui", "api"]);
    held.is_by(&["api"]);
    port.begin("ui", "die");
    port.agent_is("ui", "restarting");
    team.program.signal(Signal::SIGKILL);
    held.end();
}

#[test]
fn nothing_survives_an_observer_that_is_killed() {
    let stage = Stage::new();
    let held = Held::new(&stage);
    let agent = format!("{} exec cat", held.by("agent"));
    let program = stage.start(&["observe", "--port", "0", "--", "sh", "-c", &agent]);
    held.is_by(&["agent"]);
    program.signal(Signal::SIGKILL);
    held.end();
}

#[test]
fn who_interrupts_twice_does_not_wait() {
    let stage = Stage::new();
    let held = Held::new(&stage);
    let deaf = agent("deaf").start(DEAF);
    let team = stage.team("stop_grace_s = 600", vec![deaf.behind(&held.by("deaf")), agent("ui")]);
    let mut port = team.steer_when_ready(&["deaf", "ui"]);
    held.is_by(&["deaf"]);
    team.program.signal(Signal::SIGINT);
    port.agent_is("ui", "stopped");
    team.program.signal(Signal::SIGINT);
    assert_eq!(team.program.wait().code, 0);
    held.end();
}

/// The log goes to a full pipe without a reader.
#[test]
fn a_team_whose_stderr_nobody_reads_goes_on_and_ends() {
    let stage = Stage::new();
    let names = ["a", "b", "c", "d"];
    // More than any pipe takes.
    let noise = format!("yes {} | head -c 3000000 >&2;", "x".repeat(100));
    stage.configure("", names.map(|name| agent(name).behind(&noise)).into());
    let mut up = stage.eisen_core(&["up", "-c", "eisen.toml"]);
    up.env("EISEN_LOG", "debug").stdin(Stdio::null());
    let mut child = up.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("eisen-core tcp port: ") {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0);
    }
    let mut port = Port::connect(line.trim_end().rsplit(' ').next().unwrap().parse().unwrap());
    for name in names {
        port.agent_is(name, "ready");
    }
    port.auth(stage.run_file("shop").unwrap()["token"].as_str().unwrap());
    assert_eq!(port.prompt("a", "hello"), "hello");
    assert_eq!(stage.run(&["ps"]).code, 0);
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    port.until_end();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(stderr);
}
