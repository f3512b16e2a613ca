//! Tests of authentication and rights.

use std::time::Duration;

use serde_json::{Value, json};

use super::fake::Fake;
use super::{Client, Limits, Port};
use crate::model::{AgentId, SessionId, SessionKey, SessionMode};
use crate::serve::{Sources as _, token};
use crate::session::{RegistryRequest, Upsert};

#[tokio::test]
async fn control_needs_a_token_and_reading_does_not() {
    let port = Port::open().await;
    let mut client = port.join().await;
    assert_eq!(client.ask("list_agents", json!({})).await["result"][1]["agent_id"], "api");
    for method in [
        "prompt",
        "cancel",
        "new_session",
        "show_blocked",
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
    let mut orchestrator = port.act("lead").await;
    assert_eq!(orchestrator.ask("prompt", prompt).await["result"]["blocked"], json!(["b1"]));
    let asked = port.fake.asked.lock().unwrap().join("\n");
    assert!(asked.contains("by_orchestrator: false") && asked.contains("by_orchestrator: true"));
}

/// The code with which a method is refused, if it is.
async fn refusal(client: &mut Client, method: &str) -> Value {
    let params = json!({ "agent_id": "ui", "text": "x", "id": "b1", "decision": "allow" });
    client.ask(method, params).await["error"]["code"].clone()
}

#[tokio::test]
async fn an_agents_token_steers_no_more_than_it_may() {
    let port = Port::open().await;
    let (mut lead, mut member) = (port.act("lead").await, port.act("ui").await);
    for method in ["list_agents", "list_blocked", "list_sessions"] {
        assert_eq!(refusal(&mut lead, method).await, json!(null), "{method}");
        assert_eq!(refusal(&mut member, method).await, json!(null), "{method}");
    }
    for method in ["prompt", "cancel", "new_session", "show_blocked", "resolve_blocked"] {
        assert_eq!(refusal(&mut lead, method).await, json!(null), "{method}");
        assert_eq!(refusal(&mut member, method).await, 403, "{method}");
    }
    let asked = port.fake.asked.lock().unwrap().len();
    for method in [
        "attach",
        "start_agent",
        "stop_agent",
        "restart_agent",
        "add_agent",
        "remove_agent",
        "reload",
        "undo",
        "redo",
        "show_conflict",
        "resolve_conflict",
    ] {
        assert_eq!(refusal(&mut lead, method).await, 403, "{method}");
        assert_eq!(refusal(&mut member, method).await, 403, "{method}");
    }
    let asked_by: Vec<_> = port.fake.asked.lock().unwrap().iter().cloned().collect();
    assert_eq!(asked_by.len(), asked);
    assert!(
        asked_by.iter().any(|asked| asked.ends_with(r#"Agent(AgentId("lead"))"#)),
        "{asked_by:?}"
    );
    let why = lead.ask("add_agent", json!({})).await["error"]["message"].clone();
    assert!(why.as_str().unwrap().contains("control token of a person"), "{why}");
}

#[tokio::test]
async fn the_registry_entries_of_the_team_are_not_a_strangers_to_change() {
    let port = Port::open().await;
    let mut clients = [port.join().await, port.act("api").await, port.act("ui").await];
    let of_ui = json!({ "agent_id": "ui", "session_id": "s-ui", "mode": "single_agent",
        "items": [1], "providers": [] });
    let of_editor = json!({ "agent_id": "editor", "session_id": "e", "mode": "single_agent" });
    for method in [
        "create_session",
        "set_active_session",
        "add_context_items",
        "set_orchestrator_providers",
        "close_session",
    ] {
        for (client, code) in clients.iter_mut().zip([json!(401), json!(403), json!(null)]) {
            let answer = client.ask(method, of_ui.clone()).await;
            assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
        }
    }
    assert_eq!(clients[0].ask("create_session", of_editor).await["type"], "rpc_result");
    assert_eq!(clients[0].ask("list_sessions", json!({})).await["type"], "rpc_result");
}

#[tokio::test]
async fn what_was_said_in_a_teams_session_is_withheld_from_strangers() {
    let port = Port::open().await;
    let session = |agent: &str| json!({ "agent_id": agent, "session_id": "s" });
    let mut content = json!({ "mode": "single_agent", "history": ["said"], "summary": "said",
        "context": ["said"], "providers": [session("api")] });
    let mut person = port.steer().await;
    for agent in ["ui", "editor"] {
        content["agent_id"] = json!(agent);
        content["session_id"] = json!("s");
        assert_eq!(person.ask("create_session", content.clone()).await["type"], "rpc_result");
    }
    for (mut client, is_open) in [
        (port.join().await, false),
        (port.act("api").await, false),
        (port.act("ui").await, true),
        (port.act("lead").await, true),
        (person, true),
    ] {
        let state = client.ask("get_session_state", session("ui")).await["result"].clone();
        assert_eq!(state["mode"], "orchestrator", "{state}");
        assert_eq!(state["providers"], json!([session("api")]), "{state}");
        assert_eq!(state.to_string().contains("said"), is_open, "{state}");
        assert_eq!(state.get("withheld"), (!is_open).then_some(&json!(true)), "{state}");
        // No agent of the team.
        let state = client.ask("get_session_state", session("editor")).await["result"].clone();
        assert_eq!(state["history"], json!(["said"]), "{state}");
    }
}

#[tokio::test]
async fn sessions_of_another_team_are_open_to_the_control_token_alone() {
    let port = Port::open().await;
    let key = SessionKey::new(AgentId::new("theirs"), SessionId::new("s"));
    let recorded = Upsert {
        team: Some("another".to_owned()),
        summary: Some("said".to_owned()),
        ..Upsert::new(key, SessionMode::SingleAgent)
    };
    port.fake.registry(RegistryRequest::Upsert(recorded)).await.unwrap();
    let theirs = json!({ "agent_id": "theirs", "session_id": "s", "mode": "single_agent",
        "items": [1], "providers": [] });
    for (mut client, code) in [
        (port.join().await, json!(401)),
        (port.act("ui").await, json!(403)),
        (port.act("lead").await, json!(403)),
        (port.steer().await, json!(null)),
    ] {
        let state = client.ask("get_session_state", theirs.clone()).await["result"].clone();
        assert_eq!(state["team"], "another", "{state}");
        assert_eq!(state.to_string().contains("said"), code.is_null(), "{state}");
        for method in [
            "create_session",
            "set_active_session",
            "add_context_items",
            "set_orchestrator_providers",
            "close_session",
        ] {
            let answer = client.ask(method, theirs.clone()).await;
            assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
        }
    }
}

#[tokio::test]
async fn a_token_is_proved_without_being_shown() {
    let port = Port::open().await;
    let mut client = port.join().await;
    let challenge = async |client: &mut Client| {
        client.say(&json!({ "type": "auth_challenge" })).await;
        client.answer().await["result"]["challenge"].as_str().unwrap().to_owned()
    };
    let prove = async |client: &mut Client, proof: &str| {
        client.say(&json!({ "type": "auth", "proof": proof })).await;
        client.answer().await["result"]["authenticated"].clone()
    };
    let owner = port.tokens.owner();
    assert_eq!(prove(&mut client, &token::proof(owner, "")).await, json!(null), "no challenge");
    let first = challenge(&mut client).await;
    let proof = token::proof(owner, &first);
    assert_eq!(prove(&mut client, &proof).await, json!(true));
    assert_eq!(client.ask("reload", json!({})).await["type"], "rpc_result");
    // What was heard on the way is of no use.
    let mut thief = port.join().await;
    assert_ne!(challenge(&mut thief).await, first);
    assert_eq!(prove(&mut thief, &proof).await, json!(null));
    assert_eq!(prove(&mut client, &proof).await, json!(null), "a second time");
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

    // A second `auth` changes the caller, and sends nothing again.
    client.show(&port.tokens.of(&AgentId::new("lead"))).await;
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
