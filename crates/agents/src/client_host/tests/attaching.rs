//! Tests of attached editors.
#![allow(clippy::unwrap_used)]

mod leaving;
mod owning;
mod serving;

use super::*;
use eisen_base::task;

/// An editor, moved by the test line by line.
struct Editor {
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
}

impl Editor {
    async fn attach(scene: &Scene) -> Self {
        let (reader, writer) = split(scene.host.attach().await.unwrap());
        Self { reader: BufReader::new(reader), writer }
    }

    /// With these capabilities.
    async fn initialized(scene: &Scene, capabilities: Value) -> Self {
        let mut editor = Self::attach(scene).await;
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        let answer = editor.ask("init", "initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], 1, "{answer}");
        editor
    }

    async fn raw(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).await.unwrap();
        assert!(line.ends_with('\n'), "the pipe ended: {line:?}");
        line.pop();
        line
    }

    async fn recv(&mut self) -> Value {
        serde_json::from_str(&self.raw().await).unwrap()
    }

    async fn expect(&mut self, method: &str) -> Value {
        let message = self.recv().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    async fn send(&mut self, message: Value) {
        self.send_raw(&message.to_string()).await;
    }

    async fn send_raw(&mut self, line: &str) {
        self.writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn request(&mut self, id: &str, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
    }

    async fn ask(&mut self, id: &str, method: &str, params: Value) -> Value {
        self.request(id, method, params).await;
        self.answered(id).await
    }

    async fn answered(&mut self, id: &str) -> Value {
        let answer = self.recv().await;
        assert!(answer["id"] == id && answer.get("method").is_none(), "{id}: {answer}");
        answer
    }

    /// Opens a session of its own.
    async fn open(&mut self, agent: &mut Agent, session: &str) {
        self.request("open", "session/new", json!({ "cwd": "/w", "mcpServers": [] })).await;
        let request = agent.expect("session/new").await;
        agent.answer(&request, json!({ "sessionId": session })).await;
        assert_eq!(self.answered("open").await["result"]["sessionId"], session);
    }

    /// Prompts in a session; returns the request as the agent got it.
    async fn prompt(&mut self, agent: &mut Agent, session: &str) -> Value {
        self.request("turn", "session/prompt", json!({ "sessionId": session, "prompt": [] })).await;
        let request = agent.expect("session/prompt").await;
        assert_eq!(request["params"]["sessionId"], session);
        request
    }

    async fn ended(&mut self) {
        let mut rest = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut self.reader, &mut rest).await.unwrap();
        assert_eq!(rest, "");
    }
}

impl Agent {
    async fn raw(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).await.unwrap();
        line
    }
}

const INTRODUCTION: &str = r#"{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"_meta":{"n":1.50}},"future":[123456789012345678901234567890,"\u00e9"]}"#;

/// A host whose agent has introduced itself, with the session `s` of its own.
async fn team() -> Scene {
    let mut scene = start(settings());
    let host = scene.host.clone();
    let initializing = task::spawn(async move { host.initialize().await });
    let request = scene.agent.expect("initialize").await;
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{INTRODUCTION}}}"#, request["id"]);
    scene.agent.send_raw(&answer).await;
    initializing.await.unwrap().unwrap();
    open_session(&mut scene, "s").await;
    scene
}

fn all() -> Value {
    json!({ "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": true })
}

#[tokio::test]
async fn an_editor_hears_what_the_agent_said_of_itself() {
    let scene = team().await;
    let mut editor = Editor::attach(&scene).await;
    for id in ["0", r#""\u0061""#, "12345678901234567890123"] {
        editor
            .send_raw(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{}}}}"#
            ))
            .await;
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{INTRODUCTION}}}"#);
        assert_eq!(editor.raw().await, expected);
    }
}

#[tokio::test]
async fn requests_and_answers_pass_with_ids_of_their_own_side() {
    let mut scene = team().await;
    let mut editor = Editor::attach(&scene).await;
    let params = r#"{"x" : 1.0, "big":123456789012345678901234567890}"#;
    for id in ["0", "1.50", r#""\u0061""#, "null", "12345678901234567890123"] {
        let line = format!(r#"{{"id": {id}, "params":{params}, "method":"_vendor/do"}}"#);
        editor.send_raw(&line).await;
        let line = scene.agent.raw().await;
        let number = serde_json::from_str::<Value>(&line).unwrap()["id"].clone();
        assert!(number.is_u64(), "{line}");
        let expected =
            format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"_vendor/do","params":{params}}}"#);
        assert_eq!(line.trim_end(), expected);
        let answer = r#""result":{"y": 1e400}"#;
        scene.agent.send_raw(&format!(r#"{{"jsonrpc":"2.0","id":{number},{answer}}}"#)).await;
        assert_eq!(editor.raw().await, format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#));
    }
    // An error, and a request without params.
    editor.send_raw(r#"{"jsonrpc":"2.0","id":"e","method":"session/list"}"#).await;
    let line = scene.agent.raw().await;
    let request: Value = serde_json::from_str(&line).unwrap();
    assert!(request.get("params").is_none(), "{line}");
    let error = r#""error":{"code":-32000,"message":"log in","data":{"n":1.0}}"#;
    scene.agent.send_raw(&format!(r#"{{"jsonrpc":"2.0","id":{},{error}}}"#, request["id"])).await;
    assert_eq!(editor.raw().await, format!(r#"{{"jsonrpc":"2.0","id":"e",{error}}}"#));
}

#[tokio::test]
async fn what_is_reported_before_a_session_is_open_follows_the_answer() {
    let mut scene = team().await;
    let mut editor = Editor::initialized(&scene, json!({})).await;
    let mut other = Editor::initialized(&scene, json!({})).await;
    editor.request("open", "session/new", json!({})).await;
    let request = scene.agent.expect("session/new").await;
    for (session, text) in [("e", "one"), ("x", "nobody's"), ("s", "the team's"), ("e", "two")] {
        scene.agent.say(session, text).await;
    }
    scene.agent.answer(&request, json!({ "sessionId": "e" })).await;
    scene.agent.say("e", "three").await;
    editor.answered("open").await;
    for text in ["one", "two", "three"] {
        let update = editor.expect("session/update").await;
        assert_eq!(update["params"]["update"]["content"]["text"], text);
    }
    // No other editor got it.
    other.open(&mut scene.agent, "x").await;
    scene.agent.say("x", "new").await;
    let update = other.expect("session/update").await;
    assert_eq!(update["params"]["update"]["content"]["text"], "new");
}

#[tokio::test]
async fn malformed_lines_are_answered_and_the_pipe_lives() {
    let mut scene = team().await;
    let mut editor = Editor::attach(&scene).await;
    for (line, code) in [
        ("nonsense", -32700),
        (r#"{"id":1"#, -32700),
        ("[]", -32600),
        ("7", -32600),
        ("{}", -32600),
        (r#"{"id":1,"id":2,"method":"x"}"#, -32600),
    ] {
        editor.send_raw(line).await;
        let answer = editor.recv().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(null), &json!(code)),
            "{line}"
        );
    }
    editor.writer.write_all(b"\xff\n\n  \n").await.unwrap();
    assert_eq!(editor.recv().await["error"]["code"], -32700);
    for line in [
        r#"{"id":9,"result":{}}"#,
        r#"{"id":"x","error":{}}"#,
        r#"{"method":"$/cancel_request","params":{"requestId":9}}"#,
        r#"{"method":"$/cancel_request","params":7}"#,
    ] {
        editor.send_raw(line).await;
    }
    let twice = r#"{"id":3,"method":"session/prompt","params":{"sessionId":"a","sessionId":"s"}}"#;
    editor.send_raw(twice).await;
    assert_eq!(editor.recv().await["error"]["code"], -32602);
    // Nothing of it reached the agent.
    editor.request("a", "session/list", json!({})).await;
    scene.agent.expect("session/list").await;
}

#[tokio::test]
async fn cancellations_carry_the_id_of_the_side_that_they_go_to() {
    let mut scene = team().await;
    let mut editor = Editor::initialized(&scene, all()).await;
    editor.open(&mut scene.agent, "e").await;
    let prompt = editor.prompt(&mut scene.agent, "e").await;
    editor.send(json!({ "method": "$/cancel_request", "params": { "requestId": "turn" } })).await;
    let cancel = scene.agent.expect("$/cancel_request").await;
    assert_eq!(cancel["params"], json!({ "requestId": prompt["id"] }));

    scene.agent.request(70, "fs/read_text_file", json!({ "sessionId": "e", "path": "/a" })).await;
    let asked = editor.expect("fs/read_text_file").await;
    let about = |id: u64| json!({ "method": "$/cancel_request", "params": { "requestId": id } });
    // A cancellation of an unknown request is dropped.
    scene.agent.send(about(71)).await;
    scene.agent.send(about(70)).await;
    let cancel = editor.expect("$/cancel_request").await;
    assert_eq!(cancel["params"], json!({ "requestId": asked["id"] }));
    let error = json!({ "code": -32800, "message": "cancelled" });
    editor.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).await;
    assert_eq!(scene.agent.answered(70).await, error);

    editor.send(json!({ "method": "session/cancel", "params": { "sessionId": "e" } })).await;
    scene.agent.expect("session/cancel").await;
    let cancelled = json!({ "stopReason": "cancelled" });
    scene.agent.answer(&prompt, cancelled.clone()).await;
    assert_eq!(editor.answered("turn").await["result"], cancelled);
}

#[tokio::test]
async fn only_so_many_editors_are_let_in() {
    let mut scene = team().await;
    let mut editors = Vec::new();
    for _ in 0..64 {
        editors.push(Editor::attach(&scene).await);
    }
    let refused = scene.host.attach().await.unwrap_err().to_string();
    assert_eq!(refused, "64 editors are attached to the agent, and no more may be");
    // One that waits for its last answer gives way.
    let mut first = editors.remove(0);
    first.request("a", "session/list", json!({})).await;
    scene.agent.expect("session/list").await;
    first.writer.shutdown().await.unwrap();
    eventually("there is a place", async || scene.host.attach().await.is_ok()).await;
    first.ended().await;
}
