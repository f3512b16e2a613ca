//! A team of agents that repeat what they hear.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, DuplexStream, WriteHalf, duplex, split};
use tokio::sync::Semaphore;

use crate::gateway::GatewayTeam;
use crate::line::LineReader;

pub(super) struct FakeTeam {
    pub(super) calls: Mutex<Vec<(&'static str, Value)>>,
    /// Attachments that the gateway has ended.
    pub(super) ended: Arc<Semaphore>,
}

impl Default for FakeTeam {
    fn default() -> Self {
        Self { calls: Mutex::default(), ended: Arc::new(Semaphore::new(0)) }
    }
}

impl GatewayTeam for FakeTeam {
    fn name(&self) -> String {
        "shop".to_owned()
    }

    fn default_agent(&self) -> Option<String> {
        Some("lead".to_owned())
    }

    fn attach(&self, agent: String) -> BoxFuture<'_, Result<DuplexStream, String>> {
        Box::pin(async move {
            match &*agent {
                "nobody" => return Err("there is no agent `nobody`".to_owned()),
                "slow" => std::future::pending().await,
                _ => {}
            }
            let (near, far) = duplex(64 * 1024);
            let ended = self.ended.clone();
            tokio::spawn(async move {
                play(agent, far).await;
                ended.add_permits(1);
            });
            Ok(near)
        })
    }

    fn history(&self, agent: String, session: String) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move { Ok(format!("what {agent}/{session} said")) })
    }

    fn call(&self, method: &'static str, params: Value) -> BoxFuture<'_, Result<Value, String>> {
        self.calls.lock().unwrap().push((method, params));
        Box::pin(async move {
            let access = json!({ "id": "b1", "agent_id": "ui", "action": "read", "path": "a.ts", "status": "denied" });
            Ok(match method {
                "list_agents" => {
                    json!([{ "agent_id": "lead", "state": "ready", "allowed": ["src/**"] }])
                }
                "list_blocked" => json!([access]),
                _ => access,
            })
        })
    }
}

/// Plays an agent on a stream.
async fn play(agent: String, stream: DuplexStream) {
    let (reader, mut writer) = split(stream);
    let mut lines = LineReader::new(reader, 1 << 20);
    let mut waiting = None;
    while let Ok(Some(line)) = lines.next_whole().await {
        let line: Value = serde_json::from_slice(&line).unwrap();
        let result = match line["method"].as_str() {
            Some("initialize") => {
                json!({ "protocolVersion": 1, "agentCapabilities": { "loadSession": true } })
            }
            Some("session/new") if agent == "broken" => {
                let error = json!({ "code": -32603, "message": "no such model" });
                let answer = json!({ "jsonrpc": "2.0", "id": line["id"], "error": error });
                send(&mut writer, &answer).await;
                continue;
            }
            Some("session/new") => {
                let modes =
                    json!({ "currentModeId": format!("mode-of-{agent}"), "availableModes": [] });
                json!({ "sessionId": "same", "modes": modes })
            }
            Some("session/load") if agent == "mute" => continue,
            Some("session/load") if agent == "forgetful" => {
                let error = json!({ "code": -32002, "message": "no such session" });
                let answer = json!({ "jsonrpc": "2.0", "id": line["id"], "error": error });
                send(&mut writer, &answer).await;
                continue;
            }
            Some("session/set_mode") => json!({}),
            Some("session/set_config_option") => json!({ "configOptions": [{ "id": "effort" }] }),
            Some("session/load") => {
                say(&mut writer, "replayed").await;
                json!({})
            }
            Some("session/prompt") => {
                assert_eq!(line["params"]["sessionId"], "same");
                let blocks = line["params"]["prompt"].as_array().unwrap().iter();
                let text: Vec<_> = blocks.filter_map(|block| block["text"].as_str()).collect();
                match &*text.join("|") {
                    "die" => return,
                    "ask" => {
                        waiting = Some(line["id"].clone());
                        let params = json!({ "sessionId": "same", "options": [] });
                        let method = "session/request_permission";
                        let ask = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
                        send(&mut writer, &ask).await;
                        continue;
                    }
                    text => say(&mut writer, &format!("{agent} heard {text}")).await,
                }
                json!({ "stopReason": "end_turn" })
            }
            None => {
                assert_eq!(line["id"], 7);
                let option = line["result"]["outcome"]["optionId"].as_str().unwrap();
                say(&mut writer, &format!("decided {option}")).await;
                let id = waiting.take().expect("one decision");
                let result = json!({ "stopReason": "end_turn" });
                let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
                send(&mut writer, &answer).await;
                continue;
            }
            Some(_) if line["id"].is_null() => continue,
            Some(_) => {
                let error = json!({ "code": -32601, "message": "Method not found" });
                let answer = json!({ "jsonrpc": "2.0", "id": line["id"], "error": error });
                send(&mut writer, &answer).await;
                continue;
            }
        };
        send(&mut writer, &json!({ "jsonrpc": "2.0", "id": line["id"], "result": result })).await;
    }
}

async fn say(writer: &mut WriteHalf<DuplexStream>, text: &str) {
    let content = json!({ "type": "text", "text": text });
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
    let params = json!({ "sessionId": "same", "update": update });
    send(writer, &json!({ "jsonrpc": "2.0", "method": "session/update", "params": params })).await;
}

async fn send(writer: &mut WriteHalf<DuplexStream>, line: &Value) {
    // The gateway may be gone.
    let _ = writer.write_all(format!("{line}\n").as_bytes()).await;
}
