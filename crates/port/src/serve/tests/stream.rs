//! A client's view: the join, the stream, snapshots on request, lag, the end.

use std::sync::atomic::Ordering;

use expect_test::expect;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use super::fake::Fake;
use super::{Client, Limits, Port, samples};
use crate::model::{
    AgentId, AgentState, AgentStatus, BlockedAccess, BlockedStatus, Event, Snapshot,
};

/// Says in a few words what a line is.
fn brief(message: &Value) -> String {
    let subject = match message["type"].as_str().unwrap() {
        "snapshot" | "delta" | "usage" => &message["session_id"],
        "agent" => &message["state"],
        "blocked" => &message["status"],
        "lagged" => &message["missed"],
        "turn" => &message["turn"],
        _ => &message["id"],
    };
    let seq = message["seq"].as_u64().map(|seq| format!(" {seq}")).unwrap_or_default();
    format!("{} {subject}{seq}", message["type"].as_str().unwrap()).replace('"', "")
}

async fn briefs(client: &mut Client, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    for _ in 0..count {
        seen.push(brief(&client.next().await));
    }
    seen
}

const JOIN: [&str; 6] = [
    "snapshot s-lead 7",
    "snapshot s-ui 3",
    "agent ready",
    "agent error",
    "usage s-ui",
    "blocked pending",
];

#[tokio::test]
async fn the_state_comes_first_and_then_the_stream() {
    let port = Port::open().await;
    let mut client = port.connect().await;
    assert_eq!(briefs(&mut client, 6).await, JOIN);
    port.fake.touch(0, "a.ts");
    port.fake.bus.publish(Event::Turn(samples::turn(None)));
    port.fake.touch(1, "b.ts");
    assert_eq!(briefs(&mut client, 3).await, ["delta s-lead 8", "turn 2", "delta s-ui 4"]);
    port.close().await;
    client.assert_ended().await;
}

#[tokio::test]
async fn what_happens_during_a_join_comes_once() {
    let port = Port::open().await;
    port.fake.racing.store(true, Ordering::Relaxed);
    let mut client = port.connect().await;
    let seen = briefs(&mut client, 7).await;
    assert_eq!(seen[..2], ["snapshot s-lead 7", "snapshot s-ui 4"]);
    assert_eq!(seen[2..], [&JOIN[2..], &["delta s-ui 5"]].concat());
    port.fake.touch(1, "later.ts");
    assert_eq!(briefs(&mut client, 1).await, ["delta s-ui 6"]);
}

#[tokio::test]
async fn a_new_session_announces_itself() {
    let port = Port::open().await;
    let mut client = port.join().await;
    let new = Snapshot { key: samples::key("ui", "s-new"), seq: 0, ..samples::other_snapshot() };
    port.fake.snapshots.lock().unwrap().push(new.clone());
    port.fake.bus.publish(Event::Snapshot(new));
    port.fake.touch(2, "a.ts");
    assert_eq!(briefs(&mut client, 2).await, ["snapshot s-new 0", "delta s-new 1"]);
}

#[tokio::test]
async fn session_updates_are_for_subscribers() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    port.fake.bus.publish(samples::update());
    port.fake.touch(1, "a.ts");
    assert_eq!(briefs(&mut client, 1).await, ["delta s-ui 4"]);

    client.say(&json!({ "type": "subscribe", "topics": ["weather", "session_update"] })).await;
    let refused = client.next().await;
    assert_eq!((&refused["type"], &refused["error"]["code"]), (&json!("rpc_error"), &json!(404)));
    let Event::SessionUpdate { key, mode, .. } = samples::update() else { unreachable!() };
    port.fake.bus.publish(Event::SessionUpdate { key, mode, update: "{ torn".into() });
    port.fake.bus.publish(samples::update());
    let update = client.next().await;
    assert_eq!(update["update"]["content"]["text"], "Done.");

    // They pass the filter that their session passes.
    client.say(&json!({ "type": "set_stream_filter", "session_id": "s-lead" })).await;
    assert_eq!(briefs(&mut client, 1).await, ["snapshot s-lead 7"]);
    port.fake.bus.publish(samples::update());
    port.fake.touch(0, "a.ts");
    assert_eq!(briefs(&mut client, 1).await, ["delta s-lead 8"]);
}

#[tokio::test]
async fn what_agents_say_is_for_those_who_may_know_it() {
    let port = Port::open().await;
    let subscribe = json!({ "type": "subscribe", "topics": ["session_update", "graph"] });
    let mut stranger = port.join().await;
    stranger.say(&subscribe).await;
    let refused = stranger.next().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(null), &json!(401)));
    // What else was asked for counts.
    assert_eq!(reported(&mut stranger).await.0, "graph");

    let mut clients = Vec::new();
    for agent in ["lead", "ui", "api"] {
        let mut client = port.act(agent).await;
        client.say(&subscribe).await;
        assert_eq!(reported(&mut client).await.0, "graph");
        clients.push(client);
    }
    port.fake.bus.publish(samples::update());
    port.fake.touch(1, "a.ts");
    for client in &mut clients[..2] {
        assert_eq!(client.next().await["type"], "session_update");
        assert_eq!(briefs(client, 1).await, ["delta s-ui 4"]);
    }
    for client in [&mut clients[2], &mut stranger] {
        assert_eq!(briefs(client, 1).await, ["delta s-ui 4"]);
    }
    // Who shows another token has that one's rights.
    stranger.show(&port.tokens.of(&AgentId::new("ui"))).await;
    stranger.say(&json!({ "type": "subscribe", "topics": ["session_update"] })).await;
    stranger.ask("list_blocked", json!({})).await;
    port.fake.bus.publish(samples::update());
    assert_eq!(stranger.next().await["type"], "session_update");
}

#[tokio::test]
async fn the_graph_is_for_subscribers() {
    let port = Port::open().await;
    let mut client = port.join().await;
    port.fake.publish_graph(4);
    port.fake.touch(1, "a.ts");
    assert_eq!(briefs(&mut client, 1).await, ["delta s-ui 4"]);

    client.say(&json!({ "type": "subscribe", "topics": ["graph"] })).await;
    assert_eq!(reported(&mut client).await, ("graph".into(), 4));
    port.fake.publish_graph(5);
    assert_eq!(reported(&mut client).await, ("graph_delta".into(), 5));

    // It passes every filter, and a gap is made good.
    client.say(&json!({ "type": "set_stream_filter", "session_id": "s-lead" })).await;
    assert_eq!(briefs(&mut client, 1).await, ["snapshot s-lead 7"]);
    port.fake.graph.lock().unwrap().as_mut().unwrap().seq = 8;
    port.fake.publish_graph(9);
    while reported(&mut client).await != ("graph".to_owned(), 9) {}
    port.fake.publish_graph(10);
    assert_eq!(reported(&mut client).await, ("graph_delta".into(), 10));
}

#[tokio::test]
async fn a_graph_is_sent_once_it_is_there_and_is_an_error_if_off() {
    let port = Port::open().await;
    let mut client = port.join().await;
    port.fake.graph.lock().unwrap().take();
    client.say(&json!({ "type": "subscribe", "topics": ["graph"] })).await;
    assert_eq!(client.answer().await["error"]["code"], 404);
    assert_eq!(client.ask("get_graph", json!({})).await["error"]["code"], 404);
    assert_eq!(client.ask("get_layout", json!({})).await["error"]["code"], 404);
    port.fake.bus.publish(Event::Graph(samples::graph()));
    assert_eq!(reported(&mut client).await, ("graph".into(), 3));
    port.fake.bus.publish(Event::GraphDelta(samples::graph_delta()));
    assert_eq!(reported(&mut client).await, ("graph_delta".into(), 4));
}

/// Returns type and `seq` of the next line.
async fn reported(client: &mut Client) -> (String, u64) {
    let line = client.next().await;
    (line["type"].as_str().unwrap().to_owned(), line["seq"].as_u64().unwrap_or_default())
}

#[tokio::test]
async fn snapshots_come_on_request_and_the_deltas_go_on_from_them() {
    let port = Port::open().await;
    let mut client = port.join().await;
    port.fake.touch(1, "a.ts");
    assert_eq!(briefs(&mut client, 1).await, ["delta s-ui 4"]);

    client.say(&json!({ "type": "request_snapshot" })).await;
    assert_eq!(briefs(&mut client, 2).await, ["snapshot s-lead 7", "snapshot s-ui 4"]);

    port.fake.racing.store(true, Ordering::Relaxed);
    client.say(&json!({ "type": "request_snapshot", "session_id": "s-ui" })).await;
    let seen = briefs(&mut client, 3).await;
    assert_eq!(seen, ["snapshot s-ui 5", "agent ready", "delta s-ui 6"]);

    client.say(&json!({ "type": "request_snapshot", "session_id": "nobody's" })).await;
    expect![[r#"{"type":"snapshot","agent_id":"","session_id":"nobody's","session_mode":"single_agent","seq":0,"nodes":{}}"#]].assert_eq(client.line().await.trim_end());
    port.fake.touch(0, "b.ts");
    assert_eq!(briefs(&mut client, 1).await, ["delta s-lead 8"]);
}

#[tokio::test]
async fn an_editors_own_session_is_named_as_it_registered_it() {
    let port = Port::open().await;
    let mut client = port.join().await;
    let key = json!({ "agent_id": "editor", "session_id": "mine", "mode": "orchestrator" });
    client.ask("create_session", key).await;
    let empty = expect![[
        r#"{"type":"snapshot","agent_id":"editor","session_id":"mine","session_mode":"orchestrator","seq":0,"nodes":{}}"#
    ]];
    for request in ["request_snapshot", "set_stream_filter"] {
        client.say(&json!({ "type": request, "session_id": "mine" })).await;
        empty.assert_eq(client.line().await.trim_end());
    }
}

#[tokio::test]
async fn a_client_that_falls_behind_gets_lagged_and_everything_anew() {
    let port = Port::with(Fake::new(4), Limits::default(), "127.0.0.1:0").await;
    let mut client = port.join().await;
    // One thread: the server's task sees none of this before all of it has happened.
    for n in 0..10 {
        port.fake.touch(0, &format!("{n}.ts"));
    }
    port.fake.snapshots.lock().unwrap().pop();
    port.fake.agents.lock().unwrap()[0].state = AgentState::Stopped;
    let stopped = AgentStatus { state: AgentState::Stopped, ..samples::agent("ui") };
    port.fake.bus.publish(Event::Agent(stopped));
    assert_eq!(
        briefs(&mut client, 7).await,
        [
            "lagged 9",
            "snapshot s-lead 17",
            // Its session ended meanwhile.
            "snapshot s-ui 3",
            "agent stopped",
            "agent error",
            "usage s-ui",
            "blocked pending",
        ]
    );
    port.fake.touch(0, "after.ts");
    assert_eq!(briefs(&mut client, 1).await, ["delta s-lead 18"]);
    let traffic = port.traffic.clone();
    assert_eq!((traffic.clients(), traffic.lags(), traffic.missed()), (1, 1, 9));
    port.close().await;
    assert_eq!(traffic.clients(), 0);
}

#[tokio::test]
async fn a_client_that_only_listens_may_end_its_side() {
    let port = Port::open().await;
    let mut client = port.join().await;
    client.write.shutdown().await.unwrap();
    for n in 0..50 {
        port.fake.touch(0, &format!("{n}.ts"));
        assert_eq!(briefs(&mut client, 1).await, [format!("delta s-lead {}", n + 8)]);
    }
}

#[tokio::test]
async fn the_last_line_needs_no_line_feed() {
    let port = Port::open().await;
    let mut client = port.join().await;
    client.send(r#"{"type":"rpc","id":1,"method":"list_agents"}"#).await;
    client.write.shutdown().await.unwrap();
    assert_eq!(client.answer().await["result"][0]["agent_id"], "ui");
}

#[tokio::test]
async fn at_the_end_clients_get_what_waits() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    client
        .say(&json!({ "type": "rpc", "id": 5, "method": "prompt",
        "params": { "agent_id": "slow", "text": "x" } }))
        .await;
    assert_eq!(port.fake.heard().await, "began");
    port.fake.touch(0, "a.ts");
    port.fake.touch(0, "b.ts");
    port.close().await;
    assert_eq!(briefs(&mut client, 2).await, ["delta s-lead 8", "delta s-lead 9"]);
    let stopped = client.next().await;
    assert_eq!(stopped["error"], json!({ "code": 409, "message": "the team is stopping" }));
    client.assert_ended().await;
}

#[tokio::test]
async fn a_filter_narrows_the_stream_and_can_be_lifted() {
    let port = Port::open().await;
    let mut client = port.join().await;
    client.say(&json!({ "type": "set_stream_filter", "session_id": "s-ui" })).await;
    assert_eq!(briefs(&mut client, 1).await, ["snapshot s-ui 3"]);
    port.fake.touch(0, "a.ts");
    port.fake.touch(1, "a.ts");
    port.fake.bus.publish(Event::Turn(samples::turn(None)));
    port.fake.bus.publish(Event::Agent(samples::agent("ui")));
    assert_eq!(briefs(&mut client, 3).await, ["delta s-ui 4", "turn 2", "agent ready"]);

    // A mode counts only where no session is named.
    client
        .say(&json!({ "type": "set_stream_filter", "session_id": "s-lead", "session_mode": "single_agent" }))
        .await;
    assert_eq!(briefs(&mut client, 1).await, ["snapshot s-lead 8"]);
    port.fake.touch(1, "b.ts");
    port.fake.bus.publish(Event::Turn(samples::turn(None)));
    // It was routed to that session.
    port.fake.bus.publish(Event::Blocked(samples::blocked(BlockedStatus::Allowed)));
    assert_eq!(briefs(&mut client, 1).await, ["blocked allowed"]);

    client.say(&json!({ "type": "request_snapshot" })).await;
    assert_eq!(briefs(&mut client, 1).await, ["snapshot s-lead 8"]);
    client.say(&json!({ "type": "request_snapshot", "session_id": "s-ui" })).await;
    assert_eq!(briefs(&mut client, 1).await, ["snapshot s-ui 5"]);

    // What is gone by the time the filter is lifted is taken back.
    port.fake.snapshots.lock().unwrap().pop();
    client.say(&json!({ "type": "set_stream_filter" })).await;
    assert_eq!(briefs(&mut client, 2).await, ["snapshot s-lead 8", "snapshot s-ui 5"]);
    port.fake.touch(0, "b.ts");
    assert_eq!(briefs(&mut client, 1).await, ["delta s-lead 9"]);
}

#[tokio::test]
async fn a_filter_waits_for_its_session() {
    let port = Port::open().await;
    let mut client = port.join().await;
    client.say(&json!({ "type": "set_stream_filter", "session_id": "s-new" })).await;
    assert_eq!(briefs(&mut client, 1).await, ["snapshot s-new 0"]);
    port.fake.touch(0, "a.ts");
    let new = Snapshot { key: samples::key("ui", "s-new"), seq: 0, ..samples::other_snapshot() };
    port.fake.snapshots.lock().unwrap().push(new.clone());
    port.fake.bus.publish(Event::Snapshot(new));
    port.fake.touch(2, "a.ts");
    assert_eq!(briefs(&mut client, 2).await, ["snapshot s-new 0", "delta s-new 1"]);
}

#[tokio::test]
async fn who_follows_the_orchestrator_gets_every_blocked_access() {
    let port = Port::open().await;
    let mut client = port.join().await;
    client.say(&json!({ "type": "set_stream_filter", "session_mode": "orchestrator" })).await;
    assert_eq!(briefs(&mut client, 1).await, ["snapshot s-lead 7"]);
    let unrouted =
        BlockedAccess { orchestrator: None, ..samples::blocked(BlockedStatus::Observed) };
    port.fake.bus.publish(Event::Blocked(unrouted));
    port.fake.touch(1, "a.ts");
    port.fake.touch(0, "a.ts");
    assert_eq!(briefs(&mut client, 2).await, ["blocked observed", "delta s-lead 8"]);

    port.fake.snapshots.lock().unwrap().remove(0);
    client.say(&json!({ "type": "set_stream_filter", "session_mode": "orchestrator" })).await;
    let empty = client.next().await;
    assert_eq!(
        (&empty["session_id"], &empty["session_mode"]),
        (&json!(""), &json!("orchestrator"))
    );
}

#[tokio::test]
async fn a_filter_holds_when_all_is_shown_anew() {
    let port = Port::with(Fake::new(4), Limits::default(), "127.0.0.1:0").await;
    let mut client = port.join().await;
    client.say(&json!({ "type": "set_stream_filter", "session_id": "s-lead" })).await;
    assert_eq!(briefs(&mut client, 1).await, ["snapshot s-lead 7"]);
    for n in 0..10 {
        port.fake.touch(1, &format!("{n}.ts"));
    }
    let seen = ["lagged 8", "snapshot s-lead 7", "agent ready", "agent error", "blocked pending"];
    assert_eq!(briefs(&mut client, 5).await, seen);
    port.fake.touch(0, "a.ts");
    assert_eq!(briefs(&mut client, 1).await, ["delta s-lead 8"]);
}
