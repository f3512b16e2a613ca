//! Plugins that ship, with agents that play what Claude and Codex say.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::scene::configure_with;
use crate::harness::{EISEN_CORE, Port, Stage, cargo, run};

/// Tries tools, each once the hook has answered for the one before.
const CLAUDE: &str = r#"
say() { printf '%s\n' "$1"; }
uses() {
    say '{"type":"assistant","message":{"id":"m'$1'","role":"assistant","usage":{"input_tokens":1000,"output_tokens":10},"content":[{"type":"tool_use","id":"t'$1'","name":"'$2'","input":'$3'}]},"parent_tool_use_id":null}'
    say '{"type":"control_request","request_id":"r'$1'","request":{"subtype":"hook_callback","callback_id":"gate","input":{"hook_event_name":"PreToolUse","tool_name":"'$2'","tool_input":'$3'},"tool_use_id":"t'$1'"}}'
}
went() {
    case $2 in *'"permissionDecision":"allow"'*) failed=false ;; *) failed=true ;; esac
    case $2 in *'Outside agent zone: '*) why=', out of its zone' ;; *) why= ;; esac
    say '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t'$1'","content":"x","is_error":'$failed'}]},"parent_tool_use_id":null}'
    say '{"type":"assistant","message":{"id":"n'$1'","role":"assistant","content":[{"type":"text","text":"'$1' failed: '"$failed$why"'. "}]},"parent_tool_use_id":null}'
}
while read -r line; do
    case $line in
    *'"type":"user"'*)
        say '{"type":"system","subtype":"init","session_id":"claude-1","model":"opus"}'
        uses 1 Read '{"file_path":"src/ui/app.ts"}' ;;
    *'"request_id":"r1"'*) went 1 "$line"; uses 2 Read '{"file_path":"src/api/cart.rs"}' ;;
    *'"request_id":"r2"'*) went 2 "$line"; uses 3 Grep '{"pattern":"x","path":"src/api"}' ;;
    *'"request_id":"r3"'*) went 3 "$line"; uses 4 Glob '{"pattern":"*"}' ;;
    *'"request_id":"r4"'*) went 4 "$line"; uses 5 Grep '{"pattern":"x"}' ;;
    *'"request_id":"r5"'*) went 5 "$line"; uses 6 Grep '{"pattern":"x","path":"src/ui"}' ;;
    *'"request_id":"r6"'*) went 6 "$line"
        say '{"type":"result","subtype":"success","is_error":false,"stop_reason":"end_turn","total_cost_usd":0.25,"modelUsage":{"opus":{"contextWindow":200000}}}' ;;
    esac
done
"#;

/// Builds a plugin, which no test of this package depends on, and puts a copy on the stage.
fn library(stage: &Stage, name: &str) -> PathBuf {
    let target = Path::new(EISEN_CORE).ancestors().nth(2).unwrap();
    let built = run(cargo()
        .args(["build", "--locked", "--lib", "-p", &format!("eisen-plugin-{name}")])
        // With the program's features, so that what it depends on is there already.
        .args(["-p", "eisen-core", "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR")));
    assert_eq!(built.code, 0, "{}", built.stderr);
    let file = format!("lib{}{}", name.replace('-', "_"), std::env::consts::DLL_SUFFIX);
    let copy = stage.path(&file);
    std::fs::copy(target.join("debug").join(file), &copy).unwrap();
    super::scene::chmod(&copy, 0o755);
    copy
}

/// Says whether it goes on with a session, until it is to die.
const FORGETFUL: &str = r#"
id=claude-1 how=anew
[ "$1" = --resume ] && id=$2 how=again
while read -r line; do
    case $line in
    *'die'*) exit 3 ;;
    *'"type":"user"'*)
        printf '%s\n' '{"type":"system","subtype":"init","session_id":"'$id'"}'
        printf '%s\n' '{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"'$id' '$how'"}]}}'
        printf '%s\n' '{"type":"result","subtype":"success"}' ;;
    esac
done
"#;

#[test]
fn claude_goes_on_with_its_conversation_after_a_restart() {
    let readme = include_str!("../../../plugins/claude-stream-json/README.md");
    let (_, begins) = readme.split_once("command = [\"sh\", \"-c\", '").unwrap();
    let (begins, _) = begins.split_once('\'').unwrap();
    for isolation in ["in-process", "process"] {
        let stage = Stage::new();
        let copy = library(&stage, "claude-stream-json");
        super::scene::trust(&stage, &copy);
        let plugin = format!(
            "[[plugins]]\nname = \"claude\"\npath = {:?}\nisolation = {isolation:?}\n\
             config = {{ resumes = true }}",
            copy.display().to_string()
        );
        configure_with(&stage, &plugin, "claude", "restart = { backoff_ms = [1, 1] }");
        stage.file("claude.sh", FORGETFUL);
        let claude = stage.path("claude.sh");
        stage.file("agent.sh", &format!("exec sh -c '{begins}' sh {}", claude.display()));
        let team = stage.up();
        let mut port = team.steer_when_ready(&["ui"]);
        let prompt = |port: &mut Port, text| {
            let answer = port.call("prompt", &json!({"agent_id": "ui", "text": text}));
            answer.map(|answer| (answer["session_id"].clone(), answer["text"].clone()))
        };
        let (session, said) = prompt(&mut port, "go").unwrap();
        assert_eq!(said, "claude-1 anew");
        for restarts in 1..3 {
            prompt(&mut port, "die").unwrap_err();
            port.expect(&json!({"type": "agent", "state": "ready", "restarts": restarts}));
            let again = (session.clone(), json!("claude-1 again"));
            assert_eq!(prompt(&mut port, "go"), Ok(again), "{isolation}");
        }
    }
}

#[test]
fn claude_asks_before_each_tool_and_is_held_to_its_zone() {
    for isolation in ["in-process", "process"] {
        let stage = Stage::new();
        let copy = library(&stage, "claude-stream-json");
        super::scene::trust(&stage, &copy);
        let plugin = format!(
            "[[plugins]]\nname = \"claude-stream-json\"\npath = {:?}\nisolation = {isolation:?}",
            copy.display().to_string()
        );
        configure_with(&stage, &plugin, "claude-stream-json", "");
        stage.file("agent.sh", CLAUDE);
        let team = stage.up();
        let mut port = team.steer_when_ready(&["ui"]);
        let said = port.prompt("ui", "go");
        let failed = [false, true, true, false, true, false];
        let expected = (1..).zip(failed).map(|(tool, failed)| {
            format!("{tool} failed: {failed}{}. ", if failed { ", out of its zone" } else { "" })
        });
        // Messages between which a tool runs are parted by a line end.
        assert_eq!(said.replace('\n', ""), expected.collect::<String>());
        for path in ["src/api/cart.rs", "src/api", "."] {
            let blocked = port.blocked("denied");
            let seen = (&blocked["path"], &blocked["via"], &blocked["action"]);
            assert_eq!(seen, (&json!(path), &json!("permission"), &json!("read")));
        }
        port.expect(&json!({"type": "usage", "used": 1010, "size": 200_000}));
        port.expect_that("its file on the map", |line| {
            line["type"] == "delta" && line["updates"][0]["path"] == "src/ui/app.ts"
        });
    }
}

/// One turn: with `wait` in its prompt, it fails once it is let; it waits for what stands beside it.
const CODEX: &str = r#"#!/bin/sh
input=$(cat)
echo '{"type":"thread.started","thread_id":"t-1"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"on it"}}'
case $input in *wait*) read -r line <"$0.go"; exit 3 ;; esac
echo '{"type":"turn.completed"}'
"#;

/// The loop that starts Codex lives on: only its plugin knows that the turn is over.
#[test]
#[cfg(target_os = "linux")]
fn a_codex_that_fails_after_its_plugin_did_leaves_nobody_waiting() {
    let stage = Stage::new();
    let copy = library(&stage, "codex-exec-json");
    let plugin = format!(
        "[[plugins]]\nname = \"codex\"\npath = {:?}\nisolation = \"process\"",
        copy.display().to_string()
    );
    configure_with(&stage, &plugin, "codex", "");
    let [turns, codex] = ["turns.sh", "codex"].map(|file| stage.path(file));
    stage.file("turns.sh", include_str!("../../../plugins/codex-exec-json/turns.sh"));
    stage.file("codex", CODEX);
    super::scene::chmod(&codex, 0o755);
    let begins = format!("exec sh -c \"$(cat {})\" {}", turns.display(), codex.display());
    stage.file("agent.sh", &format!("{begins} exec --json\n"));
    let go = stage.path("codex.go");
    nix::unistd::mkfifo(&go, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let team = stage.up();
    let mut port = team.steer_when_ready(&["ui"]);
    let params = json!({"agent_id": "ui", "text": "wait", "stream": true});
    let prompt = port.ask("prompt", &params);
    port.expect(&json!({"type": "rpc_progress", "id": prompt, "text": "on it"}));
    super::scene::kill_host(&copy);
    std::fs::write(&go, "go\n").unwrap();
    let why = port.answer(prompt).unwrap_err().to_string();
    assert!(why.contains("Codex ended with status 3 before its turn did"), "{why}");
    assert_eq!(port.prompt("ui", "do"), "on it");
}
