//! The port over real sockets, with a fake team behind it.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use eisen_base::task;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Limits, Server, Sources, Team, Tokens, Traffic};
use crate::config;
use crate::model::AgentId;
use fake::Fake;

mod attach;
mod auth;
mod docs;
mod earlier;
mod equality;
pub(super) mod fake;
mod filter;
mod hostile;
mod methods;
mod owned;
mod reading;
mod recorded;
mod rpc;
pub(super) mod samples;
mod schema;
mod scoped;
mod stream;

/// Only tests have no configuration to take them from: these are the limits of one that sets none.
impl Default for Limits {
    fn default() -> Self {
        let port = config::Port::default();
        Self {
            max_connections: port.max_connections,
            max_line_bytes: port.max_line_bytes,
            write_deadline: port.write_deadline,
        }
    }
}

/// A server on a free port, and what stands behind it.
struct Port {
    address: SocketAddr,
    fake: Arc<Fake>,
    tokens: Tokens,
    cancel: CancellationToken,
    running: JoinHandle<()>,
    traffic: Arc<Traffic>,
}

impl Port {
    async fn open() -> Self {
        Self::with(Fake::new(64), Limits::default(), "127.0.0.1:0").await
    }

    async fn with(fake: Arc<Fake>, limits: Limits, address: &str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address: SocketAddr = ([127, 0, 0, 1], listener.local_addr().unwrap().port()).into();
        let tokens = Tokens::generate(Some(AgentId::new("lead"))).unwrap();
        let sources: Arc<dyn Sources> = fake.clone();
        let team: Arc<dyn Team> = fake.clone();
        let bus = fake.bus.clone();
        let server = Server::new(listener, bus, sources, team, tokens.clone(), limits).unwrap();
        let (cancel, traffic) = (CancellationToken::new(), server.traffic());
        let running = task::spawn(server.run(cancel.clone()));
        Self { address, fake, tokens, cancel, running, traffic }
    }

    /// Connects; the first lines are still to be read.
    async fn connect(&self) -> Client {
        let (read, write) = TcpStream::connect(self.address).await.unwrap().into_split();
        Client { read: BufReader::new(read), write }
    }

    /// Connects, and reads up to the last line of the join.
    async fn join(&self) -> Client {
        let mut client = self.connect().await;
        client.until_joined().await;
        client
    }

    /// Joins with the owner's token.
    async fn steer(&self) -> Client {
        let mut client = self.join().await;
        client.show(self.tokens.owner()).await;
        client
    }

    /// Joins with an agent's token.
    async fn act(&self, agent: &str) -> Client {
        let mut client = self.join().await;
        client.show(&self.tokens.of(&AgentId::new(agent))).await;
        client
    }

    async fn close(self) {
        self.cancel.cancel();
        self.running.await.unwrap();
    }
}

struct Client {
    read: BufReader<OwnedReadHalf>,
    write: OwnedWriteHalf,
}

impl Client {
    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.write.write_all(bytes.as_ref()).await.unwrap();
    }

    async fn say(&mut self, message: &Value) {
        self.send(format!("{message}\n")).await;
    }

    /// Returns the next line, with its line feed; empty at the end.
    async fn line(&mut self) -> String {
        let mut line = String::new();
        timeout(Duration::from_secs(20), self.read.read_line(&mut line))
            .await
            .expect("a line in time")
            .unwrap();
        line
    }

    async fn next(&mut self) -> Value {
        let line = self.line().await;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Skips up to the next answer to a request.
    async fn answer(&mut self) -> Value {
        loop {
            let message = self.next().await;
            if message["type"] == "rpc_result" || message["type"] == "rpc_error" {
                return message;
            }
        }
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.say(&json!({ "type": "rpc", "id": 1, "method": method, "params": params })).await;
        self.answer().await
    }

    async fn show(&mut self, token: &str) {
        self.say(&json!({ "type": "auth", "token": token })).await;
        assert_eq!(self.answer().await["result"], json!({ "authenticated": true }));
    }

    /// Reads the fake's first lines to the last of them, its pending access.
    async fn until_joined(&mut self) {
        while self.next().await["type"] != "blocked" {}
    }

    /// Asserts that the server ended the connection and said nothing more.
    async fn assert_ended(&mut self) {
        let mut line = String::new();
        let read = timeout(Duration::from_secs(20), self.read.read_line(&mut line))
            .await
            .expect("an end in time");
        // An end with bytes unread at the server comes as a reset.
        assert!(matches!(read, Ok(0) | Err(_)), "{line}");
    }
}
