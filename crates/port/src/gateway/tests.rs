//! A gateway between clients and fake agents, all of which give their sessions the same id.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::needless_pass_by_value)]

mod early;
mod fake;
mod leaving;
mod moving;
mod several;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, split};
use tokio::time::timeout;

use super::GatewayHandle;
use crate::line::LineReader;
use fake::FakeTeam;

/// How long a client waits for a line; longer than the gateway waits for agents.
const MAX_SILENCE: Duration = Duration::from_secs(1000);

struct TestClient {
    lines: LineReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
    last: u64,
}

impl TestClient {
    fn connect(gateway: &GatewayHandle) -> Self {
        let (reader, writer) = split(gateway.open().unwrap());
        Self { lines: LineReader::new(reader, 1 << 20), writer, last: 0 }
    }

    async fn new(gateway: &GatewayHandle) -> Self {
        let mut this = Self::connect(gateway);
        let (answer, _) = this.ask("initialize", json!({ "protocolVersion": 1 })).await;
        assert_eq!(answer["result"]["agentInfo"]["title"], "Team shop");
        this
    }

    async fn send(&mut self, line: Value) {
        self.writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    async fn next(&mut self) -> Value {
        let line = timeout(MAX_SILENCE, self.lines.next_whole()).await.expect("a line comes");
        serde_json::from_slice(&line.unwrap().expect("the gateway is there")).unwrap()
    }

    /// The answer, and what came before it.
    async fn answer(&mut self, id: u64) -> (Value, Vec<Value>) {
        let mut before = Vec::new();
        loop {
            let line = self.next().await;
            if line["id"] == id && line.get("method").is_none() {
                return (line, before);
            }
            before.push(line);
        }
    }

    async fn ask(&mut self, method: &str, params: Value) -> (Value, Vec<Value>) {
        let id = self.begin(method, params).await;
        self.answer(id).await
    }

    async fn cancel_request(&mut self, id: u64) {
        let params = json!({ "requestId": id });
        self.send(json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": params }))
            .await;
    }

    async fn open(&mut self) -> String {
        let (answer, _) = self.ask("session/new", json!({ "cwd": "/w", "mcpServers": [] })).await;
        let commands = self.next().await;
        assert_eq!(commands["params"]["update"]["sessionUpdate"], "available_commands_update");
        assert_eq!(commands["params"]["update"]["availableCommands"][1]["name"], "select");
        answer["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    /// The texts that came, and the answer.
    async fn prompt(&mut self, session: &str, text: &str) -> (Value, Vec<String>) {
        let (answer, before) = self.ask("session/prompt", prompt(session, text)).await;
        assert!(before.iter().all(|line| line["params"]["sessionId"] == session), "{before:?}");
        (answer, texts(&before))
    }
}

fn prompt(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

fn texts(lines: &[Value]) -> Vec<String> {
    let texts =
        lines.iter().filter_map(|line| line["params"]["update"]["content"]["text"].as_str());
    texts.map(str::to_owned).collect()
}

fn gateway() -> (GatewayHandle, Arc<FakeTeam>) {
    let team = Arc::new(FakeTeam::default());
    (GatewayHandle::start(team.clone()), team)
}

#[tokio::test]
async fn a_session_begins_at_the_default_agent_and_is_transferred() {
    let (gateway, _) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    assert_ne!(session, "same");
    let (answer, said) = client.prompt(&session, "hello").await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(said, ["lead heard hello"]);

    let (answer, before) = client.ask("session/prompt", prompt(&session, "/select ui")).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    let kinds: Vec<_> =
        before.iter().map(|line| line["params"]["update"]["sessionUpdate"].clone()).collect();
    assert_eq!(
        kinds,
        [
            "current_mode_update",
            "config_option_update",
            "available_commands_update",
            "agent_message_chunk"
        ]
    );
    assert_eq!(before[0]["params"]["update"]["currentModeId"], "mode-of-ui");
    assert_eq!(client.prompt(&session, "hello").await.1, ["ui heard hello"]);

    // Back: it is loaded there, and what the agent repeats is not said again.
    assert_eq!(client.prompt(&session, "/select lead").await.1, ["This session is at `lead` now."]);
    assert_eq!(client.prompt(&session, "more").await.1, ["lead heard more"]);
}

#[tokio::test]
async fn a_target_that_fails_leaves_the_session_where_it_was() {
    let (gateway, _) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    for target in ["broken", "nobody"] {
        let (answer, said) = client.prompt(&session, &format!("/select {target}")).await;
        assert_eq!(answer["result"]["stopReason"], "end_turn");
        assert!(said[0].ends_with("The session stays at `lead`."), "{said:?}");
    }
    assert_eq!(client.prompt(&session, "hello").await.1, ["lead heard hello"]);
}

#[tokio::test]
async fn a_transfer_can_be_cancelled() {
    let (gateway, _) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    let id = client.begin("session/prompt", prompt(&session, "/select slow")).await;
    // These wait until the session is open again. What is cancelled does not come to the agent.
    let later = client.begin("session/prompt", prompt(&session, "hello")).await;
    let other = client.begin("session/set_mode", json!({ "sessionId": session })).await;
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } });
    client.send(cancel).await;
    let (answer, before) = client.answer(later).await;
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    assert!(before.is_empty(), "{before:?}");
    assert_eq!(client.answer(id).await.0["result"]["stopReason"], "cancelled");
    assert_eq!(client.answer(other).await.0["result"], json!({}));
    assert_eq!(client.prompt(&session, "more").await.1, ["lead heard more"]);

    let id = client.begin("session/prompt", prompt(&session, "/select slow")).await;
    client.cancel_request(id).await;
    assert_eq!(client.answer(id).await.0["result"]["stopReason"], "cancelled");
}

#[tokio::test]
async fn what_was_said_goes_along_where_the_client_asks_for_it() {
    let (gateway, _) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    client.prompt(&session, "/select ui --history").await;
    let heard = client.prompt(&session, "hello").await.1;
    assert_eq!(heard, ["ui heard what lead/same said|hello"]);
    assert_eq!(client.prompt(&session, "hello").await.1, ["ui heard hello"], "only once");
}

#[tokio::test]
async fn commands_call_the_methods_of_the_port() {
    let (gateway, team) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    let said = client.prompt(&session, "/agents").await.1;
    assert_eq!(said, ["Agents:\n- `lead`: ready, zone `src/**`"]);
    let said = client.prompt(&session, "/blocked").await.1;
    assert_eq!(
        said,
        ["These wait for `/allow ID` or `/deny ID`:\n- b1: `ui` wants to read `a.ts`"]
    );
    let said = client.prompt(&session, "/deny b1 not now").await.1;
    assert_eq!(said, ["b1: read `a.ts` of `ui` is denied."]);
    let asked = team.calls.lock().unwrap().pop().unwrap();
    let params = json!({ "id": "b1", "version": null, "decision": "deny", "message": "not now" });
    assert_eq!(asked, ("resolve_blocked", params));
    assert_eq!(client.prompt(&session, "/allow").await.1, ["Usage: /allow ID [once | session]"]);
    assert_eq!(client.prompt(&session, "/select").await.1, ["Usage: /select AGENT [--history]"]);
}

#[tokio::test]
async fn hostile_lines_are_answered_and_harm_nobody() {
    let (gateway, _) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    for (line, code) in [
        ("nonsense".to_owned(), -32700),
        ("[1]".to_owned(), -32600),
        (
            r#"{"id":9,"method":"session/prompt","params":{"sessionId":"x","sessionId":"y"}}"#
                .to_owned(),
            -32602,
        ),
        (r#"{"id":9,"method":"session/prompt","params":{"sessionId":7}}"#.to_owned(), -32602),
        (r#"{"id":9,"method":"session/prompt","params":{"sessionId":"same"}}"#.to_owned(), -32602),
        (r#"{"id":9,"method":"session/load","params":{"sessionId":"same"}}"#.to_owned(), -32002),
        (r#"{"id":9,"method":"session/new","params":["a"]}"#.to_owned(), -32602),
        (r#"{"id":9,"method":"initialize","params":{}}"#.to_owned(), -32600),
        (r#"{"id":9,"method":"session/list","params":{"cursor":7}}"#.to_owned(), -32602),
        (r#"{"id":9,"method":"session/fork","params":{"sessionId":"x"}}"#.to_owned(), -32601),
        (r#"{"id":9,"method":"nobody/knows","params":{}}"#.to_owned(), -32601),
    ] {
        client.writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        assert_eq!(client.next().await["error"]["code"], code, "{line}");
    }
    // Another client knows the id, and has not loaded it.
    let mut other = TestClient::new(&gateway).await;
    let (answer, _) = other.ask("session/prompt", prompt(&session, "hello")).await;
    assert_eq!(answer["error"]["code"], -32602);
    other.send(json!({ "jsonrpc": "2.0", "id": 1, "result": {} })).await;
    assert_eq!(client.prompt(&session, "hello").await.1, ["lead heard hello"]);
}

#[tokio::test]
async fn an_agent_that_ends_answers_with_an_error_and_the_session_moves_on() {
    let (gateway, _) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    let (answer, _) = client.prompt(&session, "die").await;
    assert_eq!(answer["error"]["message"], "`lead` has ended");
    let (answer, _) = client.prompt(&session, "hello").await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("/select"), "{answer}");
    client.prompt(&session, "/select ui").await;
    assert_eq!(client.prompt(&session, "hello").await.1, ["ui heard hello"]);
}
