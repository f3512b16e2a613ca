//! Clients that leave, and agents that do not answer.

use tokio::time::Instant;

use super::*;

#[tokio::test]
async fn a_session_is_loaded_again_after_its_client_left() {
    let (gateway, _) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    drop(client);
    let mut client = TestClient::new(&gateway).await;
    let (listed, _) = client.ask("session/list", json!({})).await;
    assert_eq!(listed["result"]["sessions"][0]["sessionId"], session.as_str());
    assert_eq!(listed["result"]["sessions"][0]["cwd"], "/w");
    let load = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
    let (answer, before) = client.ask("session/load", load).await;
    assert!(answer["error"].is_null(), "{answer}");
    assert_eq!(texts(&before), ["replayed"]);
    client.next().await;
    assert_eq!(client.prompt(&session, "hello").await.1, ["lead heard hello"]);
}

#[tokio::test]
async fn a_session_is_opened_again_in_the_way_that_its_agent_offers() {
    let (gateway, _) = gateway();
    // `lead` can only load, and `resumer` only resume.
    for (agent, method) in [("lead", "session/resume"), ("resumer", "session/load")] {
        let mut client = TestClient::new(&gateway).await;
        let session = client.open().await;
        client.prompt(&session, &format!("/select {agent}")).await;
        drop(client);
        let mut client = TestClient::new(&gateway).await;
        let again = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
        let (answer, before) = client.ask(method, again).await;
        assert!(answer["error"].is_null(), "{answer}");
        // A client that resumes has what was said.
        assert_eq!(texts(&before), [""; 0]);
        client.next().await;
        let said = client.prompt(&session, "hello").await.1;
        assert_eq!(said, [format!("{agent} heard hello")]);
    }
}

#[tokio::test]
async fn a_client_that_leaves_in_a_turn_ends_its_attachment() {
    let (gateway, team) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    client.begin("session/prompt", prompt(&session, "ask")).await;
    assert_eq!(client.next().await["method"], "session/request_permission");
    drop(client);
    // That of the session, and that of the client.
    team.ended.acquire_many(2).await.unwrap().forget();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    assert_eq!(client.prompt(&session, "hello").await.1, ["lead heard hello"]);
}

#[tokio::test]
async fn a_client_that_sends_no_more_gets_its_answer() {
    let (gateway, _) = gateway();
    let (reader, mut writer) = split(gateway.open().unwrap());
    let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}";
    // The last line may lack its end.
    writer.write_all(line).await.unwrap();
    writer.shutdown().await.unwrap();
    let mut lines = LineReader::new(reader, 1 << 20);
    let answer: Value =
        serde_json::from_slice(&lines.next_whole().await.unwrap().unwrap()).unwrap();
    assert_eq!(answer["result"]["agentInfo"]["title"], "Team shop");
    assert_eq!(lines.next_whole().await.unwrap(), None);
}

#[tokio::test]
async fn a_torn_line_and_an_endless_one_end_their_connection_only() {
    let (gateway, _) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    let mut torn = TestClient::new(&gateway).await;
    torn.writer.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"met").await.unwrap();
    drop(torn);
    let mut endless = TestClient::new(&gateway).await;
    let piece = vec![b'x'; 1 << 20];
    while endless.writer.write_all(&piece).await.is_ok() {}
    assert_eq!(endless.lines.next_whole().await.unwrap(), None);
    assert_eq!(client.prompt(&session, "hello").await.1, ["lead heard hello"]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_does_not_answer_holds_nobody_for_ever() {
    let (gateway, _) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    let said = client.prompt(&session, "/select slow").await.1;
    assert!(said[0].starts_with("`slow` was not ready within 300 s"), "{said:?}");
    client.prompt(&session, "/select mute").await;
    assert_eq!(client.prompt(&session, "hello").await.1, ["mute heard hello"]);
    drop(client);

    let mut client = TestClient::new(&gateway).await;
    let begun = Instant::now();
    let load = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
    let loads = client.begin("session/load", load).await;
    let mut other = TestClient::new(&gateway).await;
    let load = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
    let waits = other.begin("session/load", load).await;
    for (client, id) in [(&mut client, loads), (&mut other, waits)] {
        let (answer, _) = client.answer(id).await;
        assert_eq!(answer["error"]["message"], "`mute` did not answer within 300 s");
    }
    // One load after the other.
    assert!(begun.elapsed().as_secs() < 620, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_session_is_closed_at_the_gateway_if_its_agent_closes_none() {
    let (gateway, team) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    let named = json!({ "sessionId": session });
    assert_eq!(client.ask("session/close", named).await.0["result"], json!({}));
    team.ended.acquire().await.unwrap().forget();
    let (answer, _) = client.ask("session/prompt", prompt(&session, "hello")).await;
    assert_eq!(answer["error"]["code"], -32602);
}

#[tokio::test]
async fn sessions_are_listed_by_folder_and_page() {
    let (gateway, _) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let first = client.open().await;
    client.prompt(&first, "/agents").await;
    client.prompt(&first, "Mend the cart\nplease").await;
    let close = json!({ "sessionId": first });
    client.ask("session/close", close).await;
    for _ in 0..100 {
        let opened = client.ask("session/new", json!({ "cwd": "/o", "mcpServers": [] })).await.0;
        let close = json!({ "sessionId": opened["result"]["sessionId"] });
        client.ask("session/close", close).await;
    }
    let (answer, _) = client.ask("session/list", json!({})).await;
    let listed = &answer["result"];
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 100);
    let next = json!({ "cursor": listed["nextCursor"] });
    let (answer, _) = client.ask("session/list", next).await;
    let meta = json!({ "eisen-core": { "agent": "lead" } });
    let shown = json!({ "sessionId": first, "cwd": "/w", "title": "Mend the cart", "_meta": meta });
    assert_eq!(answer["result"], json!({ "sessions": [shown] }));
    let (answer, _) = client.ask("session/list", json!({ "cwd": "/w" })).await;
    assert_eq!(answer["result"], json!({ "sessions": [shown] }));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_a_client_loads_is_not_forgotten() {
    let (gateway, team) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    client.prompt(&session, "/select gated").await;
    let close = json!({ "sessionId": session });
    assert_eq!(client.ask("session/close", close).await.0["result"], json!({}));

    let load = json!({ "sessionId": session, "cwd": "/w", "mcpServers": [] });
    let loads = client.begin("session/load", load.clone()).await;
    client.ask("session/list", json!({})).await;
    let mut other = TestClient::new(&gateway).await;
    let waits = other.begin("session/load", load).await;
    other.ask("session/list", json!({})).await;
    let mut third = TestClient::new(&gateway).await;
    let (answer, _) = third.ask("session/delete", json!({ "sessionId": session })).await;
    assert_eq!(answer["error"]["code"], -32602);
    team.gate.add_permits(1);
    for (client, id) in [(&mut client, loads), (&mut other, waits)] {
        let (answer, _) = client.answer(id).await;
        assert!(answer["error"].is_null(), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_is_attached_again_to_a_default_agent_that_was_restarted() {
    let (gateway, _) = gateway();
    let mut client = TestClient::new(&gateway).await;
    let authenticate = |how: &str| json!({ "methodId": how });
    let (answer, _) = client.ask("authenticate", authenticate("die")).await;
    assert_eq!(answer["error"]["message"], "`lead` has ended");
    for _ in 0..2 {
        let (answer, _) = client.ask("authenticate", authenticate("key")).await;
        assert_eq!(answer["result"], json!({}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_left_gives_way() {
    let (gateway, _) = gateway();
    let mut stays = TestClient::new(&gateway).await;
    for _ in 1..64 {
        let mut client = TestClient::new(&gateway).await;
        client.begin("authenticate", json!({ "methodId": "hang" })).await;
    }
    // Behind the others' ends.
    stays.ask("session/list", json!({})).await;
    for _ in 1..64 {
        let mut client = TestClient::new(&gateway).await;
        client.ask("session/list", json!({})).await;
        client.begin("authenticate", json!({ "methodId": "hang" })).await;
    }
    stays.ask("session/list", json!({})).await;
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_failed_starts_anew() {
    let (gateway, team) = gateway();
    let stream = gateway.open().unwrap();
    team.breaks.store(true, std::sync::atomic::Ordering::Relaxed);
    let (reader, mut writer) = split(stream);
    let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}\n";
    writer.write_all(line).await.unwrap();
    assert_eq!(LineReader::new(reader, 1 << 20).next_whole().await.unwrap(), None);
    let mut client = TestClient::new(&gateway).await;
    let session = client.open().await;
    assert_eq!(client.prompt(&session, "hello").await.1, ["lead heard hello"]);
}
