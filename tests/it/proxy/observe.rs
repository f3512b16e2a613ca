//! `observe`: editor and agent notice nothing, and the port shows what the agent does.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::harness::{Peer, Program, Puppet, Stage, run};

/// Passes bytes through `observe -- cat`, and returns what came back.
fn through_cat(stage: &Stage, flags: &[&str], sent: Vec<u8>) -> Vec<u8> {
    let args = [&["observe", "--port", "0"], flags, &["--", "cat"]].concat();
    let mut program = Program::start(stage.eisen_core(&args).env("EISEN_LOG", "trace"));
    let mut stdin = program.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&sent).unwrap());
    let mut back = Vec::new();
    program.stdout.take().unwrap().read_to_end(&mut back).unwrap();
    writer.join().unwrap();
    assert_eq!(program.wait().code, 0);
    back
}

fn assert_same(sent: &[u8], back: &[u8]) {
    let first = sent.iter().zip(back).position(|(a, b)| a != b);
    let around = |bytes: &[u8], at: usize| {
        String::from_utf8_lossy(&bytes[at.saturating_sub(20)..bytes.len().min(at + 20)])
            .into_owned()
    };
    if let Some(at) = first {
        panic!("differs at {at}: {:?} came as {:?}", around(sent, at), around(back, at));
    }
    assert_eq!(sent.len(), back.len());
}

/// Bytes that a round trip through a JSON parser or a decoder would change.
const ODD: &[u8] = b"{\"a\" : 1.50,\r\n\"b\":\"\\u0061\"}\r\n\n\r\r\n{\"a\":1,\"a\":2}\n\xff\xfe\x80\n\0\n[1,2]\n\xef\xbb\xbf{}\n  {\"jsonrpc\":\"2.0\",\"id\":1e2,\"method\":\"x\"}  \nno end";

#[test]
fn bytes_pass_as_they_are_both_ways() {
    let stage = Stage::new();
    assert_same(ODD, &through_cat(&stage, &[], ODD.to_vec()));
    assert_same(b"", &through_cat(&stage, &[], Vec::new()));
    let many: Vec<u8> = (0..20_000).flat_map(|n| format!("{{\"n\":{n}}}\n").into_bytes()).collect();
    assert_same(&many, &through_cat(&stage, &[], many.clone()));
}

#[test]
fn a_line_of_64_mib_passes() {
    let stage = Stage::new();
    let mut line = vec![b'x'; 64 * 1024 * 1024];
    line.extend_from_slice(b"\nand another\n");
    assert_same(&line, &through_cat(&stage, &[], line.clone()));
}

#[test]
fn a_zoned_agents_harmless_lines_pass_as_they_are() {
    let stage = Stage::new();
    let lines = b"{ \"jsonrpc\":\"2.0\" , \"method\":\"x/y\", \"params\":{\"n\":1.50e400,\"s\":\"\\ud800\"}}\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n".to_vec();
    assert_same(&lines, &through_cat(&stage, &["--zone", "src/**"], lines.clone()));
}

#[test]
fn the_agents_exit_code_is_passed_on() {
    let stage = Stage::new();
    for (script, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -9 $$", 128 + 9),
        ("kill -TERM $$", 128 + 15),
        ("echo words >&2; cat >&2; exit 3", 3),
    ] {
        let ended =
            run(&mut stage.eisen_core(&["observe", "--port", "0", "--", "sh", "-c", script]));
        assert_eq!(ended.code, code, "{script}: {ended:?}");
        assert_eq!(ended.stdout, "", "{script}");
        assert_eq!(ended.stderr.contains("words"), script.contains("words"), "{ended:?}");
    }
    let ended = run(&mut stage.eisen_core(&["observe", "--port", "0", "--", "no-such-agent"]));
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.stderr.contains("no-such-agent") && ended.stdout.is_empty(), "{ended:?}");
    assert_eq!(run(&mut stage.eisen_core(&["observe"])).code, 2);
}

/// An observed agent that the test plays, and its editor, that the test plays too.
struct Observed {
    agent: Puppet,
    editor: Peer,
    program: Program,
}

fn observed(stage: &Stage, flags: &[&str]) -> Observed {
    let agent = stage.puppet("agent");
    let command = Puppet::command(&stage.path(""), "agent");
    let command: Vec<_> = command.iter().map(String::as_str).collect();
    let shop = stage.in_shop("");
    let args = [&["observe", "--port", "0", "--cwd", &shop], flags, &["--"], &command].concat();
    let mut program = stage.start(&args);
    let editor = Peer::of(program.stdin.take().unwrap(), program.stdout.take().unwrap());
    let mut observed = Observed { agent, editor, program };
    let version = json!({"protocolVersion": 1});
    observed.editor_asks("initialize", &version, &version);
    let params = json!({"cwd": stage.path("shop"), "mcpServers": []});
    observed.editor_asks("session/new", &params, &json!({"sessionId": "e1"}));
    observed
}

impl Observed {
    fn editor_asks(&mut self, method: &str, params: &Value, result: &Value) {
        let id = json!(format!("editor's {method}"));
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.editor.send(&request);
        assert_eq!(self.agent.expect(&json!({"id": id})), request);
        let response = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.agent.send(&response);
        assert_eq!(self.editor.expect(&json!({"id": id})), response);
    }
}

#[test]
fn what_an_agent_does_is_followed_on_the_port() {
    let stage = Stage::new();
    let mut observed = observed(&stage, &["--agent-id", "mine", "--session-id", "early"]);
    let mut port = observed.program.connect();
    let ready = port.agent_is("mine", "ready");
    assert!(ready["pid"].is_u64());
    let id = observed
        .agent
        .ask("fs/read_text_file", &json!({"sessionId": "e1", "path": stage.in_shop(".env")}));
    let request = observed.editor.expect(&json!({"method": "fs/read_text_file"}));
    assert_eq!(request["id"], id);
    let content = json!({"jsonrpc": "2.0", "id": id, "result": {"content": ""}});
    observed.editor.send(&content);
    let delta = port.expect(&json!({"type": "delta", "agent_id": "mine", "session_id": "e1"}));
    assert_eq!(delta["updates"][0]["path"], ".env");
    // Its prompts are the editor's.
    let name = format!("observe-{}", observed.program.id());
    port.auth(stage.run_file(&name).unwrap()["token"].as_str().unwrap());
    let refused = port.call("prompt", &json!({"agent_id": "mine", "text": "x"})).unwrap_err();
    assert_eq!(refused["code"], 409, "{refused}");

    drop(observed.editor);
    port.agent_is("mine", "stopped");
    assert_eq!(observed.program.wait().code, 0);
    assert!(!stage.run_path(&name).exists());
}

#[test]
fn with_a_zone_the_agent_gets_the_error_and_the_editor_nothing() {
    let stage = Stage::new();
    let flags = ["--zone", "src/**", "--zone", "types/**", "--deny", "src/api/**"];
    let mut observed = observed(&stage, &flags);
    let mut port = observed.program.connect();
    // From here on it hears everything.
    port.expect(&json!({"type": "snapshot"}));
    for (path, denied) in [
        ("src/api/cart.rs", true),
        (".env", true),
        ("src/ui/app.ts", false),
        ("types/cart.ts", false),
    ] {
        let params = json!({"sessionId": "e1", "path": stage.in_shop(path)});
        let id = observed.agent.ask("fs/read_text_file", &params);
        if denied {
            let error = observed.agent.answer(&id)["error"].clone();
            assert_eq!((&error["code"], &error["data"]["path"]), (&json!(-32001), &json!(path)));
            let blocked = port.blocked("denied");
            assert_eq!((&blocked["path"], &blocked["orchestrator"]), (&json!(path), &Value::Null));
        } else {
            let request = observed.editor.expect(&json!({"id": id}));
            assert_eq!(request["params"], params);
        }
    }
    let asked = observed.editor.count(&json!({"method": "fs/read_text_file"}));
    assert_eq!(asked, 2, "{:#?}", observed.editor.transcript);
}

#[test]
fn version_2_passes_and_its_permissions_are_judged() {
    for (zone, passes) in
        [(&[][..], true), (&["--zone", "**"], true), (&["--zone", "src/ui/**"], false)]
    {
        let stage = Stage::new();
        let mut observed = observed(&stage, zone);
        let change = json!({"operation": "modify", "path": stage.in_shop("src/api/cart.rs")});
        let content = json!([{"type": "diff", "changes": [change]}]);
        let options = json!([
            {"optionId": "y", "name": "Yes", "kind": "allow_once"},
            {"optionId": "n", "name": "No", "kind": "reject_once"},
        ]);
        for subject in [
            json!({"type": "tool_call", "toolCall": {"toolCallId": "c", "kind": "edit", "content": content}}),
            json!({"type": "command", "command": "cat cart.rs", "cwd": stage.in_shop("src/api")}),
        ] {
            let params =
                json!({"sessionId": "e1", "title": "?", "subject": subject, "options": options});
            let id = observed.agent.ask("session/request_permission", &params);
            if passes {
                assert_eq!(observed.editor.expect(&json!({"id": id}))["params"], params);
            } else {
                let outcome = json!({"outcome": "selected", "optionId": "n"});
                assert_eq!(observed.agent.answer(&id)["result"]["outcome"], outcome);
            }
        }
        // Methods that only drafts have are not judged.
        for method in ["session/set_title", "tool_call/cancel", "providers/list"] {
            let id = observed.agent.ask(method, &json!({"sessionId": "e1", "x": 1.0}));
            observed.editor.expect(&json!({"id": id, "method": method}));
        }
        let asked = observed.editor.count(&json!({"method": "session/request_permission"}));
        assert_eq!(asked, if passes { 2 } else { 0 });
    }
}

#[test]
fn flags_go_before_and_behind_the_command_and_its_name_is_the_default() {
    let stage = Stage::new();
    for (args, id) in [
        (&["--port", "0", "--agent-id", "a", "observe", "--", "/bin/cat"][..], "a"),
        (&["observe", "--port", "0", "--agent-id", "b", "--", "/bin/cat"], "b"),
        (&["observe", "--port", "0", "--", "/bin/cat", "-u"], "cat"),
    ] {
        let program = stage.start(args);
        let mut port = program.connect();
        port.agent_is(id, "ready");
        assert_eq!(program.wait().code, 0);
    }
    let program = stage.start(&["observe", "--port", "0", "--session-id", "early", "--", "cat"]);
    program.connect().expect(&json!({"type": "snapshot", "session_id": "early", "nodes": {}}));
}

#[test]
fn a_busy_default_port_is_no_obstacle_but_a_busy_port_that_was_asked_for_is() {
    let stage = Stage::new();
    // Ours, or somebody else's.
    let busy = TcpListener::bind("127.0.0.1:17320");
    let program = stage.start(&["observe", "--", "cat"]);
    assert_ne!(program.port, 17320);
    drop(busy);

    let first = stage.start(&["observe", "--port", "0", "--", "cat"]);
    let port = first.port.to_string();
    let second = stage.run(&["observe", "--port", &port, "--", "touch", "started"]);
    assert_eq!(second.code, 1, "{second:?}");
    let name = format!("observe-{}", first.id());
    assert!(second.stderr.contains(&port) && second.stderr.contains(&name), "{second:?}");
    assert!(!stage.has("started"));
}
