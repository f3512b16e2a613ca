//! Connections to a provider that are kept for later calls.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::harness::{Reply, Stand, answer, call_of, provider, request, soon};
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
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    tokio::time::resume();
    assert_eq!(soon(kept.read(&mut [0; 16])).await.unwrap(), 0);
}
