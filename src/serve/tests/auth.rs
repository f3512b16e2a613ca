//! Who may do what.

use std::time::Duration;

use serde_json::json;

use super::fake::Fake;
use super::{Limits, Port};

#[tokio::test]
async fn control_needs_a_token_and_reading_does_not() {
    let port = Port::open().await;
    let mut client = port.join().await;
    assert_eq!(client.ask("list_agents", json!({})).await["result"][1]["agent_id"], "api");
    for method in [
        "prompt",
        "cancel",
        "new_session",
        "resolve_blocked",
        "start_agent",
        "stop_agent",
        "restart_agent",
    ] {
        let error = client.ask(method, json!({ "agent_id": "ui" })).await["error"].clone();
        assert_eq!(error["code"], 401, "{method}");
    }
    assert!(port.fake.asked.lock().unwrap().is_empty());
    client.show(port.tokens.owner()).await;
    assert_eq!(
        client.ask("cancel", json!({ "agent_id": "ui" })).await["result"],
        json!({ "turns": 1, "prompts": 2 })
    );
}

#[tokio::test]
async fn three_wrong_tokens_end_the_connection() {
    let port = Port::open().await;
    let mut client = port.join().await;
    let right = port.tokens.owner().to_owned();
    for token in ["", "wrong", &right[..63]] {
        client.say(&json!({ "type": "auth", "token": token })).await;
        let refused = client.next().await;
        let error = json!({ "code": 401, "message": "wrong token" });
        assert_eq!(refused, json!({ "type": "rpc_error", "id": null, "error": error }));
    }
    client.assert_ended().await;
}

#[tokio::test]
async fn the_orchestrator_is_known_by_its_token() {
    let port = Port::open().await;
    let prompt = json!({ "agent_id": "ui", "text": "x" });
    let mut owner = port.steer().await;
    assert_eq!(owner.ask("prompt", prompt.clone()).await["result"]["blocked"], json!(null));
    let mut orchestrator = port.join().await;
    orchestrator.show(port.tokens.orchestrator()).await;
    assert_eq!(orchestrator.ask("prompt", prompt).await["result"]["blocked"], json!(["b1"]));
    let asked = port.fake.asked.lock().unwrap().join("\n");
    assert!(asked.contains("by_orchestrator: false") && asked.contains("by_orchestrator: true"));
}

#[tokio::test]
async fn a_port_open_to_others_says_nothing_before_a_token() {
    let port = Port::with(Fake::new(64), Limits::default(), "0.0.0.0:0").await;
    let mut client = port.connect().await;
    client.say(&json!({ "type": "rpc", "id": "a", "method": "list_agents" })).await;
    client.say(&json!({ "type": "request_snapshot" })).await;
    client.say(&json!({ "type": "from_the_future" })).await;
    client.say(&json!({ "type": "auth", "token": port.tokens.owner() })).await;
    port.fake.touch(0, "a.ts");

    let refused = client.next().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("a"), &json!(401)));
    let refused = client.next().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(null), &json!(401)));
    assert_eq!(client.next().await["result"], json!({ "authenticated": true }));
    let first = client.next().await;
    assert_eq!((&first["type"], &first["session_id"]), (&json!("snapshot"), &json!("s-lead")));
    client.until_joined().await;

    // A second time it changes who calls, and joins nothing.
    client.show(port.tokens.orchestrator()).await;
    assert_eq!(client.ask("list_agents", json!({})).await["type"], "rpc_result");
}

#[tokio::test(start_paused = true)]
async fn a_port_open_to_others_does_not_wait_forever_for_a_token() {
    let port = Port::with(Fake::new(64), Limits::default(), "0.0.0.0:0").await;
    let mut client = port.connect().await;
    let start = tokio::time::Instant::now();
    assert_eq!(client.next().await["error"]["code"], 401);
    client.assert_ended().await;
    assert_eq!(start.elapsed().as_secs(), Duration::from_secs(10).as_secs());
}
