//! The host against a scripted agent at the other end of a pipe.
#![allow(clippy::unwrap_used)]

mod attaching;
mod cancelling;
mod choosing;
mod ending;
mod opening;
mod prompting;
mod reopening;
mod requesting;
mod shells;
mod terminals;

use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use eisen_base::task;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, split,
};
use tokio::task::JoinHandle;

use super::*;
use crate::model::{Action, ToolsForm};
use crate::tests::eventually;
use crate::zone::{Permit, Zone, ZoneSpec};

/// The agent's end, moved by the test line by line.
struct Agent {
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
    permits: Arc<Permits>,
}

/// A host with its agent.
struct Scene {
    host: HostHandle,
    agent: Agent,
    cancel: CancellationToken,
    task: JoinHandle<()>,
    /// Spawned prompts that have yet to reach the host's mailbox.
    unsent: Arc<AtomicUsize>,
}

fn settings() -> HostSettings {
    HostSettings {
        cwd: PathBuf::from("/w"),
        permissions: PermissionPolicy::Allow,
        terminals: true,
        files: true,
        mcp_servers: Vec::new(),
        tools: None,
        auth_method: None,
        model: None,
        thinking: None,
        mode: None,
        asking_mode: None,
        model_there: None,
        compress: None,
        env: BTreeMap::new(),
        initialize_timeout: Duration::from_mins(1),
        answers: None,
    }
}

fn start(settings: HostSettings) -> Scene {
    let (near, far) = tokio::io::duplex(4096);
    let (near_reader, near_writer) = split(near);
    let (reader, writer) = split(far);
    let permits = Arc::new(Permits::default());
    let cancel = CancellationToken::new();
    let (host, run) = HostHandle::spawn_with(
        settings,
        Arc::new(shells::Shells),
        Arc::clone(&permits),
        near_reader,
        near_writer,
        cancel.clone(),
    );
    let task = task::spawn(run);
    let agent = Agent { reader: BufReader::new(reader), writer, permits };
    Scene { host, agent, cancel, task, unsent: Arc::default() }
}

/// A host with its agent, and the session `s` open. Its next request has the id 1.
async fn open(settings: HostSettings) -> Scene {
    let mut scene = start(settings);
    open_session(&mut scene, "s").await;
    scene
}

async fn open_session(scene: &mut Scene, id: &str) {
    let opening = task::spawn({
        let host = scene.host.clone();
        async move { host.new_session().await }
    });
    let request = scene.agent.expect("session/new").await;
    scene.agent.answer(&request, json!({ "sessionId": id })).await;
    assert_eq!(opening.await.unwrap().unwrap().as_str(), id);
}

impl Scene {
    fn prompt(&self, text: &str, urgency: Urgency) -> JoinHandle<Result<PromptOutcome, HostError>> {
        self.spawn_prompt(Content::Now(vec![json!({ "type": "text", "text": text })]), urgency)
    }

    fn spawn_prompt(
        &self,
        content: Content,
        urgency: Urgency,
    ) -> JoinHandle<Result<PromptOutcome, HostError>> {
        let (host, unsent) = (self.host.clone(), Arc::clone(&self.unsent));
        unsent.fetch_add(1, Ordering::Relaxed);
        task::spawn(async move {
            let mut prompt = pin!(host.prompt(None, content, urgency));
            // The mailbox has room, so that the first poll sends.
            let first = poll_fn(|context| Poll::Ready(prompt.as_mut().poll(context))).await;
            unsent.fetch_sub(1, Ordering::Relaxed);
            match first {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => prompt.await,
            }
        })
    }

    /// Waits until the host has seen the prompts that were spawned: its mailbox is in order.
    async fn settle(&self) {
        eventually("all prompts are sent", async || self.unsent.load(Ordering::Relaxed) == 0).await;
        let nowhere = Some(SessionId::new("nowhere"));
        assert!(self.host.cancel(nowhere).await.is_err());
    }
}

impl Agent {
    async fn recv(&mut self) -> Value {
        let mut line = String::new();
        self.reader.read_line(&mut line).await.unwrap();
        assert!(line.ends_with('\n'), "the host closed: {line:?}");
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0");
        message
    }

    async fn expect(&mut self, method: &str) -> Value {
        let message = self.recv().await;
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// Waits for a prompt; returns the request and its text.
    async fn prompted(&mut self) -> (Value, String) {
        let request = self.expect("session/prompt").await;
        let text = request["params"]["prompt"][0]["text"].as_str().unwrap().to_owned();
        (request, text)
    }

    async fn send(&mut self, message: Value) {
        self.send_raw(&message.to_string()).await;
    }

    async fn send_raw(&mut self, line: &str) {
        self.writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    async fn end_turn(&mut self, request: &Value) {
        self.answer(request, json!({ "stopReason": "end_turn" })).await;
    }

    async fn say(&mut self, session: &str, text: &str) {
        let content = json!({ "type": "text", "text": text });
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
        let params = json!({ "sessionId": session, "update": update });
        self.send(json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })).await;
    }

    /// Sends a request, and returns what it is answered with: `result` or `error`.
    async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.request(id, method, params).await;
        self.answered(id).await
    }

    async fn request(&mut self, id: u64, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
    }

    async fn answered(&mut self, id: u64) -> Value {
        let mut answer = self.recv().await;
        assert_eq!(answer["id"], id, "{answer}");
        let kind = if answer.get("result").is_some() { "result" } else { "error" };
        answer[kind].take()
    }

    /// As the gate does for a request that it lets pass.
    fn permit(&self, id: u64, path: &Path, action: Action) {
        self.permits.leave(&id.to_string(), vec![permit(path, action)]);
    }
}

/// A permit of a zone that allows everything.
fn permit(path: &Path, action: Action) -> Permit {
    let spec = ZoneSpec::new(PathBuf::from("/"), vec!["**".to_owned()], PathBuf::from("/nowhere"));
    Zone::compile(&spec).unwrap().check(path, action).unwrap()
}
