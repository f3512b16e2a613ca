#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;

fn with_tools(hint: Option<&str>) -> HostSettings {
    let tools = TeamTools {
        program: json!({ "name": "eisen", "command": "p" }),
        http: Some(json!({ "name": "eisen", "type": "http" })),
        first: Some(ToolsForm::Http),
        hint: hint.map(str::to_owned),
        shown: None,
    };
    HostSettings { tools: Some(tools), ..settings() }
}

async fn fail(agent: &mut Agent, request: &Value, message: &str) {
    let error = json!({ "code": -32603, "message": "Internal error", "data": message });
    agent.send(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
}

/// Answers a `session/new`; returns the MCP servers in it.
async fn reopened(agent: &mut Agent) -> Value {
    let request = agent.expect("session/new").await;
    agent.answer(&request, json!({ "sessionId": "anew" })).await;
    request["params"]["mcpServers"].clone()
}

#[tokio::test]
async fn a_first_prompt_that_fails_for_the_tools_is_sent_again_with_their_next_forms() {
    let mut scene = open(with_tools(None)).await;
    let first = scene.prompt("go", Urgency::Normal);
    scene.settle().await;
    let second = scene.prompt("then", Urgency::Normal);
    scene.settle().await;
    for form in [
        json!([{ "name": "eisen", "command": "p" }]),
        json!([{ "name": "eisen", "command": "p", "type": "stdio" }]),
        json!([]),
    ] {
        let (request, text) = scene.agent.prompted().await;
        assert_eq!(text, "go");
        // Some say so, too.
        scene.agent.say("s", "6 validation errors for MCPConfig").await;
        fail(&mut scene.agent, &request, "6 validation errors for MCPConfig").await;
        assert_eq!(reopened(&mut scene.agent).await, form);
    }
    let (request, text) = scene.agent.prompted().await;
    assert_eq!(text, "go");
    scene.agent.end_turn(&request).await;
    assert_eq!(first.await.unwrap().unwrap().stop_reason, "end_turn");
    // A later one that fails is not the first.
    let (request, text) = scene.agent.prompted().await;
    assert_eq!(text, "then");
    fail(&mut scene.agent, &request, "an MCP server has ended").await;
    let error = second.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("an MCP server has ended"), "{error}");
}

#[tokio::test]
async fn a_first_prompt_that_fails_otherwise_or_after_some_work_has_failed() {
    let mut scene = open(with_tools(None)).await;
    for (said, message) in [(None, "no such model"), (Some("I begin."), "the MCP tool failed")] {
        let prompt = scene.prompt("go", Urgency::Normal);
        let (request, _) = scene.agent.prompted().await;
        if let Some(said) = said {
            scene.agent.say("s", said).await;
        }
        fail(&mut scene.agent, &request, message).await;
        let error = prompt.await.unwrap().unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
    // Where the agent opens no session any more, the first error is the reason.
    let prompt = scene.prompt("go", Urgency::Normal);
    let (request, _) = scene.agent.prompted().await;
    fail(&mut scene.agent, &request, "bad mcpServers").await;
    let request = scene.agent.expect("session/new").await;
    fail(&mut scene.agent, &request, "full").await;
    let error = prompt.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("bad mcpServers"), "{error}");
}

#[tokio::test]
async fn the_hint_at_the_tools_stands_before_the_first_prompt_of_a_session() {
    let mut scene = open(with_tools(Some("hint"))).await;
    for (text, expected, ends_well) in [
        ("/compact", json!(["/compact"]), true),
        ("one", json!(["hint", "one"]), false),
        ("two", json!(["hint", "two"]), true),
        ("three", json!(["three"]), true),
    ] {
        let prompt = scene.prompt(text, Urgency::Normal);
        let request = scene.agent.expect("session/prompt").await;
        let blocks = request["params"]["prompt"].as_array().unwrap();
        let texts: Vec<_> = blocks.iter().map(|block| block["text"].clone()).collect();
        assert_eq!(Value::from(texts), expected);
        if ends_well {
            scene.agent.end_turn(&request).await;
        } else {
            fail(&mut scene.agent, &request, "busy").await;
        }
        assert_eq!(prompt.await.unwrap().is_ok(), ends_well);
    }
}
