//! Connections to a provider that are kept for later calls.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::harness::{Reply, Stand, TOKEN, answer, call_of, provider, request, soon};
use crate::provider::ProviderKind::OpenAi;

/// Has a call made, and answers it on a connection.
async fn serve(stand: &mut Stand, stream: &mut TcpStream) {
    assert!(!soon(request(stream)).await.is_empty());
    let Reply(bytes, _) = answer("200 OK", "", "{}");
    stream.write_all(&bytes).await.unwrap();
    stand.report().await;
}

#[tokio::test]
async fn a_connection_is_used_again_while_it_lives() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut stand = Stand::of(vec![provider(OpenAi, listener.local_addr().unwrap(), "")]).await;
    let _first = stand.send(&call_of(OpenAi)).await;
    let (mut kept, _) = soon(listener.accept()).await.unwrap();
    serve(&mut stand, &mut kept).await;
    let _second = stand.send(&call_of(OpenAi)).await;
    serve(&mut stand, &mut kept).await;
    drop(kept);
    let _third = stand.send(&call_of(OpenAi)).await;
    let (mut other, _) = soon(listener.accept()).await.unwrap();
    serve(&mut stand, &mut other).await;
}

#[tokio::test]
async fn a_connection_that_nobody_needs_is_closed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut stand = Stand::of(vec![provider(OpenAi, listener.local_addr().unwrap(), "")]).await;
    let _agent = stand.send(&call_of(OpenAi)).await;
    let (mut kept, _) = soon(listener.accept()).await.unwrap();
    serve(&mut stand, &mut kept).await;
    let mut next = [0; 16];
    let closed = kept.read(&mut next);
    tokio::pin!(closed);
    assert!(futures_util::poll!(&mut closed).is_pending(), "it is kept");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    tokio::time::resume();
    assert_eq!(soon(closed).await.unwrap(), 0);
}

#[tokio::test]
async fn a_body_that_is_passed_on_arrives_whole_though_its_answer_has_ended() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut stand = Stand::of(vec![provider(OpenAi, listener.local_addr().unwrap(), "")]).await;
    let begin = format!(
        "POST /p/files HTTP/1.1\r\nhost: HOST\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: text/plain\r\ncontent-length: 6\r\n\r\nbeg"
    );
    let mut agent = stand.send(&begin).await;
    let (mut there, _) = soon(listener.accept()).await.unwrap();
    let mut got = Vec::new();
    while !got.ends_with(b"beg") {
        soon(there.read_buf(&mut got)).await.unwrap();
    }
    let Reply(bytes, _) = answer("413 Payload Too Large", "", "{}");
    there.write_all(&bytes).await.unwrap();
    stand.report().await;
    agent.write_all(b"end").await.unwrap();
    while !got.ends_with(b"begend") {
        assert_ne!(soon(there.read_buf(&mut got)).await.unwrap(), 0);
    }
}
