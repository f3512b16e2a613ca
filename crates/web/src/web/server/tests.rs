//! One connection, whose client does not do its part.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use eisen_base::task;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::{Connections, talk};
use crate::web::socket;
use crate::web::upgrade::WebSocketUpgrade;

/// The client's side of a connection whose kernel holds a few bytes, and the server's, which ends with
/// how long it took.
fn connect(router: Router) -> (DuplexStream, JoinHandle<Duration>) {
    let (client, server) = duplex(1024);
    let connection = Connections::default().add(CancellationToken::new());
    let begun = Instant::now();
    let serving = task::spawn(async move {
        talk(server, router, connection).await;
        begun.elapsed()
    });
    (client, serving)
}

fn with_large_answer() -> Router {
    Router::new().route("/", get(|| async { "x".repeat(1 << 20) }))
}

async fn ask(client: &mut DuplexStream, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: team\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_no_answer_is_cut_off() {
    let (mut client, serving) = connect(with_large_answer());
    ask(&mut client, "/").await;
    assert_eq!(serving.await.unwrap().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_a_little_now_and_then_is_cut_off_as_well() {
    let (mut client, serving) = connect(with_large_answer());
    ask(&mut client, "/").await;
    let mut some = [0; 100];
    while client.read(&mut some).await.unwrap() > 0 {
        sleep(Duration::from_secs(5)).await;
    }
    assert_eq!(serving.await.unwrap().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_gets_each_answer_and_may_rest_for_a_minute() {
    let (mut client, serving) = connect(with_large_answer());
    for _ in 0..5 {
        ask(&mut client, "/").await;
        let mut answer = vec![0; 1 << 20];
        client.read_exact(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200"));
        sleep(Duration::from_secs(50)).await;
        // The head comes before the body.
        let mut rest = vec![0; 1024];
        let length = client.read(&mut rest).await.unwrap();
        assert!(rest[..length].ends_with(b"x"));
    }
    // It asks for nothing more.
    let mut end = Vec::new();
    client.read_to_end(&mut end).await.unwrap();
    assert_eq!((end.len(), serving.await.unwrap().as_secs()), (0, 5 * 50 + 10));
}

#[tokio::test(start_paused = true)]
async fn the_body_of_a_request_is_not_waited_for() {
    let (mut client, serving) = connect(with_large_answer());
    client.write_all(b"GET / HTTP/1.1\r\nHost: team\r\nContent-Length: 9\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    assert!(serving.await.unwrap().as_secs() <= 60);
}

#[tokio::test(start_paused = true)]
async fn a_web_socket_has_a_deadline_of_its_own() {
    let connection = Connections::default().add(CancellationToken::new());
    let (port, mut team) = duplex(1024);
    let port = Arc::new(Mutex::new(Some(port)));
    let of_socket = connection.clone();
    let upgrade = move |upgrade: WebSocketUpgrade| async move {
        let port = port.lock().unwrap().take().unwrap();
        upgrade.serve(1024, |it| socket::serve(it, port, CancellationToken::new(), of_socket))
    };
    let router = Router::new().route("/ws", get(upgrade));
    let (mut client, server) = duplex(1024);
    let serving = task::spawn(talk(server, router, connection));
    let request = "GET /ws HTTP/1.1\r\nHost: team\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    client.write_all(request.as_bytes()).await.unwrap();
    let mut head = vec![0; 1024];
    let length = client.read(&mut head).await.unwrap();
    assert!(head[..length].starts_with(b"HTTP/1.1 101"));
    serving.await.unwrap();
    // It takes nothing from now on, and answers no ping.
    let begun = Instant::now();
    while team.write_all(&[b'x'; 99]).await.is_ok() && team.write_all(b"\n").await.is_ok() {}
    assert_eq!(begun.elapsed().as_secs(), 90);
    drop(client);
}
