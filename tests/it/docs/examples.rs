//! The programs in `examples/` do what they say.

use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::harness::{Program, Stage, agent, program, run};

#[test]
fn the_subscriber_allows_by_its_rules() {
    if program("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let stage = Stage::new();
    let team =
        stage.team("[orchestrator]\non_block = \"hold\"", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let mut subscriber = program("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/subscriber.py"))
        .args(["--port", &team.program.port.to_string()])
        .args(["--resolve", "--allow", "src/{api,db}/**"])
        .env("EISEN_TOKEN", team.token())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();

    let prompt = port.begin("ui", "read src/api/cart.rs");
    let pending = port.blocked("pending");
    assert_eq!(port.blocked("allowed")["id"], pending["id"]);
    assert_eq!(port.said(prompt), "got api\n");

    team.stop();
    assert!(subscriber.wait().unwrap().success());
}

/// The concepts show what it did; what only depends on the run is left out of the comparison.
#[test]
#[cfg(target_os = "linux")]
fn an_agent_that_is_a_shell_is_stopped_as_the_concepts_have_it() {
    let concepts = include_str!("../../../docs/concepts.md");
    let (_, section) = concepts.split_once("## An example").unwrap();
    let (section, _) = section.split_once("## Hold and grant").unwrap();
    let blocks: Vec<&str> = section.split("```text\n").skip(1).collect();
    let [decisions, console, log] = blocks[..] else { panic!("{} blocks", blocks.len()) };
    let lines = |block: &str| -> Vec<String> {
        block.lines().take_while(|line| *line != "```").map(str::to_owned).collect()
    };

    let stage = Stage::new();
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/config/shell.toml");
    let team = Program::start(&mut stage.eisen_core(&["up", "--port", "0", "-c", config]));
    let mut port = team.connect();
    for (id, said) in ["b1", "b2"].iter().zip(lines(decisions).chunks(2)) {
        port.expect(&json!({"type": "blocked", "id": id, "status": "pending"}));
        let words: Vec<&str> = said[0].strip_prefix("$ eisen-core ").unwrap().split(' ').collect();
        assert_eq!(run(&mut stage.eisen_core(&words)).stdout.trim_end(), said[1]);
    }
    port.expect(&json!({"type": "blocked", "path": "src/api", "sweep": 3}));
    let mut logged: Vec<String> = run(&mut stage.eisen_core(&["logs", "--raw", "ui"]))
        .stdout
        .lines()
        .map(str::to_owned)
        .collect();
    team.signal(Signal::SIGINT);
    let ended = team.wait();

    let event = |line: &String| line.split_once("s  ").map(|(_, event)| event.to_owned());
    // Where PATH does not lead to the program, it is called by its path.
    let stdout = ended.stdout.replace(crate::harness::EISEN_CORE, "eisen-core");
    let mut shown: Vec<_> = stdout.lines().map(str::to_owned).collect();
    shown.retain(|line| lines(console).iter().any(|reported| event(reported) == event(line)));
    let events = |lines: &[String]| lines.iter().map(event).collect::<Vec<_>>();
    assert_eq!(events(&shown), events(&lines(console)), "{}", ended.stdout);
    // Folders have their entries in any order.
    let mut reported = lines(log);
    logged.sort();
    reported.sort();
    assert_eq!(logged, reported);
}
