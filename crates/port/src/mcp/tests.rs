//! The tools by what a client sees of them, and the document that lists them.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::future::pending;
use std::time::Duration;

use eisen_base::task;
use expect_test::{Expect, expect, expect_file};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio_util::sync::CancellationToken;

use super::{Operations, ToolError, ToolUses, serve};
use crate::model::{AgentId, TEAM_SERVER};
use crate::tests::eventually;
use crate::wire::{self, Audience, TeamTool, tools, tools_of};

/// Repeats the call; a list is long, and the agent `slow` never answers.
struct Echo;

impl Operations for Echo {
    fn call(
        &self,
        method: &'static str,
        params: Map<String, Value>,
    ) -> BoxFuture<'_, Result<Value, ToolError>> {
        Box::pin(async move {
            match (method, params.get("agent").and_then(Value::as_str)) {
                ("list_blocked", _) => Ok((0..60).map(|n| json!({ "id": n })).collect()),
                (_, Some("slow")) => pending().await,
                (_, Some("big")) => Ok(json!({ "text": "x".repeat(50_000) })),
                (_, Some("nobody")) => {
                    Err(ToolError { code: 404, message: "there is no agent `nobody`".to_owned() })
                }
                _ => Ok(json!({ "method": method, "params": params })),
            }
        })
    }
}

/// A client that speaks MCP by hand.
struct Client {
    stream: BufReader<DuplexStream>,
    uses: ToolUses,
}

impl Client {
    async fn open(audience: Audience, version: &str) -> Self {
        let (near, far) = tokio::io::duplex(1024);
        let uses = ToolUses::default();
        let connection = uses.connect(Some(AgentId::new("ui")));
        let ends = tokio::io::split(far);
        task::spawn(serve(ends, audience, Echo, connection, CancellationToken::new()));
        let mut client = Self { stream: BufReader::new(near), uses };
        let params = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "0" },
        });
        let answer = client.ask("initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], version);
        assert_eq!(answer["result"]["serverInfo"]["name"], "eisen-core");
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        client
    }

    async fn send(&mut self, line: &str) {
        self.stream.get_mut().write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn line(&mut self) -> Value {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.send(&request.to_string()).await;
        self.line().await
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await["result"]
            .take()
    }

    fn used(&self) -> super::ToolUse {
        self.uses.of(&AgentId::new("ui"))
    }
}

#[tokio::test]
async fn old_and_current_clients_list_and_call_tools() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::open(Audience::Lead, version).await;
        let listed = client.ask("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, tools_of(Audience::Lead).map(|tool| tool.name).collect::<Vec<_>>());
        assert!(client.used().listed && client.used().calls == 0);
        let result = client.call("agent_status", json!({ "agent": "ui" })).await;
        let wanted = json!({ "method": "agent_status", "params": { "agent": "ui" } });
        assert_eq!(result["structuredContent"], wanted, "{version}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), wanted);
        assert_eq!(client.used().calls, 1);
    }
}

#[tokio::test]
async fn half_an_emoji_is_no_reason_to_refuse_a_call() {
    let mut client = Client::open(Audience::Member, "2025-06-18").await;
    client
        .send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"report","arguments":{"text":"half \ud83d"}}}"#)
        .await;
    let answer = client.line().await;
    let text = &answer["result"]["structuredContent"]["params"]["text"];
    assert_eq!(text, "half \u{fffd}", "{answer}");
}

#[tokio::test]
async fn a_refused_call_says_what_to_do() {
    let mut client = Client::open(Audience::Lead, "2025-06-18").await;
    let mut check = async |tool: &str, arguments: Value, expect: Expect| {
        let result = client.call(tool, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        expect.assert_eq(result["content"][0]["text"].as_str().unwrap());
    };
    check(
        "resolve_blocked",
        json!({ "id": "b1" }),
        expect!["`decision` is missing: give one of `allow`, `deny`, `answer` (code 400)"],
    )
    .await;
    check(
        "resolve_blocked",
        json!({ "id": "b1", "decision": "yes" }),
        expect!["`decision` must be one of `allow`, `deny`, `answer` (code 400)"],
    )
    .await;
    check("resolve_blocked", json!({ "id": "b1", "decision": "allow", "even_denied": true }), expect!["there is no argument `even_denied`: there are `id`, `decision`, `scope`, `ttl_s`, `message`, `content`, `match` (code 400)"]).await;
    check(
        "agent_status",
        json!({ "agent": "nobody" }),
        expect!["there is no agent `nobody` (code 404)"],
    )
    .await;
    check(
        "agent_status",
        json!({ "agent": "big" }),
        expect![
            "the result has 50011 bytes, and clients take 49152: ask for less of it (code 400)"
        ],
    )
    .await;
    check(
        "list_blocked",
        json!({ "page": 4 }),
        expect!["there is no page 4: the list has 3 (code 404)"],
    )
    .await;
    check(
        "list_blocked",
        json!({ "page": "2" }),
        expect!["`page` must be a whole number from 1 to 1000000 (code 400)"],
    )
    .await;
    let mut member = Client::open(Audience::Member, "2025-06-18").await;
    let refused = member.call("resolve_blocked", json!({})).await;
    assert!(refused["content"][0]["text"].as_str().unwrap().starts_with("there is no tool"));
}

#[tokio::test]
async fn a_long_list_comes_in_pages() {
    let mut client = Client::open(Audience::Lead, "2025-06-18").await;
    let last = client.call("list_blocked", json!({ "page": 3, "status": null })).await;
    let last = &last["structuredContent"];
    assert_eq!(last["blocked"][0]["id"], 50);
    assert_eq!(last["blocked"].as_array().unwrap().len(), 10);
    assert_eq!((&last["page"], &last["pages"], &last["total"]), (&json!(3), &json!(3), &json!(60)));
}

#[tokio::test]
async fn lines_that_are_no_messages_are_answered() {
    let mut client = Client::open(Audience::Lead, "2025-06-18").await;
    for line in ["{", "[]", "7", r#"{"jsonrpc":"2.0","id":3,"method":7}"#] {
        client.send(line).await;
        let answer = client.line().await;
        assert_eq!(answer["error"]["code"], -32600, "{line}: {answer}");
    }
    let long = json!({ "jsonrpc": "2.0", "id": "x".repeat(2000), "method": "ping" });
    client.send(&long.to_string()).await;
    let answer = client.line().await;
    assert_eq!(answer["error"]["message"], "Invalid Request: an id may have at most 1024 bytes");
    let writing = format!("\"{}\"", "x".repeat(5 << 20));
    let (mut reader, mut writer) = tokio::io::split(client.stream.into_inner());
    let sent = async { writer.write_all(format!("{writing}\n").as_bytes()).await.unwrap() };
    let answered = async {
        let mut line = String::new();
        BufReader::new(&mut reader).read_line(&mut line).await.unwrap();
        assert!(line.contains("a line may have at most 4194304 bytes"), "{line}");
    };
    tokio::join!(sent, answered);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_long_reports_progress_and_can_be_cancelled() {
    let mut client = Client::open(Audience::Lead, "2025-06-18").await;
    client
        .send(
            r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"agent_status",
            "arguments":{"agent":"slow"},"_meta":{"progressToken":"p"}}}"#
                .replace('\n', "")
                .as_str(),
        )
        .await;
    for seconds in [5.0, 10.0] {
        let progress = client.line().await;
        assert_eq!(progress["method"], "notifications/progress");
        assert_eq!(progress["params"]["progressToken"], "p");
        assert_eq!(progress["params"]["progress"], seconds);
    }
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#)
        .await;
    // Nothing more is said of it, however long it takes.
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(client.ask("ping", json!({})).await["id"], 1);
    assert_eq!(client.ask("ping", json!({})).await["id"], 1);
}

#[tokio::test]
async fn so_many_calls_at_once_and_no_more() {
    let mut client = Client::open(Audience::Lead, "2025-06-18").await;
    for id in 10..42 {
        let params = json!({ "name": "agent_status", "arguments": { "agent": "slow" } });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        client.send(&call.to_string()).await;
    }
    // Requests run side by side: the last of the 32 may not have begun.
    eventually("32 calls", async || client.used().calls == 32).await;
    let refused = client.call("agent_status", json!({ "agent": "ui" })).await;
    expect!["32 calls of yours are under way: wait until one has ended (code 409)"]
        .assert_eq(refused["content"][0]["text"].as_str().unwrap());
}

#[test]
fn names_fit_clients_and_schemas_are_flat() {
    for tool in tools() {
        // Some clients write `mcp__SERVER__TOOL`, within 64 characters.
        assert!(format!("mcp__{TEAM_SERVER}__{}", tool.name).len() <= 64);
        assert!(tool.name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", tool.name);
        assert!(!tool.description.contains("  ") && tool.description.ends_with('.'));
        let schema = wire::schema(&tool.parameters);
        for (name, property) in schema["properties"].as_object().unwrap() {
            assert_ne!(property["type"], "object", "{} {name}", tool.name);
        }
    }
}

const BEGIN: &str =
    "<!-- Printed from crates/wire/src/wire/tools by a test; UPDATE_EXPECT=1 writes it anew. -->\n";
const END: &str = "<!-- Until here. -->\n";

#[test]
fn the_document_lists_the_tools() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tools.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (before, rest) = document.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let wanted = format!("{before}{BEGIN}{}{END}{after}", printed());
    expect_file!["../../../../docs/tools.md"].assert_eq(&wanted);
}

fn printed() -> String {
    let mut text = String::new();
    for tool in tools() {
        let audience = match tool.audience {
            [Audience::Lead] => "For the orchestrator",
            [Audience::Member] => "For members",
            _ => "For the orchestrator and members",
        };
        let TeamTool { name, method, description, .. } = tool;
        let method = method.name;
        writeln!(text, "\n### `{name}`\n\n{description}\n").unwrap();
        let list = tool.list.map(|list| format!(", a page of which is `{list}`"));
        let list = list.unwrap_or_default();
        writeln!(text, "{audience}. Its result is that of [`{method}`](wire.md){list}.").unwrap();
        text.push_str(if tool.parameters.is_empty() { "" } else { "\n" });
        for it in &tool.parameters {
            let optional = if it.is_required { "" } else { ", optional" };
            let (wanted, about) = (it.shape.wanted(), &it.description);
            writeln!(text, "- `{}` ({wanted}{optional}): {about}", it.name).unwrap();
        }
    }
    text + "\n"
}
