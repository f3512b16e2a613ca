//! Several clients of one session.

use super::*;

/// Lets a client into a session; what came before the answer, and the answer.
async fn join(client: &mut TestClient, session: &str) -> (Value, Vec<Value>) {
    let load = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
    let (answer, before) = client.ask("session/load", load).await;
    if answer["error"].is_null() {
        let commands = client.next().await;
        let update = &commands["params"]["update"];
        assert_eq!(update["sessionUpdate"], "available_commands_update");
    }
    (answer, before)
}

fn decide(id: &Value, option: &str) -> Value {
    let outcome = json!({ "outcome": "selected", "optionId": option });
    json!({ "jsonrpc": "2.0", "id": id, "result": { "outcome": outcome } })
}

#[tokio::test]
async fn each_client_of_a_session_sees_all_and_the_first_decision_wins() {
    let (gateway, _) = gateway();
    let mut one = TestClient::new(&gateway).await;
    let session = one.open().await;
    let mut other = TestClient::new(&gateway).await;
    assert_eq!(texts(&join(&mut other, &session).await.1), ["replayed"]);

    let id = one.begin("session/prompt", prompt(&session, "ask")).await;
    let (asked, also) = (
        one.next().await,
        loop {
            let line = other.next().await;
            if line["method"] == "session/request_permission" {
                break line;
            }
            assert_eq!(line["params"]["update"]["sessionUpdate"], "user_message_chunk");
        },
    );
    assert_eq!(asked["params"]["sessionId"], session.as_str());
    other.send(decide(&also["id"], "allow")).await;
    let (_, before) = one.answer(id).await;
    assert_eq!(before[0]["method"], "$/cancel_request");
    assert_eq!(before[0]["params"]["requestId"], asked["id"]);
    assert_eq!(texts(&before), ["decided allow"]);
    assert_eq!(texts(&[other.next().await]), ["decided allow"]);
    // Too late.
    one.send(decide(&asked["id"], "deny")).await;
    assert_eq!(one.prompt(&session, "hello").await.1, ["lead heard hello"]);
}

#[tokio::test]
async fn a_client_that_comes_in_a_turn_learns_the_setup_and_may_decide() {
    let (gateway, _) = gateway();
    let mut one = TestClient::new(&gateway).await;
    let session = one.open().await;
    let set = json!({ "sessionId": session, "modeId": "code" });
    assert_eq!(one.ask("session/set_mode", set).await.0["result"], json!({}));
    let id = one.begin("session/prompt", prompt(&session, "ask")).await;
    let asked = one.next().await;

    let mut other = TestClient::new(&gateway).await;
    let (answer, before) = join(&mut other, &session).await;
    assert_eq!(before, Vec::<Value>::new(), "no replay in a turn");
    assert_eq!(answer["result"]["modes"]["currentModeId"], "code");
    let also = other.next().await;
    assert_eq!(also["method"], "session/request_permission");
    // That one can't decide does not settle it.
    let error = json!({ "code": -32601, "message": "Method not found" });
    one.send(json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })).await;
    one.ask("session/list", json!({})).await;
    other.send(decide(&also["id"], "allow")).await;
    assert_eq!(texts(&one.answer(id).await.1), ["decided allow"]);
}

#[tokio::test]
async fn what_one_client_sets_and_asks_the_others_are_told() {
    let (gateway, _) = gateway();
    let mut one = TestClient::new(&gateway).await;
    let session = one.open().await;
    let mut other = TestClient::new(&gateway).await;
    join(&mut other, &session).await;
    let set = json!({ "sessionId": session, "modeId": "code" });
    one.ask("session/set_mode", set).await;
    let update = json!({ "sessionUpdate": "current_mode_update", "currentModeId": "code" });
    assert_eq!(other.next().await["params"], json!({ "sessionId": session, "update": update }));
    let set = json!({ "sessionId": session, "configId": "effort", "value": "high" });
    one.ask("session/set_config_option", set).await;
    let options = json!([{ "id": "effort" }]);
    let update = json!({ "sessionUpdate": "config_option_update", "configOptions": options });
    assert_eq!(other.next().await["params"]["update"], update);
    one.prompt(&session, "/blocked").await;
    assert_eq!(texts(&[other.next().await]), ["/blocked"]);
}

#[tokio::test]
async fn a_load_that_fails_leaves_everybody_where_they_were() {
    let (gateway, _) = gateway();
    let mut one = TestClient::new(&gateway).await;
    let session = one.open().await;
    one.prompt(&session, "/select forgetful").await;
    let mut other = TestClient::new(&gateway).await;
    for client in [&mut other, &mut one] {
        assert_eq!(join(client, &session).await.0["error"]["message"], "no such session");
    }
    assert_eq!(one.prompt(&session, "hello").await.1, ["forgetful heard hello"]);
    let (answer, _) = other.ask("session/prompt", prompt(&session, "hello")).await;
    assert_eq!(answer["error"]["code"], -32602, "it is not in the session");
}

#[tokio::test]
async fn a_session_whose_agent_ended_is_loaded_by_one_client_for_all() {
    let (gateway, _) = gateway();
    let mut one = TestClient::new(&gateway).await;
    let session = one.open().await;
    let mut other = TestClient::new(&gateway).await;
    join(&mut other, &session).await;
    one.prompt(&session, "die").await;
    assert_eq!(texts(&join(&mut one, &session).await.1), ["replayed"]);
    // Once, and not once more for each load.
    assert_eq!(one.prompt(&session, "hello").await.1, ["lead heard hello"]);
    assert_eq!(texts(&[other.next().await]), ["die"]);
    assert_eq!(texts(&[other.next().await]), ["hello"]);
    assert_eq!(texts(&[other.next().await]), ["lead heard hello"]);
    assert_eq!(other.prompt(&session, "too").await.1, ["lead heard too"]);
}
