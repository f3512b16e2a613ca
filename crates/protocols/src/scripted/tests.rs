//! A fake client over in-memory pipes. It also parses each message of the agent with the protocol's
//! own types.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1 as acp;
use eisen_base::task;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;

use super::{PlayEnd, Script, ScriptError, play};

mod demo;
mod protocol;
mod scripts;
mod steps;

/// The client's end of an agent that plays a script.
struct Client {
    to_agent: Option<DuplexStream>,
    from_agent: Lines<BufReader<DuplexStream>>,
    playing: JoinHandle<Result<PlayEnd, ScriptError>>,
    /// The session that `turn` prompts.
    session: String,
    /// The files by path: `fs/read_text_file` answers with them, and `fs/write_text_file` writes them.
    files: BTreeMap<String, String>,
    /// The option that permissions are answered with; None: cancelled.
    permission: Option<&'static str>,
    /// The exit status of terminals.
    exit: Value,
}

impl Client {
    fn new(script: &str) -> Self {
        let script = Script::parse(script).unwrap();
        let (to_agent, reader) = tokio::io::duplex(1 << 16);
        let (writer, from_agent) = tokio::io::duplex(1 << 16);
        Self {
            to_agent: Some(to_agent),
            from_agent: BufReader::new(from_agent).lines(),
            playing: task::spawn(play(script, reader, writer)),
            session: "test-s1".to_owned(),
            files: BTreeMap::from([("/w/a.rs".to_owned(), "fn a() {}\n".to_owned())]),
            permission: Some("allow_once"),
            exit: json!({"exitCode": 0, "signal": null}),
        }
    }

    /// With a session `test-s1` in `/w`, for a script whose agent is named `test`.
    async fn in_session(steps: &str) -> Self {
        let mut client =
            Self::new(&format!("agent.name = \"test\"\n[[on]]\nsteps = [\n{steps}\n]\n"));
        client.ask(0, "session/new", json!({"cwd": "/w", "mcpServers": []})).await;
        client
    }

    async fn send(&mut self, message: &Value) {
        self.send_raw(&message.to_string()).await;
    }

    async fn send_raw(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.to_agent.as_mut().unwrap().write_all(line.as_bytes()).await.unwrap();
    }

    async fn request(&mut self, id: u64, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    async fn prompt(&mut self, id: u64, session: &str, text: &str) {
        let prompt = json!([{"type": "text", "text": text}]);
        self.request(id, "session/prompt", json!({"sessionId": session, "prompt": prompt})).await;
    }

    async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    async fn next_raw(&mut self) -> Option<String> {
        self.from_agent.next_line().await.unwrap()
    }

    async fn next(&mut self) -> Value {
        let line = self.next_raw().await.unwrap();
        let message = serde_json::from_str(&line).unwrap();
        conforms(&message);
        message
    }

    /// Sends a request and returns its answer, which comes next.
    async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.request(id, method, params).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], id, "{answer}");
        if answer["error"].is_null() { answer["result"].clone() } else { answer["error"].clone() }
    }

    /// Prompts, answers what the agent asks, and returns all it sends until the turn ends, a line
    /// a message.
    async fn turn(&mut self, text: &str) -> String {
        let session = self.session.clone();
        self.prompt(1, &session, text).await;
        let mut transcript = String::new();
        loop {
            let message = self.next().await;
            transcript += &shown(&message, &session);
            transcript.push('\n');
            if message.get("method").is_none() {
                return transcript;
            }
            if let Some(id) = message.get("id") {
                let answer = self.answer(&message);
                let (key, value) = answer.map_or_else(|e| ("error", e), |v| ("result", v));
                self.send(&json!({"jsonrpc": "2.0", "id": id, key: value})).await;
            }
        }
    }

    fn answer(&mut self, request: &Value) -> Result<Value, Value> {
        let params = &request["params"];
        let path = params["path"].as_str().unwrap_or_default().to_owned();
        match request["method"].as_str().unwrap() {
            "fs/read_text_file" => match self.files.get(&path) {
                Some(content) => Ok(json!({"content": content})),
                None => Err(json!({"code": -32001, "message": format!("no {path}"), "data": {}})),
            },
            "fs/write_text_file" => {
                self.files.insert(path, params["content"].as_str().unwrap().to_owned());
                Ok(Value::Null)
            }
            "terminal/create" => Ok(json!({"terminalId": "term-1"})),
            "terminal/wait_for_exit" => Ok(self.exit.clone()),
            "terminal/output" => Ok(json!({"output": "a.rs:1\n", "truncated": false})),
            "terminal/release" => Ok(json!({})),
            "session/request_permission" => Ok(match self.permission {
                Some(option) => json!({"outcome": {"outcome": "selected", "optionId": option}}),
                None => json!({"outcome": {"outcome": "cancelled"}}),
            }),
            _ => Err(json!({"code": -32601, "message": "unknown"})),
        }
    }

    /// Closes the agent's input and returns how its play ended.
    async fn hang_up(mut self) -> PlayEnd {
        self.to_agent = None;
        self.playing.await.unwrap().unwrap()
    }
}

/// A message in short: its envelope says what it is.
fn shown(message: &Value, session: &str) -> String {
    match message["method"].as_str() {
        Some("session/update") => message["params"]["update"].to_string(),
        Some(method) => {
            let mut params = message["params"].clone();
            assert_eq!(params.as_object_mut().unwrap().remove("sessionId"), Some(session.into()));
            format!("{method} {params}")
        }
        None => format!("= {}", message.get("result").unwrap_or(&message["error"])),
    }
}

/// Fails unless the protocol's own types read the message.
fn conforms(message: &Value) {
    fn is<T: DeserializeOwned>(value: &Value) {
        if let Err(error) = serde_json::from_value::<T>(value.clone()) {
            panic!("{error} in {value}");
        }
    }
    assert_eq!(message["jsonrpc"], "2.0");
    let params = &message["params"];
    match message["method"].as_str() {
        Some("session/update") => is::<acp::SessionNotification>(params),
        Some("session/request_permission") => is::<acp::RequestPermissionRequest>(params),
        Some("fs/read_text_file") => is::<acp::ReadTextFileRequest>(params),
        Some("fs/write_text_file") => is::<acp::WriteTextFileRequest>(params),
        Some("terminal/create") => is::<acp::CreateTerminalRequest>(params),
        Some("terminal/wait_for_exit") => is::<acp::WaitForTerminalExitRequest>(params),
        Some("terminal/output") => is::<acp::TerminalOutputRequest>(params),
        Some("terminal/release") => is::<acp::ReleaseTerminalRequest>(params),
        _ => {}
    }
}
