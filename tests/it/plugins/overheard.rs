//! `observe --plugin`: agents with a client of their own, and a plugin that reads their lines.

use std::io::{Read, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::scene::{AGENT, PLAIN, chmod, compile, failed_in, hostile};
use crate::harness::{Peer, Port, Program, Stage};

/// An agent that does what its client sends, and that client.
struct Scene {
    client: Peer,
    program: Program,
    port: Port,
}

fn scene(stage: &Stage, library: &Path, flags: &[&str]) -> Scene {
    stage.file("agent.sh", AGENT);
    let (agent, shop) = (stage.in_shop("../agent.sh"), stage.in_shop(""));
    let plugin = ["--plugin", library.to_str().unwrap()];
    let command = ["observe", "--port", "0", "--agent-id", "odd", "--cwd", &shop];
    let args = [&command[..], &plugin, flags, &["--", "sh", &agent]].concat();
    let mut program = stage.start(&args);
    let client = Peer::of(program.stdin.take().unwrap(), program.stdout.take().unwrap());
    let mut port = program.connect();
    port.expect(&json!({"type": "snapshot"}));
    Scene { client, program, port }
}

impl Scene {
    fn prompt(&mut self, lines: &str) {
        self.client.send_raw(format!("do {lines}\n").as_bytes());
    }

    /// All lines of the agent come as they are, and no other.
    fn hears(&mut self, lines: &[&str]) {
        for line in lines {
            assert_eq!(self.client.expect_raw(|_| true), *line);
        }
    }

    fn touched(&mut self, path: &str, action: &str) {
        self.port.expect_that("the file on the map", |line| {
            let updates = line["updates"].as_array().into_iter().flatten();
            let is_it = |node: &Value| node["path"] == path && node["last_action"] == action;
            line["type"] == "delta" && { updates }.any(is_it)
        });
    }
}

#[test]
fn what_both_say_passes_as_it_is() {
    let odd =
        b"{\"a\" : 1.50,\r\n\n\r\r\nsay a\n\xff\xfe\x80\n\0\nread x\nmay 1 read src/ui\nno end";
    let stage = Stage::new();
    let library = compile(&stage, PLAIN, "libplain.so", &[]);
    for zone in [&[][..], &["--zone", "**"]] {
        let plugin = ["observe", "--port", "0", "--plugin", library.to_str().unwrap()];
        let args = [&plugin, zone, &["--", "cat"]].concat();
        let mut program = Program::start(&mut stage.eisen_core(&args));
        program.stdin.take().unwrap().write_all(odd).unwrap();
        let mut back = Vec::new();
        program.stdout.take().unwrap().read_to_end(&mut back).unwrap();
        assert_eq!(String::from_utf8_lossy(&back), String::from_utf8_lossy(odd), "{zone:?}");
        assert_eq!(program.wait().code, 0);
    }
}

#[test]
fn it_is_followed_on_the_port() {
    let stage = Stage::new();
    let library = compile(&stage, PLAIN, "libplain.so", &[]);
    let mut scene = scene(&stage, &library, &["--session-id", "mine"]);
    scene.prompt("read src/ui/app.ts");
    scene.hears(&["read src/ui/app.ts"]);
    scene.touched("src/ui/app.ts", "read");
    scene.prompt("wrote src/api/cart.rs;may 1 write .env;done");
    scene.hears(&["wrote src/api/cart.rs", "may 1 write .env", "done"]);
    scene.touched("src/api/cart.rs", "write");
    let turn = json!({"type": "turn", "agent_id": "odd", "session_id": "mine"});
    assert_eq!(scene.port.expect(&turn)["stop_reason"], "end_turn");
    assert_eq!(scene.port.count(&json!({"type": "blocked"})), 0);
}

#[test]
fn what_it_said_last_is_reported() {
    let stage = Stage::new();
    let library = compile(&stage, PLAIN, "libplain.so", &[]);
    let mut scene = scene(&stage, &library, &[]);
    scene.prompt("wrote src/ui/app.ts;done");
    scene.client.close();
    scene.touched("src/ui/app.ts", "write");
    scene.port.expect(&json!({"type": "turn", "stop_reason": "end_turn"}));
    assert_eq!(scene.program.wait().code, 0);
}

#[test]
fn a_zone_is_held_by_what_it_asks_for() {
    let stage = Stage::new();
    let library = compile(&stage, PLAIN, "libplain.so", &[]);
    let mut scene = scene(&stage, &library, &["--zone", "src/ui/**"]);
    for _ in 0..2 {
        scene.prompt("say a;may 1 write src/ui/app.ts;may 1 write src/api/cart.rs;say b");
        // What is refused does not come; how the agent took that does.
        scene.hears(&["say a", "may 1 write src/ui/app.ts", "say b", "say no 1", "done"]);
        let blocked = scene.port.blocked("denied");
        let seen = (&blocked["path"], &blocked["via"], &blocked["action"]);
        assert_eq!(seen, (&json!("src/api/cart.rs"), &json!("permission"), &json!("write")));
        scene.client.send_raw(b"yes 1\n");
        scene.hears(&["say yes 1", "done"]);
    }
    // What it did without asking is reported.
    scene.prompt("wrote src/api/cart.rs;done");
    assert_eq!(scene.port.blocked("observed")["path"], "src/api/cart.rs");
}

#[test]
fn without_a_zone_lines_pass_while_the_plugin_hangs() {
    let stage = Stage::new();
    let marker = stage.path("marker");
    let flag = format!("-DMARKER=\"{}\"", marker.display());
    let mut scene = scene(&stage, &hostile(&stage, &[&flag]), &[]);
    stage.file("marker", "");
    scene.prompt("say before;loop;wrote src/ui/app.ts");
    scene.hears(&["say before", "loop", "wrote src/ui/app.ts"]);
    std::fs::remove_file(&marker).unwrap();
    scene.touched("src/ui/app.ts", "write");
}

#[test]
fn without_a_zone_lines_pass_while_the_plugin_is_replaced() {
    let stage = Stage::new();
    let marker = stage.path("marker");
    let flag = format!("-DMARKER=\"{}\"", marker.display());
    let mut scene = scene(&stage, &hostile(&stage, &[&flag]), &[]);
    stage.file("marker", "");
    scene.prompt("say before;segfault;wrote src/ui/app.ts");
    scene.hears(&["say before", "segfault", "wrote src/ui/app.ts"]);
    failed_in(&scene.program, "SIGSEGV");
    std::fs::remove_file(&marker).unwrap();
    scene.touched("src/ui/app.ts", "write");
}

#[test]
fn without_a_zone_lines_pass_once_the_plugin_is_given_up() {
    let stage = Stage::new();
    let mut scene = scene(&stage, &hostile(&stage, &[]), &[]);
    scene.prompt(&format!("say before{};say after", ";fail".repeat(10)));
    scene.client.expect_raw(|line| line == "say after");
    let shown = scene.port.expect_that("its concern", |line| {
        line["type"] == "agent"
            && line["reason"]
                .as_str()
                .is_some_and(|why| why.starts_with("its activity is no longer observed"))
    });
    assert_eq!(shown["state"], "ready");
    let why = "its plugin hostile failed 10 times in a row: it does not like that";
    assert!(shown["reason"].as_str().unwrap().ends_with(why), "{shown}");
    scene.prompt("say still here");
    scene.client.expect_raw(|line| line == "say still here");
}

#[test]
fn with_a_zone_what_killed_the_plugin_is_read_by_the_next() {
    let stage = Stage::new();
    let marker = stage.path("marker");
    let flag = format!("-DMARKER=\"{}\"", marker.display());
    let mut scene = scene(&stage, &hostile(&stage, &[&flag]), &["--zone", "src/ui/**"]);
    stage.file("marker", "");
    scene.prompt("say before;may 1 write src/api/cart.rs;say after");
    failed_in(&scene.program, "SIGSEGV");
    assert_eq!(scene.port.count(&json!({"type": "blocked"})), 0);
    std::fs::remove_file(&marker).unwrap();
    scene.hears(&["say before", "say after", "say no 1", "done"]);
    scene.port.blocked("denied");
}

#[test]
fn with_a_zone_nothing_passes_once_the_plugin_is_given_up() {
    let stage = Stage::new();
    let mut scene = scene(&stage, &hostile(&stage, &[]), &["--zone", "src/ui/**"]);
    scene.prompt(&format!("say before{};say after", ";may not".repeat(10)));
    scene.hears(&["say before"]);
    assert_eq!(scene.client.rest_raw(), Vec::<String>::new());
    let shown = scene.port.agent_is("odd", "error");
    let why = "its plugin hostile failed 10 times in a row: it does not like that";
    assert_eq!(shown["reason"], why);
    assert_eq!(scene.program.wait().code, 1);
}

/// It can't ask: what it does is seen, and nothing waits for that.
#[test]
fn with_a_zone_that_the_plugin_can_not_hold_it_is_stopped_for_what_it_did() {
    let stage = Stage::new();
    let library = hostile(&stage, &["-DNO_GATE"]);
    let flags = ["--zone", "src/ui/**", "--on-violation", "stop"];
    let mut scene = scene(&stage, &library, &flags);
    scene.prompt("may 1 write .env;wrote src/api/cart.rs");
    scene.hears(&["may 1 write .env", "wrote src/api/cart.rs"]);
    assert_eq!(scene.port.blocked("observed")["path"], "src/api/cart.rs");
    scene.port.agent_is("odd", "stopped");
}

#[test]
fn with_a_zone_that_the_plugin_can_not_hold_it_is_stopped_with_the_plugin() {
    let stage = Stage::new();
    let library = hostile(&stage, &["-DNO_GATE"]);
    let mut scene = scene(&stage, &library, &["--zone", "src/ui/**"]);
    scene.prompt(&"fail;".repeat(10));
    scene.port.agent_is("odd", "error");
}

/// Takes as long as the deadline.
#[test]
fn an_agent_that_ends_is_not_waited_for_longer_than_its_plugin_may_take() {
    let stage = Stage::new();
    let marker = stage.path("marker");
    let flag = format!("-DMARKER=\"{}\"", marker.display());
    let mut scene = scene(&stage, &hostile(&stage, &[&flag]), &["--session-id", "mine"]);
    stage.file("marker", "");
    scene.prompt("say before;loop");
    scene.hears(&["say before", "loop"]);
    scene.client.close();
    scene.port.expect(&json!({"type": "turn", "session_id": "mine", "stop_reason": "error"}));
    assert_eq!(scene.program.wait().code, 0);
}

#[test]
fn what_can_not_be_gated_does_not_pass_a_zone() {
    let stage = Stage::new();
    let mut scene = scene(&stage, &hostile(&stage, &[]), &["--zone", "src/ui/**"]);
    scene.prompt("say before;may not;fail;say after");
    // What it could not observe asks for nothing.
    scene.hears(&["say before", "fail", "say after"]);
}

#[test]
fn a_plugin_that_can_not_be_used_starts_no_agent() {
    let stage = Stage::new();
    let library = compile(&stage, PLAIN, "libplain.so", &[]);
    let library = library.to_str().unwrap();
    let refused = |flags: &[&str], why: &str| {
        let args = [&["observe", "--port", "0"], flags, &["--", "touch", "started"]].concat();
        let ended = stage.run(&args);
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
        assert!(!stage.has("started"));
    };
    refused(&["--plugin", "nosuch"], "nor a plugin of that name in");
    refused(&["--plugin", "./nosuch.so"], "nosuch.so");
    refused(&["--plugin", library, "--plugin-config", "[]"], "takes a JSON object");
    refused(&["--plugin-config", "{}"], "--plugin");
    chmod(Path::new(library), 0o666);
    refused(&["--plugin", library], "other users can write to it");
}
