//! Clients that send more before their `initialize` is answered.

use tokio::sync::Semaphore;

use super::*;

/// A gateway whose agent takes nobody before the test lets it, and a client whose `initialize` waits for
/// that.
async fn waiting() -> (Arc<FakeTeam>, GatewayHandle, TestClient, u64) {
    let team = FakeTeam { default: "gated", gate: Semaphore::new(0), ..FakeTeam::default() };
    let team = Arc::new(team);
    let gateway = GatewayHandle::start(team.clone());
    let mut client = TestClient::connect(&gateway);
    let early = client.begin("session/list", json!({})).await;
    assert_eq!(client.answer(early).await.0["error"]["code"], -32600);
    let introduced = client.begin("initialize", json!({ "protocolVersion": 1 })).await;
    (team, gateway, client, introduced)
}

#[tokio::test]
async fn what_comes_before_the_answer_to_initialize_waits_for_it() {
    let (team, _gateway, mut client, introduced) = waiting().await;
    let opens = client.begin("session/new", json!({ "cwd": "/w", "mcpServers": [] })).await;
    let dropped = client.begin("session/list", json!({})).await;
    let lists = client.begin("session/list", json!({})).await;
    client.cancel_request(dropped).await;
    let again = client.begin("initialize", json!({ "protocolVersion": 1 })).await;
    // Neither waits.
    let (answer, before) = client.answer(again).await;
    assert_eq!(answer["error"]["code"], -32600);
    assert_eq!(before.len(), 1, "{before:?}");
    assert_eq!((&before[0]["id"], &before[0]["error"]["code"]), (&json!(dropped), &json!(-32800)));
    team.gate.add_permits(2);
    let (answer, before) = client.answer(introduced).await;
    assert_eq!(answer["result"]["agentInfo"]["title"], "Team shop");
    assert_eq!(before, Vec::<Value>::new());
    for id in [lists, opens] {
        let answer = client.answer(id).await.0;
        assert!(answer["error"].is_null(), "{answer}");
    }
}

#[tokio::test]
async fn only_so_much_waits_for_an_introduction() {
    let (team, _gateway, mut client, introduced) = waiting().await;
    let mut ids = Vec::new();
    let (long, short) = ("x".repeat(4 << 20), "/w".to_owned());
    for (cwd, is_held) in
        [(&long, false)].into_iter().chain([(&short, true); 64]).chain([(&short, false)])
    {
        let id = client.begin("session/list", json!({ "cwd": cwd })).await;
        if is_held {
            ids.push(id);
            continue;
        }
        let (answer, before) = client.answer(id).await;
        assert_eq!((&answer["error"]["code"], before.len()), (&json!(-32603), 0));
    }
    team.gate.add_permits(1);
    assert!(client.answer(introduced).await.0["error"].is_null());
    for id in ids {
        // In their order.
        assert_eq!(client.next().await["id"], id);
    }
}

#[tokio::test]
async fn an_introduction_that_fails_fails_what_waits_for_it() {
    let team = Arc::new(FakeTeam { default: "nobody", ..FakeTeam::default() });
    let gateway = GatewayHandle::start(team);
    let mut client = TestClient::connect(&gateway);
    let params = json!({ "cwd": "/w", "mcpServers": [] });
    let lines = [("initialize", json!({})), ("session/new", params)].map(|(method, params)| {
        format!(
            "{}\n",
            json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params })
        )
    });
    client.writer.write_all(lines.concat().as_bytes()).await.unwrap();
    for (id, code) in [("initialize", -32603), ("session/new", -32600)] {
        let answer = client.next().await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(code)));
    }
}

#[tokio::test]
async fn a_client_that_sends_no_more_is_told_so() {
    let (team, _gateway, mut client, introduced) = waiting().await;
    let lists = client.begin("session/list", json!({})).await;
    client.writer.shutdown().await.unwrap();
    team.gate.add_permits(1);
    assert!(client.answer(introduced).await.0["error"].is_null());
    assert_eq!(client.answer(lists).await.0["error"]["message"], "You have left");
    assert_eq!(client.lines.next_whole().await.unwrap(), None);
}
