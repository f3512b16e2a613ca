//! The real server, `opencode serve`, with a model that is scripted. Left out where it is not installed: the
//! variable `EISEN_TEST_OPENCODE` names the program, else it is `opencode` on PATH.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use axum::body::Body;
use axum::response::Response;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::server::{HEADERS, configure};
use crate::harness::{self, Stage, eventually};

/// A server of a model: the prompt `write FILE` makes it write the file, any other one makes it answer.
fn model() -> (Runtime, String) {
    let runtime = Runtime::new().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let router = Router::new().route("/v1/chat/completions", post(answer));
    runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
    (runtime, address)
}

async fn answer(Json(request): Json<Value>) -> Response {
    let messages = request["messages"].as_array().unwrap();
    let asked = messages.iter().rposition(|message| message["role"] == "user");
    let text = asked.map(|at| text_of(&messages[at]["content"])).unwrap_or_default();
    let tool =
        messages[asked.unwrap_or_default()..].iter().find(|message| message["role"] == "tool");
    let file = text.split_once("write ").map(|(_, file)| file.trim().to_owned());
    let (delta, finish) = match (file, tool) {
        (Some(file), None) if request["tools"].is_array() => {
            let arguments = json!({"filePath": file, "content": "written\n"}).to_string();
            let function = json!({"name": "write", "arguments": arguments});
            let call =
                json!({"index": 0, "id": "call_1", "type": "function", "function": function});
            (json!({"role": "assistant", "tool_calls": [call]}), "tool_calls")
        }
        (_, Some(tool)) => {
            let said = format!("the tool said: {}", text_of(&tool["content"]));
            (json!({"role": "assistant", "content": said}), "stop")
        }
        _ => (json!({"role": "assistant", "content": "hello"}), "stop"),
    };
    let chunk = |delta: &Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let usage = json!({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10});
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let (first, last) = (chunk(&delta, Value::Null), chunk(&json!({}), finish.into()));
    let body = format!("{first}{last}data: [DONE]\n\n");
    Response::builder().header("content-type", "text/event-stream").body(Body::from(body)).unwrap()
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| text_of(&part["text"])).collect(),
        _ => String::new(),
    }
}

struct Real(Child);

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Real {
    fn start(program: &str, stage: &Stage, port: u16, model: &str) -> Self {
        let models = json!({"fake-model": {"name": "Fake Model", "tool_call": true, "limit": {"context": 200_000, "output": 8192}}});
        let provider = json!({"npm": "@ai-sdk/openai-compatible", "name": "Fake",
            "options": {"baseURL": format!("http://{model}/v1"), "apiKey": "x"}, "models": models});
        let config = json!({"autoupdate": false, "share": "disabled", "model": "fake/fake-model",
            "small_model": "fake/fake-model", "provider": {"fake": provider}, "permission": {"edit": "allow"}});
        stage.file("user/.config/opencode/opencode.json", &config.to_string());
        let mut command = harness::program(program);
        command.args(["serve", "--port", &port.to_string()]).current_dir(stage.path("shop"));
        command.env("HOME", stage.path("user")).env("OPENCODE_SERVER_PASSWORD", "secret");
        for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"] {
            command.env_remove(name);
        }
        for name in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "SHARE"] {
            command.env(format!("OPENCODE_DISABLE_{name}"), "1");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let real = Self(command.spawn().unwrap());
        eventually("the server listens", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        real
    }
}

#[test]
fn the_real_server_is_an_agent_whose_zone_holds() {
    let program = std::env::var("EISEN_TEST_OPENCODE").unwrap_or_else(|_| "opencode".to_owned());
    let version = Command::new(&program).arg("--version").stderr(Stdio::null()).output();
    let Ok(version) = version.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned())
    else {
        eprintln!("left out: `{program}` is not installed");
        return;
    };
    let stage = Stage::new();
    let (_runtime, model) = model();
    // Free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let real = Real::start(&program, &stage, port, &model);
    configure(&stage, &format!("http://127.0.0.1:{port}"), HEADERS);
    let team = stage.up();
    let mut client = team.steer_when_ready(&["oc"]);
    assert_eq!(client.prompt("oc", "hi"), "hello", "version {version}");

    let ui = stage.in_shop("src/ui/app.ts");
    let said = client.prompt("oc", &format!("write {ui}"));
    assert!(said.contains("the tool said: Wrote file successfully"), "{said}");
    assert_eq!(stage.read("shop/src/ui/app.ts"), "written\n");

    let api = stage.in_shop("src/api/cart.rs");
    let said = client.prompt("oc", &format!("write {api}"));
    assert!(said.contains("This is not allowed here."), "{said}");
    client.expect(&json!({"type": "blocked", "path": "src/api/cart.rs", "via": "permission"}));
    assert_eq!(stage.read("shop/src/api/cart.rs"), "api\n");

    // It begins anew, and the session goes on.
    drop(real);
    client.agent_is("oc", "restarting");
    let _real = Real::start(&program, &stage, port, &model);
    client.agent_is("oc", "ready");
    assert_eq!(client.prompt("oc", "hi"), "hello");
}
