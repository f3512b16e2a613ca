//! A plugin that ships, with an agent that plays what Claude says.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::scene::configure_with;
use crate::harness::{EISEN_CORE, Port, Stage, run};

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

/// Builds the plugin, which no test of this package depends on.
fn library() -> PathBuf {
    let target = Path::new(EISEN_CORE).ancestors().nth(2).unwrap();
    let built = run(Command::new(env!("CARGO"))
        .args(["build", "--locked", "-p", "eisen-plugin-claude-stream-json", "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR")));
    assert_eq!(built.code, 0, "{}", built.stderr);
    let name = format!("libclaude_stream_json{}", std::env::consts::DLL_SUFFIX);
    target.join("debug").join(name)
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
    let library = library();
    for isolation in ["in-process", "process"] {
        let stage = Stage::new();
        let copy = stage.path("libclaude.so");
        std::fs::copy(&library, &copy).unwrap();
        super::scene::chmod(&copy, 0o755);
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
    let library = library();
    for isolation in ["in-process", "process"] {
        let stage = Stage::new();
        let copy = stage.path("libclaude.so");
        std::fs::copy(&library, &copy).unwrap();
        super::scene::chmod(&copy, 0o755);
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
        assert_eq!(said, expected.collect::<String>());
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
