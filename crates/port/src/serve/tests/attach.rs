//! Tests of connections that are attached to an agent.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{Client, Port, samples};
use crate::model::Event;

const ATTACH: &str =
    "{\"type\":\"rpc\",\"id\":1,\"method\":\"attach\",\"params\":{\"agent_id\":\"ui\"}}\n";

/// Reads all that comes, to the end.
async fn rest(client: &mut Client) -> Vec<u8> {
    let mut rest = Vec::new();
    client.read.read_to_end(&mut rest).await.unwrap();
    rest
}

#[tokio::test]
async fn from_its_answer_on_a_connection_is_the_agents() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    // What stands behind the request is the agent's, though it would be one to the port.
    client.send([ATTACH.as_bytes(), ATTACH.as_bytes(), b"\0\xff no line"].concat()).await;
    assert_eq!(client.line().await, "{\"type\":\"rpc_result\",\"id\":1,\"result\":{}}\n");
    // Nothing of the team's comes any more.
    port.fake.bus.publish(Event::Turn(samples::turn(None)));
    client.write.shutdown().await.unwrap();
    assert_eq!(rest(&mut client).await, [ATTACH.as_bytes(), b"\0\xff no line"].concat());
    port.close().await;
}

#[tokio::test]
async fn more_than_any_buffer_goes_both_ways_at_once() {
    let port = Port::open().await;
    let mut client = port.steer().await;
    client.send(ATTACH).await;
    client.line().await;
    let Client { mut read, mut write } = client;
    let said: Vec<u8> = (0..3_000_000_u32).flat_map(u32::to_le_bytes).collect();
    let saying = async {
        write.write_all(&said).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let mut heard = Vec::new();
    let ((), read) = tokio::join!(saying, read.read_to_end(&mut heard));
    read.unwrap();
    assert!(heard == said, "the bytes differ");
}

#[tokio::test]
async fn a_refusal_leaves_the_connection_as_it_was() {
    let port = Port::open().await;
    let mut client = port.join().await;
    let refused = client.ask("attach", json!({ "agent_id": "ui" })).await;
    assert_eq!(refused["error"]["code"], 401);
    client.show(port.tokens.owner()).await;
    for (params, code) in [(json!({ "agent_id": "nobody" }), 404), (json!({ "agent_id": 7 }), 400)]
    {
        let refused = client.ask("attach", params).await;
        assert_eq!(refused["error"]["code"], code, "{refused}");
    }
    client
        .say(&json!({ "type": "rpc", "id": "slow", "method": "prompt",
            "params": { "agent_id": "slow", "text": "x" } }))
        .await;
    assert_eq!(port.fake.heard().await, "began");
    assert_eq!(client.ask("attach", json!({ "agent_id": "ui" })).await["error"]["code"], 409);
    port.fake.release.notify_one();
    assert_eq!(client.answer().await["id"], "slow");
    assert_eq!(client.ask("attach", json!({ "agent_id": "ui" })).await["type"], "rpc_result");
    client.send("hello").await;
    let mut heard = [0; 5];
    client.read.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"hello");
    // A team that stops waits for no editor.
    port.close().await;
}
