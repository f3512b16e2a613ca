//! An agent, a provider and those who know the agent, over real sockets. Both ends are written byte by byte.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use eisen_base::task;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::counting::CallReport;
use crate::endpoint::{
    AgentConnection, CallRefusal, Callers, Endpoint, ProviderCall, ProviderSwitch,
};
use crate::provider::{ModelProvider, ProviderKind};

pub(super) const TOKEN: &str = "agents-own-token";
pub(super) const KEY: &str = "sk-SECRET-of-the-provider";

/// The provider's doing with a connection when its reply is written.
#[derive(Clone, Copy)]
pub(super) enum Then {
    Close,
    /// Waits until the other side closes, and says so.
    Wait,
}

pub(super) struct Reply(pub(super) Vec<u8>, pub(super) Then);

/// A provider that plays its replies, one for each connection.
pub(super) struct FakeProvider {
    pub(super) address: SocketAddr,
    pub(super) requests: UnboundedReceiver<Vec<u8>>,
    /// A message for each connection that the endpoint closed.
    pub(super) closed: UnboundedReceiver<()>,
    task: JoinHandle<()>,
}

impl Drop for FakeProvider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakeProvider {
    pub(super) async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (send, requests) = unbounded_channel();
        let (send_closed, closed) = unbounded_channel();
        let mut replies = VecDeque::from(replies);
        let task = task::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let Some(Reply(bytes, then)) = replies.pop_front() else { return };
                let (send, send_closed) = (send.clone(), send_closed.clone());
                task::spawn(async move {
                    let _ = send.send(request(&mut stream).await);
                    stream.write_all(&bytes).await.unwrap();
                    if matches!(then, Then::Wait) {
                        let _ = stream.read(&mut [0; 16]).await;
                        let _ = send_closed.send(());
                    }
                });
            }
        });
        Self { address, requests, closed, task }
    }

    pub(super) async fn request(&mut self) -> String {
        String::from_utf8(soon(self.requests.recv()).await.unwrap()).unwrap()
    }
}

/// Reads a request to its end.
pub(super) async fn request(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let is_whole = match length {
                Some(length) => body.len() >= length.parse().unwrap(),
                None if head.contains("transfer-encoding") => body.ends_with("0\r\n\r\n"),
                None => true,
            };
            if is_whole {
                return bytes;
            }
        }
        if stream.read_buf(&mut bytes).await.unwrap() == 0 {
            return bytes;
        }
    }
}

/// Whoever knows the one agent and its budget.
pub(super) struct Known {
    pub(super) asked: Mutex<Vec<ProviderCall>>,
    pub(super) refusal: Mutex<Option<CallRefusal>>,
    reports: UnboundedSender<(usize, CallReport)>,
}

impl Callers for Arc<Known> {
    type Caller = ();
    type Ticket = usize;

    async fn caller(&self, token: &str, from: &AgentConnection, provider: &str) -> Option<()> {
        let is_known = token == TOKEN && provider != "forbidden" && from.peer.ip().is_loopback();
        is_known.then_some(())
    }

    async fn admit(&self, (): (), call: &ProviderCall) -> Result<usize, CallRefusal> {
        if let Some(refusal) = &*self.refusal.lock() {
            return Err(refusal.clone());
        }
        let mut asked = self.asked.lock();
        asked.push(call.clone());
        Ok(asked.len())
    }

    fn counted(&self, ticket: usize, report: CallReport) {
        let _ = self.reports.send((ticket, report));
    }
}

/// An endpoint that runs, with a provider behind it.
pub(super) struct Stand {
    pub(super) address: SocketAddr,
    pub(super) known: Arc<Known>,
    pub(super) providers: ProviderSwitch,
    reports: UnboundedReceiver<(usize, CallReport)>,
    cancel: CancellationToken,
    pub(super) task: Option<JoinHandle<()>>,
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

impl Stand {
    pub(super) async fn of(providers: Vec<ModelProvider>) -> Self {
        let (send, reports) = unbounded_channel();
        let known =
            Arc::new(Known { asked: Mutex::default(), refusal: Mutex::default(), reports: send });
        let any = "127.0.0.1:0".parse().unwrap();
        let endpoint = Endpoint::bind(any, providers, Arc::clone(&known)).await.unwrap();
        let (address, providers) = (endpoint.address(), endpoint.providers());
        let cancel = CancellationToken::new();
        let task = Some(task::spawn(endpoint.run(cancel.clone())));
        Self { address, known, providers, reports, cancel, task }
    }

    /// An endpoint with one provider `p`, of this kind, with a key.
    pub(super) async fn before(kind: ProviderKind, fake: &FakeProvider, path: &str) -> Self {
        Self::of(vec![provider(kind, fake.address, path)]).await
    }

    /// Stops the endpoint, and waits for its end.
    pub(super) async fn stop(&mut self) {
        self.cancel.cancel();
        soon(self.task.take().unwrap()).await.unwrap();
    }

    /// Sends a request and reads all that is answered.
    pub(super) async fn ask(&self, request: &str) -> String {
        let mut stream = self.send(request).await;
        let mut answer = Vec::new();
        let _ = soon(stream.read_to_end(&mut answer)).await;
        String::from_utf8(answer).unwrap()
    }

    /// Sends a request. `HOST` in it stands for the endpoint.
    pub(super) async fn send(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = request.replace("HOST", &self.address.to_string());
        let _ = stream.write_all(request.as_bytes()).await;
        stream
    }

    pub(super) async fn report(&mut self) -> CallReport {
        soon(self.reports.recv()).await.unwrap().1
    }

    pub(super) fn has_no_report(&mut self) -> bool {
        self.reports.try_recv().is_err()
    }
}

pub(super) fn provider(kind: ProviderKind, address: SocketAddr, path: &str) -> ModelProvider {
    let provider = ModelProvider::new("p", kind, &format!("http://{address}{path}")).unwrap();
    provider.with_key(KEY.to_owned()).unwrap()
}

/// A call as an agent writes it.
pub(super) fn call(path: &str, header: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: HOST\r\n{header}\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// A call of each kind, with its token where the kind has it.
pub(super) fn call_of(kind: ProviderKind) -> String {
    match kind {
        ProviderKind::OpenAi => call(
            "/p/chat/completions",
            &format!("authorization: Bearer {TOKEN}"),
            r#"{"model":"m","max_tokens":50}"#,
        ),
        ProviderKind::Anthropic => call(
            "/p/v1/messages",
            &format!("x-api-key: {TOKEN}"),
            r#"{"model":"m","max_tokens":50}"#,
        ),
        ProviderKind::Gemini => call(
            "/p/v1beta/models/m:generateContent",
            &format!("x-goog-api-key: {TOKEN}"),
            r#"{"generationConfig":{"maxOutputTokens":50}}"#,
        ),
    }
}

/// An answer with a body of known length.
pub(super) fn answer(status: &str, headers: &str, body: &str) -> Reply {
    let length = body.len();
    let text = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n{body}");
    Reply(text.into_bytes(), Then::Close)
}

pub(super) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(60), future).await.expect("it comes within a minute")
}
