//! A server that speaks as OpenCode's does, by shapes that were recorded from version 1.18. What a prompt
//! says is what it does: `read FILE`, `edit FILE`, `fail`, `lose`, `hostile`, `wait`, or any text.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, patch, post};
use axum::{Json, Router};
use futures_util::stream::unfold;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

use crate::harness::Stage;

pub(super) struct Server {
    runtime: Option<Runtime>,
    pub(super) address: String,
    pub(super) state: Arc<Mutex<Said>>,
}

/// What the server knows, and what it was told.
#[derive(Default)]
pub(super) struct Said {
    /// Bodies of the requests that made sessions.
    pub(super) opened: Vec<Value>,
    pub(super) replies: Vec<Value>,
    pub(super) aborts: usize,
    streams: Vec<mpsc::UnboundedSender<String>>,
    asked: HashMap<String, oneshot::Sender<Value>>,
    waiting: Option<oneshot::Sender<()>>,
    messages: Vec<Value>,
    is_busy: bool,
    last: usize,
}

impl Said {
    /// A turn waits to be aborted.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }
}

type Shared = State<Arc<Mutex<Said>>>;

impl Server {
    /// `at`: port 0 takes a free one.
    pub(super) fn start(at: &str) -> Self {
        let runtime = Runtime::new().unwrap();
        let state: Arc<Mutex<Said>> = Arc::default();
        let listener = runtime.block_on(TcpListener::bind(at)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let router = Router::new()
            .route(
                "/global/health",
                get(async || Json(json!({"healthy": true, "version": "1.18.33"}))),
            )
            .route("/agent", get(agents))
            .route("/config", get(async || Json(json!({"model": "fake/fake-model"}))))
            .route("/config/providers", get(providers))
            .route("/event", get(events))
            .route("/permission", get(async || Json(json!([]))))
            .route("/permission/{id}/reply", post(reply))
            .route("/session", post(open))
            .route("/session/status", get(status))
            .route("/session/{id}", get(session))
            .route("/session/{id}", patch(session))
            .route("/session/{id}/abort", post(abort))
            .route(
                "/session/{id}/message",
                get(async |State(said): Shared| Json(said.lock().messages.clone())),
            )
            .route("/session/{id}/prompt_async", post(prompt))
            .layer(from_fn(with_password))
            .with_state(Arc::clone(&state));
        runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { runtime: Some(runtime), address, state }
    }

    pub(super) fn configure(&self, stage: &Stage, keys: &str) {
        let url = format!("http://{}", self.address);
        configure(stage, &url, keys);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Of `opencode:secret`.
pub(super) const HEADERS: &str = "headers = { authorization = \"Basic b3BlbmNvZGU6c2VjcmV0\" }";

pub(super) fn configure(stage: &Stage, url: &str, keys: &str) {
    stage.file(
        "eisen.toml",
        &format!(
            "[team]\nname = \"shop\"\nworkspace = \"shop\"\nlisten = \"127.0.0.1:0\"\n\
             [[agents]]\nid = \"oc\"\nprotocol = \"opencode\"\nbase_url = \"{url}\"\n{keys}\n\
             [agents.zone]\nallowed = [\"src/ui/**\"]\n"
        ),
    );
}

async fn with_password(request: Request, next: Next) -> Response {
    let password = request.headers().get("authorization");
    if password.is_some_and(|it| it == "Basic b3BlbmNvZGU6c2VjcmV0") {
        return next.run(request).await;
    }
    (StatusCode::UNAUTHORIZED, "Unauthorized").into_response()
}

async fn agents() -> Json<Value> {
    let allow = json!([{"permission": "*", "pattern": "*", "action": "allow"}, {"permission": "bash", "pattern": "rm *", "action": "deny"}]);
    Json(json!([
        {"name": "build", "mode": "primary", "native": true, "permission": allow},
        {"name": "general", "mode": "subagent", "native": true, "permission": allow},
    ]))
}

async fn providers() -> Json<Value> {
    let model = json!({"id": "fake-model", "name": "Fake Model", "limit": {"context": 200_000, "output": 8192}});
    Json(
        json!({"providers": [{"id": "fake", "name": "Fake", "models": {"fake-model": model}}], "default": {"fake": "fake-model"}}),
    )
}

async fn events(State(said): Shared) -> Response {
    let (to, from) = mpsc::unbounded_channel();
    let _ = to.send(line(&json!({"type": "server.connected", "properties": {}})));
    said.lock().streams.push(to);
    let stream = unfold(from, |mut from| async move {
        from.recv().await.map(|line| (Ok::<_, Infallible>(line), from))
    });
    Response::new(Body::from_stream(stream))
}

fn line(event: &Value) -> String {
    format!("data: {event}\n\n")
}

async fn open(State(said): Shared, Json(body): Json<Value>) -> Json<Value> {
    said.lock().opened.push(body);
    session().await
}

async fn session() -> Json<Value> {
    Json(json!({"id": "ses_1", "directory": "/", "title": "New session", "cost": 0}))
}

async fn status(State(said): Shared) -> Json<Value> {
    Json(if said.lock().is_busy { json!({"ses_1": {"type": "busy"}}) } else { json!({}) })
}

async fn abort(State(said): Shared) -> Json<bool> {
    let mut said = said.lock();
    said.aborts += 1;
    if let Some(waiting) = said.waiting.take() {
        let _ = waiting.send(());
    }
    Json(true)
}

async fn reply(State(said): Shared, Path(id): Path<String>, Json(body): Json<Value>) -> Json<bool> {
    let mut said = said.lock();
    said.replies.push(body.clone());
    let asked = said.asked.remove(&id);
    Json(asked.is_some_and(|asked| asked.send(body).is_ok()))
}

async fn prompt(State(said): Shared, Json(body): Json<Value>) -> StatusCode {
    assert_eq!(body["agent"], "build");
    let text = body["parts"][0]["text"].as_str().unwrap().to_owned();
    tokio::spawn(async move { Turn::begin(said).work(&text).await });
    StatusCode::NO_CONTENT
}

/// One answer of the server.
struct Turn {
    said: Arc<Mutex<Said>>,
    number: usize,
    message: String,
}

impl Turn {
    fn begin(said: Arc<Mutex<Said>>) -> Self {
        let number = {
            let mut said = said.lock();
            (said.is_busy, said.last) = (true, said.last + 1);
            said.last
        };
        let turn = Self { said, number, message: format!("msg_a{number}") };
        let user = json!({"id": format!("msg_u{number}"), "sessionID": "ses_1", "role": "user", "time": {"created": 1}});
        turn.said.lock().messages.push(json!({"info": user, "parts": []}));
        turn.say("message.updated", &json!({"sessionID": "ses_1", "info": user}));
        turn.say("session.status", &json!({"sessionID": "ses_1", "status": {"type": "busy"}}));
        turn.say("message.updated", &json!({"sessionID": "ses_1", "info": turn.info(false)}));
        turn
    }

    async fn work(&self, text: &str) {
        match text.split_once(' ') {
            Some((tool @ ("read" | "edit"), file)) => {
                let did = self.tool(tool, file).await;
                self.text(&did);
            }
            _ if text == "fail" => {
                let data = json!({"message": "Incorrect API key provided", "statusCode": 401, "isRetryable": false});
                self.say(
                    "session.error",
                    &json!({"sessionID": "ses_1", "error": {"name": "APIError", "data": data}}),
                );
                self.idle();
                // A real one says it twice.
                return self.idle();
            }
            _ if text == "wait" => {
                let (to, aborted) = oneshot::channel();
                self.said.lock().waiting = Some(to);
                let _ = aborted.await;
                let error = json!({"name": "MessageAbortedError", "data": {"message": "Aborted"}});
                self.say("session.error", &json!({"sessionID": "ses_1", "error": error}));
                return self.idle();
            }
            _ if text == "lose" => return self.lose(),
            _ if text == "hostile" => {
                self.hostile();
                self.text("fine");
            }
            _ => self.text(text),
        }
        let complete = self.info(true);
        self.say("message.updated", &json!({"sessionID": "ses_1", "info": complete}));
        self.idle();
    }

    /// Asks for the file, and does what it was allowed.
    async fn tool(&self, tool: &str, file: &str) -> String {
        let part = |state: &Value| {
            let part = json!({"id": format!("prt_t{}", self.number), "messageID": self.message, "sessionID": "ses_1",
                "type": "tool", "tool": tool, "callID": "call_1", "state": state});
            json!({"sessionID": "ses_1", "part": part})
        };
        let input = json!({"filePath": file});
        self.say(
            "message.part.updated",
            &part(&json!({"status": "pending", "input": {}, "raw": ""})),
        );
        let (to, asked) = oneshot::channel();
        let id = format!("per_{}", self.number);
        self.said.lock().asked.insert(id.clone(), to);
        let metadata =
            if tool == "edit" { json!({"filepath": file, "diff": ""}) } else { json!({}) };
        // It is asked before its input is said, as a real one does at times.
        self.say("permission.asked", &json!({"id": id, "sessionID": "ses_1", "permission": tool, "patterns": ["a/b"],
            "metadata": metadata, "always": ["*"], "tool": {"messageID": self.message, "callID": "call_1"}}));
        self.say(
            "message.part.updated",
            &part(&json!({"status": "running", "input": input, "time": {"start": 1}})),
        );
        let reply = asked.await.unwrap();
        if reply["reply"] != "once" {
            let error = "The user rejected permission to use this specific tool call.";
            self.say(
                "message.part.updated",
                &part(&json!({"status": "error", "input": input, "error": error})),
            );
            return format!("refused: {}", reply["message"].as_str().unwrap_or_default());
        }
        if tool == "edit" {
            std::fs::write(file, "edited\n").unwrap();
        }
        let done = json!({"status": "completed", "input": input, "output": "ok", "title": file, "metadata": {}});
        self.say("message.part.updated", &part(&done));
        format!("did {tool}")
    }

    /// The stream ends in the middle; what follows is only in the messages.
    fn lose(&self) {
        self.part("half ", false);
        self.say(
            "message.part.delta",
            &json!({"sessionID": "ses_1", "messageID": self.message,
            "partID": format!("prt_x{}", self.number), "field": "text", "delta": "half "}),
        );
        let mut said = self.said.lock();
        said.streams.clear();
        let parts = [self.part_of("half of it", true)];
        said.messages.push(json!({"info": self.info(true), "parts": parts}));
        said.is_busy = false;
    }

    fn hostile(&self) {
        let huge = "x".repeat(9 << 20);
        for raw in
            ["{", "\"\"", "[]", "{\"type\":1}", "\u{0}", "{\"type\":\"session.idle\"}", &huge]
        {
            self.raw(&format!("data: {raw}\n\n"));
        }
        let of = |session: &str| json!({"sessionID": session});
        self.say("session.idle", &of("ses_other"));
        self.say("no.such.event", &of("ses_1"));
        self.say("message.updated", &json!({"info": {"id": 1}}));
        self.say("message.part.updated", &json!({"part": null}));
        self.say(
            "permission.asked",
            &json!({"id": "per_x", "sessionID": "ses_other", "permission": "edit", "patterns": []}),
        );
        // It names no file, so that nobody can judge it.
        self.say(
            "permission.asked",
            &json!({"id": "per_y", "sessionID": "ses_1", "permission": "edit", "patterns": []}),
        );
        self.say("todo.updated", &json!({"sessionID": "ses_1", "todos": [{"content": "a"}]}));
        self.say(
            "message.part.delta",
            &json!({"sessionID": "ses_1", "partID": "prt_none", "field": "text", "delta": "lost"}),
        );
    }

    fn text(&self, text: &str) {
        self.part("", false);
        for word in text.split_inclusive(' ') {
            self.say(
                "message.part.delta",
                &json!({"sessionID": "ses_1", "messageID": self.message,
                "partID": format!("prt_x{}", self.number), "field": "text", "delta": word}),
            );
        }
        self.part(text, true);
    }

    fn part(&self, text: &str, has_ended: bool) {
        let text = if has_ended { text } else { "" };
        self.say(
            "message.part.updated",
            &json!({"sessionID": "ses_1", "part": self.part_of(text, has_ended)}),
        );
    }

    fn part_of(&self, text: &str, has_ended: bool) -> Value {
        let time = if has_ended { json!({"start": 1, "end": 2}) } else { json!({"start": 1}) };
        json!({"id": format!("prt_x{}", self.number), "messageID": self.message, "sessionID": "ses_1",
            "type": "text", "text": text, "time": time})
    }

    fn info(&self, is_complete: bool) -> Value {
        let mut info = json!({"id": self.message, "parentID": format!("msg_u{}", self.number), "sessionID": "ses_1",
            "role": "assistant", "providerID": "fake", "modelID": "fake-model", "cost": 0.5,
            "tokens": {"input": 7, "output": 3, "reasoning": 0, "cache": {"read": 0, "write": 0}}, "time": {"created": 1}});
        if is_complete {
            (info["finish"], info["time"]["completed"]) = ("stop".into(), 2.into());
        }
        info
    }

    fn idle(&self) {
        self.said.lock().is_busy = false;
        self.say("session.idle", &json!({"sessionID": "ses_1"}));
    }

    fn say(&self, kind: &str, properties: &Value) {
        self.raw(&line(&json!({"id": "evt_1", "type": kind, "properties": properties})));
    }

    fn raw(&self, raw: &str) {
        self.said.lock().streams.retain(|stream| stream.send(raw.to_owned()).is_ok());
    }
}
