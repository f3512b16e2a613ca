//! Whose the sessions are that holders of tokens open.

use serde_json::{Value, json};

use super::{Client, Port};

/// Joins with a token of ada.
async fn ada(port: &Port) -> Client {
    let params = json!({ "owner": "ada", "may": ["read", "prompt"] });
    let made = port.steer().await.ask("token_create", params).await["result"].clone();
    let mut client = port.join().await;
    client.say(&json!({ "type": "auth", "token": made["token"] })).await;
    assert_eq!(client.answer().await["result"]["owner"], "ada");
    client
}

#[tokio::test]
async fn a_session_is_its_openers() {
    let port = Port::open().await;
    let mut person = port.steer().await;
    // As the team records it.
    let recorded = json!({ "agent_id": "ui", "session_id": "s-ui-2", "mode": "single_agent" });
    person.ask("create_session", recorded.clone()).await;
    let of_ui = json!({ "agent_id": "ui" });
    let owner = async |client: &mut Client| -> Value {
        client.ask("list_sessions", of_ui.clone()).await["result"][0]["owner"].clone()
    };
    person.ask("new_session", of_ui.clone()).await;
    assert_eq!(owner(&mut person).await, json!(null));
    let mut ada = ada(&port).await;
    assert_eq!(ada.ask("new_session", of_ui.clone()).await["result"]["session_id"], "s-ui-2");
    assert_eq!(owner(&mut ada).await, "ada");
    let state = person.ask("get_session_state", recorded.clone()).await;
    assert_eq!(state["result"]["owner"], "ada");
    // Who only prompts it has it no more than before.
    let prompt = json!({ "agent_id": "ui", "session_id": "s-ui-2", "text": "x" });
    person.ask("prompt", prompt).await;
    assert_eq!(owner(&mut person).await, "ada");
}
