//! Transfers that meet something else.

use tokio::time::Instant;

use super::*;

#[tokio::test(start_paused = true)]
async fn what_an_agent_says_behind_a_transfer_nobody_hears() {
    let (gateway, team) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    client.prompt(&session, "/select ui").await;
    team.ended.acquire().await.unwrap().forget();
    assert_eq!(client.prompt(&session, "hello").await.1, ["ui heard hello"]);

    // The last client has left, and another one comes.
    client.ask("session/close", json!({ "sessionId": session })).await;
    let load = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
    let (_, before) = client.ask("session/load", load).await;
    assert_eq!(texts(&before), ["replayed"]);
    team.ended.acquire().await.unwrap().forget();
    client.next().await;
    assert_eq!(client.prompt(&session, "hello").await.1, ["ui heard hello"]);
}

#[tokio::test(start_paused = true)]
async fn a_mode_that_was_set_before_a_transfer_is_not_that_of_the_new_agent() {
    let (gateway, _) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    let mut other = TestClient::new(&gateway).await;
    other.ask("session/load", json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] })).await;
    client.prompt(&session, "/select late").await;
    // `late` answers that only when it is left.
    let set = json!({ "sessionId": session, "modeId": "code" });
    let set = client.begin("session/set_mode", set).await;
    let moved = client.begin("session/prompt", prompt(&session, "/select ui")).await;
    assert_eq!(client.answer(moved).await.0["result"]["stopReason"], "end_turn");
    assert_eq!(client.answer(set).await.0["result"], json!({}));
    client.prompt(&session, "hello").await;
    let mut modes = Vec::new();
    loop {
        let line = other.next().await;
        if texts(std::slice::from_ref(&line)) == ["ui heard hello"] {
            break;
        }
        modes.push(line["params"]["update"]["currentModeId"].clone());
    }
    modes.retain(Value::is_string);
    assert_eq!(modes, ["mode-of-late", "mode-of-ui"]);
}

#[tokio::test(start_paused = true)]
async fn a_transfer_waits_for_the_end_of_its_session() {
    let (gateway, _) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    let named = json!({ "sessionId": session });
    client.prompt(&session, "/select ui").await;
    // `ui` does not delete it.
    let deletes = client.begin("session/delete", named.clone()).await;
    let moves = client.begin("session/prompt", prompt(&session, "/select lead")).await;
    let (answer, _) = client.answer(deletes).await;
    assert_eq!(answer["error"]["code"], -32601);
    let (_, before) = client.answer(moves).await;
    assert_eq!(texts(&before), ["This session is at `lead` now."]);

    let load = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
    let deletes = client.begin("session/delete", named).await;
    let moves = client.begin("session/prompt", prompt(&session, "/select ui")).await;
    let loads = client.begin("session/load", load).await;
    assert_eq!(client.answer(deletes).await.0["result"], json!({}));
    assert_eq!(client.answer(moves).await.0["error"]["code"], -32602);
    assert_eq!(client.answer(loads).await.0["error"]["code"], -32002);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_opened_anew_where_its_agent_does_not_go_on_with_it() {
    let (gateway, _) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    for (agent, why) in [("busy", "in use by the team"), ("forgetful", "no such session")] {
        client.prompt(&session, &format!("/select {agent}")).await;
        client.prompt(&session, "/select lead").await;
        let said = client.prompt(&session, &format!("/select {agent}")).await.1;
        let anew = format!("the agent does not go on with the earlier one: {why}");
        assert_eq!(
            said,
            [format!("This session is at `{agent}` now. It is a new one there: {anew}")]
        );
        assert_eq!(client.prompt(&session, "hello").await.1, [format!("{agent} heard hello")]);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_said_is_sent_again_if_its_turn_fails() {
    let (gateway, _) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    client.prompt(&session, "/select ui --history").await;
    let (answer, _) = client.prompt(&session, "fail").await;
    assert_eq!(answer["error"]["message"], "overloaded");
    let heard = client.prompt(&session, "hello").await.1;
    assert_eq!(heard, ["ui heard what lead/same said|hello"]);
    assert_eq!(client.prompt(&session, "hello").await.1, ["ui heard hello"]);

    // Nothing was said there.
    client.prompt(&session, "/select silent").await;
    client.prompt(&session, "/select lead --history").await;
    assert_eq!(client.prompt(&session, "hello").await.1, ["lead heard hello"]);
}

#[tokio::test(start_paused = true)]
async fn a_transfer_that_is_given_up_ends_what_is_attached_for_it() {
    let (gateway, team) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    let begun = Instant::now();
    let moves = client.begin("session/prompt", prompt(&session, "/select slow")).await;
    client.ask("session/list", json!({})).await;
    // What waits can be cancelled alone.
    let waits = client.begin("session/prompt", prompt(&session, "hello")).await;
    let sets = client.begin("session/set_mode", json!({ "sessionId": session })).await;
    for id in [waits, sets, moves] {
        client.cancel_request(id).await;
    }
    assert_eq!(client.answer(waits).await.0["result"]["stopReason"], "cancelled");
    assert_eq!(client.answer(sets).await.0["error"]["code"], -32800);
    assert_eq!(client.answer(moves).await.0["result"]["stopReason"], "cancelled");
    team.ended.acquire().await.unwrap().forget();
    assert_eq!(client.prompt(&session, "more").await.1, ["lead heard more"]);

    client.begin("session/prompt", prompt(&session, "/select slow")).await;
    client.ask("session/list", json!({})).await;
    drop(client);
    // That of the client, and that of the session, too.
    team.ended.acquire_many(3).await.unwrap().forget();
    assert!(begun.elapsed().as_secs() < 1, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_says_outside_of_sessions_is_heard_once() {
    let (gateway, _) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    // The client has an attachment at `lead`, on which it is said, too.
    let (_, before) = client.ask("session/prompt", prompt(&session, "complete")).await;
    assert!(before.is_empty(), "{before:?}");
    client.prompt(&session, "/select ui").await;
    let (_, before) = client.ask("session/prompt", prompt(&session, "complete")).await;
    assert_eq!(before[0]["params"], json!({ "elicitationId": "ui" }));
}
