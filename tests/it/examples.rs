//! The programs in `examples/` do what they say.

use std::process::{Command, Stdio};

use crate::harness::{Stage, agent};

#[test]
fn the_subscriber_allows_what_it_was_told_to() {
    if Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: there is no python3");
        return;
    }
    let stage = Stage::new();
    let team =
        stage.team("[orchestrator]\non_block = \"hold\"", vec![agent("ui").zone("src/ui/**")]);
    let mut port = team.steer_when_ready(&["ui"]);
    let mut subscriber = Command::new("python3")
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
