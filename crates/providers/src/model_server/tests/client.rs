//! A server that runs, and a client that sees each byte of its answers.

use std::time::Duration;

use eisen_base::task;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::super::*;

/// How long a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Running {
    address: String,
    cancel: CancellationToken,
    serving: JoinHandle<ModelCount>,
}

/// An answer as it came.
pub(super) struct Got {
    pub(super) raw: Vec<u8>,
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
    /// Whether the body came whole, as its head or its chunks say.
    pub(super) is_whole: bool,
}

impl Running {
    pub(super) async fn play(script: &str) -> Self {
        let script = ModelScript::parse(script).unwrap();
        Self::start(ModelServerSettings { script, ..ModelServerSettings::default() }).await
    }

    pub(super) async fn start(settings: ModelServerSettings) -> Self {
        let server = ModelServer::bind(settings).await.unwrap();
        let address = server.url().strip_prefix("http://").unwrap().to_owned();
        let cancel = CancellationToken::new();
        let serving = task::spawn(server.run(cancel.clone().cancelled_owned()));
        Self { address, cancel, serving }
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Got {
        self.send("POST", path, "", body.to_string().as_bytes()).await
    }

    pub(super) async fn get(&self, path: &str) -> Got {
        self.send("GET", path, "", b"").await
    }

    pub(super) async fn send(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Got {
        let mut stream = self.connect(method, path, headers, body).await;
        let mut raw = Vec::new();
        // A connection that is cut off may end with an error.
        let _ = timeout(PATIENCE, stream.read_to_end(&mut raw)).await.unwrap();
        Got::read(raw)
    }

    /// Sends a request, and leaves the answer on the connection.
    pub(super) async fn connect(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
        stream
    }

    pub(super) async fn count(&self) -> Value {
        serde_json::from_str(&self.get("/_count").await.body).unwrap()
    }

    /// Waits until the count shows it.
    pub(super) async fn until(&self, shows: impl Fn(&Value) -> bool) {
        let seen = async { while !shows(&self.count().await) {} };
        timeout(PATIENCE, seen).await.unwrap();
    }

    pub(super) async fn stop(self) -> ModelCount {
        self.cancel.cancel();
        timeout(PATIENCE, self.serving).await.unwrap().unwrap()
    }
}

impl Got {
    fn read(raw: Vec<u8>) -> Self {
        let text = String::from_utf8(raw.clone()).unwrap();
        let (head, rest) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let head = head.to_lowercase();
        let (body, is_whole) = if head.contains("transfer-encoding: chunked") {
            dechunk(rest)
        } else {
            let length = head.split("content-length: ").nth(1).unwrap();
            let length: usize = length.lines().next().unwrap().parse().unwrap();
            (rest.to_owned(), rest.len() == length)
        };
        Self { status, head: head.clone(), body, is_whole, raw }
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The events of a stream, or the answer as the only one.
    pub(super) fn events(&self) -> Vec<Value> {
        if !self.head.contains("text/event-stream") {
            return vec![self.json()];
        }
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|data| serde_json::from_str(data).ok()).collect()
    }
}

fn dechunk(mut rest: &str) -> (String, bool) {
    let mut body = String::new();
    while let Some((length, more)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return (body, true);
        }
        body += &more[..length];
        rest = &more[length + 2..];
    }
    (body, false)
}
