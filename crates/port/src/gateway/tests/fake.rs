//! A team of agents that repeat what they hear.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use eisen_base::task;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, DuplexStream, WriteHalf, duplex, split};
use tokio::sync::Semaphore;

use crate::gateway::GatewayTeam;
use crate::line::LineReader;

pub(super) struct FakeTeam {
    pub(super) calls: Mutex<Vec<(&'static str, Value)>>,
    /// Attachments that the gateway has ended, and those to `slow` that it gave up.
    pub(super) ended: Arc<Semaphore>,
    /// Attachments that `gated` still takes.
    pub(super) gate: Semaphore,
    /// Where sessions begin.
    pub(super) default: &'static str,
    /// The next look at the team's name panics.
    pub(super) breaks: AtomicBool,
}

impl Default for FakeTeam {
    fn default() -> Self {
        Self {
            calls: Mutex::default(),
            ended: Arc::new(Semaphore::new(0)),
            gate: Semaphore::new(1),
            default: "lead",
            breaks: AtomicBool::new(false),
        }
    }
}

/// Counts when it is dropped.
struct Ending(Arc<Semaphore>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

impl GatewayTeam for FakeTeam {
    fn name(&self) -> String {
        assert!(!self.breaks.swap(false, Ordering::Relaxed), "as the test wants it");
        "shop".to_owned()
    }

    fn default_agent(&self) -> Option<String> {
        Some(self.default.to_owned())
    }

    fn attach(&self, agent: String) -> BoxFuture<'_, Result<DuplexStream, String>> {
        Box::pin(async move {
            let ending = Ending(self.ended.clone());
            match &*agent {
                "nobody" => return Err("there is no agent `nobody`".to_owned()),
                "slow" => std::future::pending().await,
                "gated" => self.gate.acquire().await.unwrap().forget(),
                _ => {}
            }
            let (near, far) = duplex(64 * 1024);
            task::spawn(async move {
                play(agent, far).await;
                drop(ending);
            });
            Ok(near)
        })
    }

    fn history(&self, agent: String, session: String) -> BoxFuture<'_, Result<String, String>> {
        let said = format!("what {agent}/{session} said");
        Box::pin(async move { Ok(if agent == "silent" { String::new() } else { said }) })
    }

    fn call(&self, method: &'static str, params: Value) -> BoxFuture<'_, Result<Value, String>> {
        self.calls.lock().unwrap().push((method, params));
        Box::pin(async move {
            let access = json!({ "id": "b1", "agent_id": "ui", "session_id": "s", "action": "read",
                "path": "a.ts", "status": "denied" });
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
    let (mut waiting, mut late) = (None, None);
    while let Ok(Some(line)) = lines.next_whole().await {
        let line: Value = serde_json::from_slice(&line).unwrap();
        if let Some((code, why)) = refusal(&agent, &line) {
            refuse(&mut writer, &line["id"], code, why).await;
            continue;
        }
        let result = match line["method"].as_str() {
            Some("initialize") => {
                json!({ "protocolVersion": 1, "agentCapabilities": offers(&agent) })
            }
            Some("session/resume") if agent == "resumer" => json!({}),
            Some("authenticate") if line["params"]["methodId"] == "die" => return,
            Some("authenticate") if line["params"]["methodId"] == "hang" => {
                std::future::pending().await
            }
            Some("session/new") => {
                let modes =
                    json!({ "currentModeId": format!("mode-of-{agent}"), "availableModes": [] });
                json!({ "sessionId": "same", "modes": modes })
            }
            Some("session/load") if agent == "mute" => continue,
            Some("session/set_mode") if agent == "late" => {
                late = Some(line["id"].clone());
                continue;
            }
            Some("authenticate" | "session/delete" | "session/set_mode") => json!({}),
            Some("session/set_config_option") => json!({ "configOptions": [{ "id": "effort" }] }),
            Some("session/load") => {
                say(&mut writer, "replayed").await;
                json!({})
            }
            Some("session/prompt") => {
                match &*text_of(&line) {
                    "die" => return,
                    "ask" => {
                        waiting = Some(line["id"].clone());
                        let params = json!({ "sessionId": "same", "options": [] });
                        let method = "session/request_permission";
                        let ask = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
                        send(&mut writer, &ask).await;
                        continue;
                    }
                    "complete" => {
                        let params = json!({ "elicitationId": agent });
                        let method = "elicitation/complete";
                        let line = json!({ "jsonrpc": "2.0", "method": method, "params": params });
                        send(&mut writer, &line).await;
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
                answer(&mut writer, &id, json!({ "stopReason": "end_turn" })).await;
                continue;
            }
            Some(_) if line["id"].is_null() => continue,
            Some(_) => {
                refuse(&mut writer, &line["id"], -32601, "Method not found").await;
                continue;
            }
        };
        answer(&mut writer, &line["id"], result).await;
    }
    if let Some(id) = late.take() {
        answer(&mut writer, &id, json!({})).await;
    }
    // Nobody is to hear that.
    say(&mut writer, &format!("{agent} is late")).await;
}

fn offers(agent: &str) -> Value {
    match agent {
        "resumer" => json!({ "sessionCapabilities": { "resume": {} } }),
        _ => json!({ "loadSession": true }),
    }
}

/// The error with which an agent answers a line.
fn refusal(agent: &str, line: &Value) -> Option<(i32, &'static str)> {
    match (agent, line["method"].as_str()?) {
        ("broken", "session/new") => Some((-32603, "no such model")),
        ("forgetful", "session/load") => Some((-32002, "no such session")),
        ("busy", "session/load") => Some((-32602, "in use by the team")),
        ("ui", "session/delete") => Some((-32601, "Method not found")),
        (_, "session/prompt") if text_of(line).ends_with("fail") => Some((-32603, "overloaded")),
        _ => None,
    }
}

/// The texts of a prompt.
fn text_of(line: &Value) -> String {
    assert_eq!(line["params"]["sessionId"], "same");
    let blocks = line["params"]["prompt"].as_array().unwrap().iter();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("|")
}

async fn answer(writer: &mut WriteHalf<DuplexStream>, id: &Value, result: Value) {
    send(writer, &json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
}

async fn refuse(writer: &mut WriteHalf<DuplexStream>, id: &Value, code: i32, why: &str) {
    let error = json!({ "code": code, "message": why });
    send(writer, &json!({ "jsonrpc": "2.0", "id": id, "error": error })).await;
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
