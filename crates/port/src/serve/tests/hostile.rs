//! Tests of hostile clients, and of clients with another protocol.

use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use super::fake::Fake;
use super::{Client, Limits, Port, samples};
use crate::serve::{RunFile, bind};

const CANCEL: &str =
    "{\"type\":\"rpc\",\"id\":1,\"method\":\"cancel\",\"params\":{\"agent_id\":\"ui\"}}\n";

async fn assert_malformed(client: &mut Client) {
    let refused = client.next().await;
    assert_eq!(refused["type"], "rpc_error");
    assert_eq!(refused["id"], json!(null));
    assert_eq!(refused["error"]["code"], 400);
}

#[tokio::test]
async fn a_web_page_cannot_steer_a_team() {
    let port = Port::open().await;
    let token = port.tokens.owner();
    for request in ["POST / HTTP/1.1\r\n", "get /x http/1.0\n", "\r\nPUT /{} HTTP/1.1\r\n"] {
        for piece in [1, 7, 4096] {
            let mut client = port.join().await;
            let attack = format!(
                "{request}Host: localhost\r\n\r\n{{\"type\":\"auth\",\"token\":\"{token}\"}}\n{CANCEL}"
            );
            for piece in attack.as_bytes().chunks(piece) {
                // The server may hang up at any piece.
                if client.write.write_all(piece).await.is_err() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            client.assert_ended().await;
        }
    }
    assert!(port.fake.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn noise_is_answered_and_survived() {
    let port = Port::open().await;
    let mut client = port.join().await;
    for noise in
        [&b"\x16\x03\x01\x02\0\x01"[..], b"\xff\xfe", b"[1]", b"{\"type\":", b"null", b"Host: x"]
    {
        client.send(noise).await;
        client.send("\n").await;
        assert_malformed(&mut client).await;
    }
    // No request line is looked for any more, and nothing comes of one.
    client.send("GET / HTTP/1.1\n \r\n\n").await;
    assert_malformed(&mut client).await;
    assert_eq!(client.ask("list_agents", json!({})).await["type"], "rpc_result");
}

#[tokio::test]
async fn endless_noise_is_ended() {
    let port = Port::open().await;
    let mut client = port.join().await;
    client.send("noise\n".repeat(99)).await;
    client.say(&json!({ "type": "from_the_future" })).await;
    client.send("noise\n".repeat(101)).await;
    for _ in 0..199 {
        assert_malformed(&mut client).await;
    }
    client.assert_ended().await;
}

#[tokio::test]
async fn a_line_has_a_longest_length() {
    let limits = Limits { max_line_bytes: 1000, ..Limits::default() };
    let port = Port::with(Fake::new(64), limits, "127.0.0.1:0").await;
    let mut client = port.join().await;
    for length in [1001, 15_000] {
        client.send(format!("{{\"type\":\"{}\"}}\n", "x".repeat(length))).await;
        assert_malformed(&mut client).await;
        assert_eq!(client.ask("list_agents", json!({})).await["type"], "rpc_result");
    }

    let mut endless = port.join().await;
    endless.send("{").await;
    // It may hang up before it has read all.
    let _ = endless.write.write_all("x".repeat(40_000).as_bytes()).await;
    assert_malformed(&mut endless).await;
    endless.assert_ended().await;

    // A first line of that length may be HTTP, as far as it was read.
    let mut page = port.join().await;
    page.send(format!("POST /{} HTTP/1.1\r\n{CANCEL}", "x".repeat(2000))).await;
    assert_malformed(&mut page).await;
    page.assert_ended().await;
}

#[tokio::test]
async fn one_client_too_many_gets_an_error() {
    let limits = Limits { max_connections: 2, ..Limits::default() };
    let port = Port::with(Fake::new(64), limits, "127.0.0.1:0").await;
    let (first, mut second) = (port.steer().await, port.steer().await);
    let mut third = port.connect().await;
    let refused = third.next().await;
    assert_eq!((&refused["type"], &refused["error"]["code"]), (&json!("rpc_error"), &json!(500)));
    third.assert_ended().await;

    port.fake.touch(0, "a.ts");
    assert_eq!(second.next().await["type"], "delta");
    drop(first);
    port.join().await;
}

#[tokio::test]
async fn who_has_shown_the_least_makes_room_and_a_person_always_gets_in() {
    let limits = Limits { max_connections: 4, ..Limits::default() };
    let port = Port::with(Fake::new(64), limits, "127.0.0.1:0").await;
    let mut person = port.steer().await;
    let mut agent = port.act("lead").await;
    let mut idle = Vec::new();
    for _ in 0..20 {
        idle.push(port.join().await);
    }
    let mut late = port.steer().await;
    assert_eq!(late.ask("list_agents", json!({})).await["type"], "rpc_result");
    assert_eq!(agent.ask("list_agents", json!({})).await["type"], "rpc_result");
    // An agent's come next.
    let _third = port.steer().await;
    let _fourth = port.steer().await;
    idle.push(agent);
    for mut dropped in idle {
        let last = dropped.next().await;
        assert_eq!((&last["type"], &last["error"]["code"]), (&json!("rpc_error"), &json!(500)));
        dropped.assert_ended().await;
    }
    assert_eq!(person.ask("list_agents", json!({})).await["type"], "rpc_result");
    assert_eq!(port.connect().await.next().await["error"]["code"], 500);
}

#[tokio::test]
async fn a_client_that_is_gone_leaves_its_place_though_nothing_happens() {
    let limits = Limits { max_connections: 1, ..Limits::default() };
    let port = Port::with(Fake::new(64), limits, "127.0.0.1:0").await;
    // Having read all, each looks as if it had only ended its side.
    for _ in 0..5 {
        drop(port.join().await);
    }
    let mut listener = port.steer().await;
    listener.write.shutdown().await.unwrap();
    // One that is still there stays, and hears a few repetitions.
    let mut other = port.connect().await;
    assert_eq!(other.next().await["error"]["code"], 500);
    assert_eq!(listener.next().await["type"], "agent");
}

#[tokio::test]
async fn one_that_only_asks_and_never_reads_is_read_no_further_and_harms_nobody() {
    let port = Port::open().await;
    let mut greedy = port.join().await;
    let request = "{\"type\":\"rpc\",\"id\":1,\"method\":\"list_blocked\"}\n".repeat(1_000);
    // Its requests pile up in its own sockets.
    let flood = async {
        loop {
            greedy.write.write_all(request.as_bytes()).await.unwrap();
        }
    };
    assert!(timeout(Duration::from_secs(2), flood).await.is_err());
    let mut other = port.join().await;
    port.fake.touch(0, "a.ts");
    assert_eq!(other.next().await["type"], "delta");
    // It was not forgotten.
    assert_eq!(greedy.answer().await["type"], "rpc_result");
}

#[tokio::test]
async fn half_a_request_line_holds_nobody_up() {
    let port = Port::open().await;
    let mut slow = port.join().await;
    slow.send("{\"type\":\"rpc\",\"id\":1,").await;
    let mut other = port.join().await;
    assert_eq!(other.ask("list_agents", json!({})).await["type"], "rpc_result");
    slow.send("\"method\":\"list_agents\"}\n").await;
    assert_eq!(slow.answer().await["type"], "rpc_result");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_is_cut_off_and_harms_nobody() {
    let fake = Fake::new(64);
    let limits = Limits { write_deadline: Duration::from_secs(3), ..Limits::default() };
    let many = (0..200_000).map(|n| samples::node(&format!("a/long/path/to/file-{n}.ts"), 0.5));
    fake.snapshots.lock().unwrap()[0].nodes = many.collect();
    let port = Port::with(fake, limits, "127.0.0.1:0").await;
    let mut stalled = port.connect().await;
    tokio::io::AsyncBufReadExt::fill_buf(&mut stalled.read).await.unwrap();
    port.fake.snapshots.lock().unwrap()[0].nodes.clear();

    let mut other = port.join().await;
    port.fake.touch(0, "a.ts");
    assert_eq!(other.next().await["type"], "delta");

    tokio::time::sleep(Duration::from_secs(4)).await;
    let mut read = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut stalled.read, &mut read).await;
    assert!(!read.ends_with(b"\n"), "it got its whole first line");
    assert_eq!(other.ask("list_agents", json!({})).await["type"], "rpc_result");
}

#[tokio::test]
async fn a_busy_port_is_named_with_who_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let listener = bind("127.0.0.1:0".parse().unwrap(), dir.path()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let error = bind(address, dir.path()).await.unwrap_err().to_string();
    assert_eq!(
        error,
        format!("port {} is taken by another program; --port 0 takes a free one", address.port())
    );

    let _team = RunFile::create(dir.path(), "shop", address, "t").unwrap();
    let error = bind(address, dir.path()).await.unwrap_err().to_string();
    let pid = std::process::id();
    assert_eq!(error, format!("port {} is taken by the team `shop` (pid {pid})", address.port()));
}
